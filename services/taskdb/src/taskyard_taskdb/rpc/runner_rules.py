"""Rules of a runner's key that are checked when the runner registers."""

from __future__ import annotations

from taskyard.errors import FieldInvalid
from taskyard.v1 import runner_pb2
from taskyard_kit import patterns
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope

# Begins the ids of the processes that hold embedded tasks.
EMBEDDED = "embedded-"


class RunnerRules:
    """Checks the id and the registration of one runner."""

    def __init__(self, runner_id: str, registration: runner_pb2.RunnerRegistration | None) -> None:
        self._runner_id = runner_id
        self._registration = registration

    def check(self, scope: RunnerScope) -> None:
        """Raises FieldInvalid for an id or a registration that the key's scope refuses."""
        if self._runner_id.startswith(EMBEDDED):
            problem = (
                f"{self._runner_id!r} begins with {EMBEDDED}, as holders of embedded tasks do; rename it"
            )
            raise FieldInvalid.of("runner_id", problem)
        pattern = scope.runner_id_pattern
        if pattern and not patterns.compile(pattern).matches(self._runner_id):
            problem = (
                f"{self._runner_id!r} does not match {pattern}, the runner_id_pattern of its key; "
                "choose another id"
            )
            raise FieldInvalid.of("runner_id", problem, "runner_id_pattern")
        unnamed = self._registration is not None and not self._registration.backend_type
        if scope.backend_type_required and unnamed:
            problem = "is empty, and the runner's key requires one; set --backend-type"
            raise FieldInvalid.of("registration.backend_type", problem, "backend_type_required")
