"""Pull workers as runners: listed by their claims and renewals, at most about once a minute for each.

A worker has a session row like an agent, which makes it healthy, stopped or forgotten; its leases have an
expiry of their own and do not follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from taskyard.errors import PermissionDenied
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import runner
from taskyard_taskdb.storage.change_log.append import insert_changes, resource_change
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.runners import Registered, Registration
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from taskyard_taskdb.storage.transition.load import database_time

# Processes of pull workers have no ids: all of them count as one instance.
INSTANCE = UUID(int=1)


@dataclass(frozen=True, slots=True)
class Worker:
    """A pull worker that has claimed or, without a registration, renewed."""

    scheduler_id: str
    worker_id: str
    key_id: str
    registration: Registration | None
    duration: timedelta
    # Raises for what the rules of the worker's key refuse.
    check: Callable[[RunnerScope], None]


async def register(tx: Tx, worker: Worker) -> bool:
    """List a worker, or renew that; whether it was not listed as healthy before.

    Raises PermissionDenied for a foreign id, or one that was deleted while the worker was healthy.
    """
    scope, found = await runners.admit(tx, worker.key_id, worker.worker_id, worker.check)
    named = {"runner_id": worker.worker_id}
    session = await tx.fetch_row(statement("lock_session"), named)
    expired = session is None or session[1] <= await database_time(tx)
    alive, is_worker = (session[3], session[4] == INSTANCE) if session else (False, False)
    unlisted = found is None or found.deleted
    if unlisted and worker.registration is None:
        return False
    if found is not None and found.deleted and is_worker and not expired:
        raise _deleted(worker.worker_id)
    if not is_worker and (alive or (await tx.fetch(statement("follows_a_session"), named))[0][0]):
        return False
    is_new = False
    if worker.registration is not None and (unlisted or _differs(worker, scope, found)):
        is_new = await runners.put(
            tx, worker.worker_id, worker.key_id, scope, worker.registration, instance_id=uuid4()
        )
    await tx.execute(statement("put_worker_session"), _session(worker, alive=alive))
    if not alive:
        await _log(tx, worker.worker_id, is_new)
    return not alive


def _differs(worker: Worker, scope: RunnerScope, found: Registered | None) -> bool:
    return found is None or (worker.key_id, worker.registration and worker.registration.encoded, scope) != (
        found.key_id,
        found.registration,
        found.scope,
    )


def _session(worker: Worker, *, alive: bool) -> dict[str, object]:
    return {
        "runner_id": worker.worker_id,
        "scheduler_id": worker.scheduler_id,
        "session_id": uuid4(),
        "instance_id": INSTANCE,
        "duration": worker.duration,
        "alive": alive,
    }


async def _log(tx: Tx, worker_id: str, is_new: bool) -> None:
    now = await database_time(tx)
    words = (ChangeEvent.RUNNER_REGISTERED, ChangeEvent.RUNNER_CONNECTED)
    changes = [
        resource_change(word, "system", worker_id, runner(worker_id), now)
        for word in (words if is_new else words[1:])
    ]
    await insert_changes(tx, changes)


def _deleted(worker_id: str) -> PermissionDenied:
    return PermissionDenied(
        f"runner {worker_id}",
        "claim",
        f"runner {worker_id}",
        message=f'runner "{worker_id}" was deleted while it worked; use another worker id, '
        "or wait a few minutes before it claims again",
    )
