"""What users ask of tasks: each request decided by the lifecycle under locks, many in one transaction."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import errors as pg

from taskyard.errors import (
    NotFound,
    QueueDepthExceeded,
    ResourceVersionMismatch,
    TaskTypeDisabled,
    TaskyardError,
)
from taskyard_taskdb.domain import admission
from taskyard_taskdb.domain.event import Event, RetryRequested
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import Admission
from taskyard_taskdb.storage.action.retries import Retries
from taskyard_taskdb.storage.create import request_ids, slot_admission
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx, overloaded
from taskyard_taskdb.storage.tenant import quota, task_types
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write

AfterCommit = Callable[[CommitNotice], None]

_rng = random.Random()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request about one task; a resource_version above 0 is a precondition."""

    key: Key
    event: Event
    resource_version: int = 0


@dataclass(slots=True)
class _Room:
    """How many tasks that are retried the queues of limited tenants take, and who made use of it."""

    left: dict[str, tuple[int, QueueDepthExceeded]]
    # Tasks whose type takes no more of them, and its name.
    disabled: Mapping[Key, str]
    used: set[str] = field(default_factory=set)

    def take(self, key: Key) -> None:
        """Count a task that waits again; raises QueueDepthExceeded, or TaskTypeDisabled."""
        if key in self.disabled:
            raise TaskTypeDisabled(self.disabled[key])
        tenant_id = key[0]
        if tenant_id not in self.left:
            return
        count, full = self.left[tenant_id]
        if count <= 0:
            raise full
        self.left[tenant_id] = (count - 1, full)
        self.used.add(tenant_id)

    async def confirm(self, tx: Tx) -> None:
        """Look again behind all locks; raises StateMoved."""
        if self.used:
            await quota.confirm(tx, self.used)


class Actions:
    """Applies requests; `after_commit` gets the notice of each committed transaction."""

    def __init__(self, pool: Pool, after_commit: AfterCommit) -> None:
        self._pool = pool
        self._after_commit = after_commit

    async def one(self, ask: Ask, method: Method | None = None, request: Request | None = None) -> None:
        """Applies a request. Raises NotFound, ResourceVersionMismatch and what the lifecycle refuses with.

        A repeat of `request` changes nothing; one with another body raises RequestIdReused.
        """

        async def work(tx: Tx) -> CommitNotice:
            if method is not None and request is not None and await is_repeat(tx, method, request):
                return CommitNotice()
            retries = await Retries.of(tx, _retried([ask]))
            loaded = await load_for_update(tx, [ask.key, *retries.prerequisites()])
            room = await _room(tx, [ask])
            transition = await _decide(tx, ask, loaded, room, retries)
            notice = await write(tx, [transition])
            await retries.store(tx, notice, loaded)
            await room.confirm(tx)
            return notice

        self._after_commit(await self._pool.run(work))

    async def each(self, asks: Sequence[Ask]) -> list[TaskyardError | None]:
        """Applies requests about different tasks, each on its own; the error of each that was refused."""
        results: dict[Key, TaskyardError] = {}
        await self._bisect(list(asks), results)
        return [results.get(ask.key) for ask in asks]

    async def _bisect(self, asks: list[Ask], results: dict[Key, TaskyardError]) -> None:
        if not asks:
            return
        try:
            self._after_commit(await self._pool.attempt(lambda tx: _apply(tx, asks, results)))
        except (pg.LockNotAvailable, pg.QueryCanceled, psycopg.DataError):
            # One task whose lock is not to be had must not hold up the others.
            for ask in asks:
                results.pop(ask.key, None)
            if len(asks) == 1:
                results[asks[0].key] = overloaded("the time a lock or statement may take")
                return
            middle = len(asks) // 2
            await self._bisect(asks[:middle], results)
            await self._bisect(asks[middle:], results)
        except TaskyardError as error:
            results.update((ask.key, error) for ask in asks)


async def is_repeat(tx: Tx, method: Method, request: Request) -> bool:
    """Whether the request was applied before; records it if not. Raises RequestIdReused."""
    found = (await request_ids.claim(tx, method, [request])).get(request.key)
    if isinstance(found, Exception):
        raise found
    return found is not None


async def _apply(tx: Tx, asks: Sequence[Ask], results: dict[Key, TaskyardError]) -> CommitNotice:
    retries = await Retries.of(tx, _retried(asks))
    loaded = await load_for_update(tx, [*(ask.key for ask in asks), *retries.prerequisites()])
    room = await _room(tx, asks)
    transitions: list[Transition] = []
    for ask in asks:
        results.pop(ask.key, None)
        try:
            transitions.append(await _decide(tx, ask, loaded, room, retries))
        except TaskyardError as error:
            results[ask.key] = error
    notice = await write(tx, [transition for transition in transitions if not transition.duplicate])
    await retries.store(tx, notice, loaded)
    await room.confirm(tx)
    return notice


async def _decide(tx: Tx, ask: Ask, loaded: Loaded, room: _Room, retries: Retries) -> Transition:
    task = expect(loaded.tasks, ask.key, ask.resource_version)
    event = ask.event
    if isinstance(event, RetryRequested) and task.phase.terminal:
        event = await retries.judge(tx, task, event, loaded)
    transition = apply(task, event, loaded.now, _rng)
    if isinstance(ask.event, RetryRequested) and task.slot is not None:
        await _check_slot(tx, task)
    if isinstance(event, RetryRequested) and not transition.duplicate:
        room.take(ask.key)
        retries.accept(task, event)
    return transition


def _retried(asks: Sequence[Ask]) -> list[Key]:
    return [ask.key for ask in asks if isinstance(ask.event, RetryRequested)]


async def _room(tx: Tx, asks: Sequence[Ask]) -> _Room:
    retried = set(_retried(asks))
    if not retried:
        return _Room({}, {})
    left = await quota.room_for_retries(tx, {key[0] for key in retried})
    return _Room(left, await task_types.disabled_among(tx, retried))


def expect(tasks: Mapping[Key, TaskState], key: Key, resource_version: int) -> TaskState:
    """The loaded task; raises NotFound, or ResourceVersionMismatch if it is not at the version expected."""
    task = tasks.get(key)
    if task is None:
        raise NotFound("task", task_name(*key))
    if resource_version and task.version != resource_version:
        raise ResourceVersionMismatch(task.name, str(resource_version), str(task.version))
    return task


async def _check_slot(tx: Tx, task: TaskState) -> None:
    slot = task.slot or ""
    occupied = await slot_admission.lock_and_read(tx, [(task.tenant_id, slot)])
    found = occupied[(task.tenant_id, slot)]
    admission.admit(Admission.QUEUE, task.tenant_id, slot, found.head, found.live)
