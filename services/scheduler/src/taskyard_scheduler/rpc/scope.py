"""The runner ids and the leases that a key may use."""

from __future__ import annotations

from collections.abc import Iterable

from taskyard.errors import NotFound, PermissionDenied
from taskyard_kit.auth import Principal, current_principal
from taskyard_scheduler.domain.placement import scope_permits


def require_runner(runner_id: str) -> Principal:
    """The caller, who may act as this runner; raises PermissionDenied for any other."""
    principal = current_principal()
    if not scope_permits(principal.runner, runner_id):
        message = f'{principal} may not act as runner "{runner_id}"; its key is for "{principal.runner}"'
        raise PermissionDenied(str(principal), "", f'runner "{runner_id}"', message=message)
    return principal


def require_leases(runner_id: str, tasks: Iterable[str]) -> Principal:
    """The caller, whose key covers this runner and the tenants of these tasks.

    Raises PermissionDenied for another runner, NotFound for a task of another tenant.
    taskdb checks that the runner holds the lease; a runner of one tenant must not act for another one even if
    it came to know the other's lease.
    """
    principal = require_runner(runner_id)
    if "*" in principal.tenants:
        return principal
    for task in tasks:
        if not principal.sees(task.removeprefix("tenants/").partition("/")[0]):
            raise NotFound("task", task)
    return principal
