"""Sessions of runners: opened, renewed, closed, and what that does to the leases that follow them.

An opened session supersedes the former one of its runner. Leases that the agent lists go on under the new
session; those it does not list count as lost with their runner, work that must not overlap only after the
recorded expiry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import UUID, uuid4

from taskyard.errors import NotFound, RunnerIdInUse, SessionSuperseded, TaskyardError
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import HolderReturned, LossCause, Released, RunnerLost, runner
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import ActorType, ReleaseReason
from taskyard_taskdb.storage.change_log.append import ChangeRow, insert_changes, resource_change
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.runner import runners, workers
from taskyard_taskdb.storage.runner.runners import Registration
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from taskyard_taskdb.storage.transition.load import Loaded, database_time, load_for_update
from taskyard_taskdb.storage.transition.write import write


@dataclass(frozen=True, slots=True)
class Hello:
    """The hello of a runner, and the scheduler that received it."""

    scheduler_id: str
    runner_id: str
    key_id: str
    instance_id: UUID
    takeover: bool
    registration: Registration
    held: tuple[Lease, ...]
    lease_duration: timedelta
    # Raises for what the rules of the runner's key refuse.
    check: Callable[[RunnerScope], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """The new session, and the held leases that are lost or whose holder must act."""

    session_id: UUID
    epoch: int
    verdicts: list[LeaseVerdict]
    notice: CommitNotice


async def open_session(tx: Tx, hello: Hello) -> Opened:
    """Open a session. Raises RunnerIdInUse, or PermissionDenied for a foreign or deleted runner id."""
    scope, _ = await runners.admit(tx, hello.key_id, hello.runner_id, hello.check)
    is_new = await runners.put(
        tx, hello.runner_id, hello.key_id, scope, hello.registration, hello.instance_id
    )
    former = await tx.fetch_row(statement("lock_session"), {"runner_id": hello.runner_id})
    # An agent may replace a pull worker of its id.
    same = former is not None and former[4] in (hello.instance_id, workers.INSTANCE)
    if former is not None and former[3] and not same and not hello.takeover:
        raise RunnerIdInUse.named(hello.runner_id)
    epoch = 1 if former is None else former[0] + 1
    # The former session's expiry is read with its leases: only then may the row change.
    loaded = await _load_leases(tx, hello)
    expire_time = await database_time(tx) + hello.lease_duration
    transitions, verdicts = _settle(loaded, hello, epoch, expire_time)
    session_id = uuid4()
    params = {
        "epoch": epoch,
        "expire_time": expire_time,
        "used_capacity": len({lease.key for lease in hello.held}),
        "session_id": session_id,
        "instance_id": hello.instance_id,
        "runner_id": hello.runner_id,
        "scheduler_id": hello.scheduler_id,
    }
    await tx.execute(statement("put_session"), params)
    notice = await write(tx, transitions)
    await _log(tx, hello, is_new, loaded.now)
    return Opened(session_id, epoch, verdicts, notice)


async def _load_leases(tx: Tx, hello: Hello) -> Loaded:
    rows = await tx.fetch(statement("leases_of_runner"), {"runner_id": hello.runner_id})
    keys = {(row[0], row[1]) for row in rows} | {lease.key for lease in hello.held}
    return await load_for_update(tx, keys) if keys else Loaded(await database_time(tx), {})


def _settle(
    loaded: Loaded, hello: Hello, epoch: int, expire_time: datetime
) -> tuple[list[Transition], list[LeaseVerdict]]:
    """Judge each listed lease by itself: an agent may list several generations of one task."""
    transitions: list[Transition] = []
    verdicts: list[LeaseVerdict] = []
    rng = Random()
    listed = set(hello.held)
    for lease in sorted(listed):
        returned = _returned(hello, lease, epoch, expire_time)
        verdict, transition = _judge(loaded.tasks.get(lease.key), lease, returned, loaded.now, rng)
        if verdict is not None:
            verdicts.append(verdict)
        if transition is not None:
            transitions.append(transition)
    for key in sorted(loaded.tasks):
        task = loaded.tasks[key]
        if _lost(task, hello.runner_id, listed):
            actor = runner(hello.runner_id)
            event = RunnerLost(generation=task.generation, cause=LossCause.NOT_LISTED, actor=actor)
            transitions.append(lifecycle.apply(task, event, loaded.now, rng))
    return transitions, verdicts


def _lost(task: TaskState, runner_id: str, listed: Collection[Lease]) -> bool:
    """Whether the runner holds a lease of the task that it does not list."""
    held = task.lease
    if held is None or held.runner_id != runner_id:
        return False
    return Lease(task.tenant_id, task.task_id, task.generation, held.lease_id) not in listed


def _returned(hello: Hello, lease: Lease, epoch: int, expire_time: datetime) -> HolderReturned:
    return HolderReturned(
        actor=Actor(ActorType.SCHEDULER, hello.scheduler_id),
        runner_id=hello.runner_id,
        generation=lease.generation,
        lease_id=lease.lease_id,
        session_epoch=epoch,
        expire_time=expire_time,
    )


def _judge(
    task: TaskState | None, lease: Lease, event: HolderReturned, now: datetime, rng: Random
) -> tuple[LeaseVerdict | None, Transition | None]:
    """The verdict for the holder of a listed lease, and the transition of its return."""
    if task is None:
        return LeaseVerdict.abort(lease, NotFound("task", lease.name).reason), None
    try:
        transition = lifecycle.apply(task, event, now, rng)
    except TaskyardError as error:
        return LeaseVerdict.abort(lease, error.reason), None
    requested = transition.task.lease.action if transition.task.lease else None
    if requested is None:
        return None, transition
    return LeaseVerdict(
        lease, requested.action, requested.reason, max(requested.deadline - now, timedelta(0))
    ), transition


async def _log(tx: Tx, hello: Hello, is_new: bool, now: datetime) -> None:
    words = (ChangeEvent.RUNNER_REGISTERED, ChangeEvent.RUNNER_CONNECTED)
    await insert_changes(
        tx, [runner_change(hello.runner_id, word, now) for word in (words if is_new else words[1:])]
    )


def runner_change(runner_id: str, word: ChangeEvent, now: datetime, actor: Actor | None = None) -> ChangeRow:
    """What happened to a runner, as a row of the log; it belongs to tenant "system"."""
    return resource_change(word, "system", runner_id, actor or runner(runner_id), now)


async def close_session(tx: Tx, runner_id: str, epoch: int, *, release: bool) -> CommitNotice:
    """End a session; with `release` its leases are given back. Raises SessionSuperseded."""
    former = await tx.fetch_row(statement("lock_session"), {"runner_id": runner_id})
    if former is None or former[0] != epoch:
        raise SessionSuperseded(runner_id)
    if former[2]:
        return CommitNotice()
    notice = CommitNotice()
    if release:
        rows = await tx.fetch(statement("leases_of_runner"), {"runner_id": runner_id})
        loaded = await load_for_update(tx, [(row[0], row[1]) for row in rows])
        notice = await write(tx, _give_back(loaded, runner_id))
    await tx.execute(statement("close_session"), {"runner_id": runner_id, "epoch": epoch, "release": release})
    change = runner_change(runner_id, ChangeEvent.RUNNER_DISCONNECTED, await database_time(tx))
    await insert_changes(tx, [change])
    return notice


def _give_back(loaded: Loaded, runner_id: str) -> list[Transition]:
    """What the end of a session does to the leases of its runner; one that cannot be given back expires."""
    rng = Random()
    transitions: list[Transition] = []
    for task in loaded.tasks.values():
        if task.lease is None or task.lease.runner_id != runner_id:
            continue
        release = Released(
            actor=runner(runner_id),
            runner_id=runner_id,
            generation=task.generation,
            lease_id=task.lease.lease_id,
            reason=ReleaseReason.DRAINED,
        )
        with contextlib.suppress(TaskyardError):
            transitions.append(lifecycle.apply(task, release, loaded.now, rng))
    return transitions


async def disconnect(tx: Tx, runner_id: str, epoch: int) -> None:
    """Note that the stream broke. Raises SessionSuperseded."""
    if not await tx.execute(statement("disconnect_session"), {"runner_id": runner_id, "epoch": epoch}):
        raise SessionSuperseded(runner_id)
