"""Pull workers listed as runners: about one call of taskdb a minute for each, however often it claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from taskyard import errors
from taskyard.v1 import runner_pb2
from taskyard.v1.session_service_pb2 import RegisterWorkerRequest, RegisterWorkerResponse
from taskyard_kit.logs import get_log
from taskyard_scheduler.link_config import duration

# How often a worker is registered again.
INTERVAL = 60.0
# How long after the expiry of its leases a worker counts as healthy: more than the interval.
PATIENCE = 90.0
# Beyond so many entries, those that are due anyhow are dropped.
MAX_ENTRIES = 10_000

log = get_log(__name__)


class RegisterClient(Protocol):
    """taskdb, as far as the register needs it; raises taskyard.errors."""

    async def register_worker(self, request: RegisterWorkerRequest) -> RegisterWorkerResponse: ...


@dataclass(frozen=True, slots=True)
class _Entry:
    """When a worker is due again, until when it is listed as healthy, and its administrator's labels."""

    due: float = 0.0
    healthy_until: float = 0.0
    admin_labels: Mapping[str, str] = field(default_factory=dict)


class WorkerRegister:
    """The pull workers that this scheduler has registered, by worker and key."""

    def __init__(
        self, taskdb: RegisterClient, scheduler_id: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._taskdb = taskdb
        self._scheduler_id = scheduler_id
        self._clock = clock
        self._entries: dict[tuple[str, str], _Entry] = {}

    async def note(
        self,
        worker_id: str,
        key_id: str,
        lease_duration: float,
        registration: runner_pb2.RunnerRegistration | None = None,
    ) -> Mapping[str, str]:
        """Register a worker that claims or renews, if it is due; returns its administrator's labels.

        Raises PermissionDenied for a claim. A worker that cannot be registered for another reason may claim.
        """
        key, now = (worker_id, key_id), self._clock()
        entry = self._entries.get(key, _Entry())
        if now < entry.due and now + lease_duration <= entry.healthy_until:
            return entry.admin_labels
        healthy = lease_duration + PATIENCE
        request = RegisterWorkerRequest(
            scheduler_id=self._scheduler_id,
            worker_id=worker_id,
            key_id=key_id,
            registration=registration,
            duration=duration(healthy),
        )
        try:
            response = await self._taskdb.register_worker(request)
        except errors.TaskyardError as error:
            if isinstance(error, errors.PermissionDenied) and registration is not None:
                raise
            log.warning("worker_not_registered", worker=worker_id, error=str(error))
            return entry.admin_labels
        if len(self._entries) >= MAX_ENTRIES:
            self._entries = {known: found for known, found in self._entries.items() if found.due > now}
        if response.HasField("runner"):
            entry = _Entry(now + INTERVAL, now + healthy, dict(response.runner.admin_labels))
            self._entries[key] = entry
        return entry.admin_labels
