"""The runner ids that a key may use."""

from __future__ import annotations

from taskyard.errors import PermissionDenied
from taskyard_kit.auth import Principal, current_principal
from taskyard_scheduler.domain.placement import scope_permits


def require_runner(runner_id: str) -> Principal:
    """The caller, who may act as this runner; raises PermissionDenied for any other."""
    principal = current_principal()
    if not scope_permits(principal.runner, runner_id):
        message = f'{principal} may not act as runner "{runner_id}"; its key is for "{principal.runner}"'
        raise PermissionDenied(str(principal), "", f'runner "{runner_id}"', message=message)
    return principal
