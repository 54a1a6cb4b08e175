"""Stores new tasks, many in one transaction, each with its own result.

A flush that the database refuses is tried again without the items at fault: those that it names, or else
half by half, so that one poisoned item never fails its neighbours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import psycopg
from psycopg import errors as pg

from taskyard.errors import AlreadyExists, FieldInvalid, RequestIdReused, TaskyardError
from taskyard_taskdb import failpoints
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.create.eager import EagerCreates, EagerLeases
from taskyard_taskdb.storage.create.flush import find_requests, is_single, write, write_single
from taskyard_taskdb.storage.create.new_task import Created, CreateResult, NewTask, Refused, Replayed
from taskyard_taskdb.storage.create.placement_classes import ClassCache
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx, overloaded
from taskyard_taskdb.storage.statements import statement

T = TypeVar("T")
Result = CreateResult | Exception
AfterCommit = Callable[[CommitNotice], None]

_AT_FAULT = (psycopg.DataError, psycopg.IntegrityError, pg.LockNotAvailable, pg.QueryCanceled)


class TaskCreator:
    """The create path; `after_commit` gets the notice of each committed transaction."""

    def __init__(
        self,
        pool: Pool,
        classes: ClassCache,
        after_commit: AfterCommit,
        eager: EagerCreates | None = None,
    ) -> None:
        self._pool = pool
        self._eager = eager
        self._classes = classes
        self._after_commit = after_commit

    async def create_each(self, tasks: Sequence[NewTask]) -> list[Result]:
        """A result or an exception for each task, in order."""
        results: dict[int, Result] = {}
        left = list(range(len(tasks)))
        while left:
            leaders, followers = _elect(tasks, left)
            await self._settle(tasks, leaders, results)
            left = []
            for follower, leader in followers:
                decided = _follow(tasks[follower], tasks[leader], results[leader])
                if decided is None:
                    left.append(follower)
                else:
                    results[follower] = decided
        return [results[index] for index in range(len(tasks))]

    async def create_all(self, tasks: Sequence[NewTask]) -> list[CreateResult]:
        """A result for each task; or Refused, which names one at fault, and then none is stored."""
        _, followers = _elect(tasks, range(len(tasks)))
        if followers:
            again, _ = followers[0]
            raise Refused(
                {again: FieldInvalid.of("request_id", "another item of the batch has this id as well")}
            )
        try:
            await self.prepare(tasks)
            eager = self._eager.take(tasks) if self._eager is not None else None
            return await self._transact(tasks, eager)
        except pg.UniqueViolation:
            raise Refused(await self.find_taken(tasks)) from None
        except _AT_FAULT as error:
            raise _reason(error) from error

    async def check(self, task: NewTask) -> CreateResult:
        """What creating the task would answer, or raise; nothing is stored."""

        async def write_one(tx: Tx) -> CreateResult:
            results, _ = await write(tx, [task])
            return results[0]

        try:
            return await self._pool.rehearse(write_one)
        except Refused as refused:
            raise refused.errors[0] from None
        except pg.UniqueViolation:
            raise AlreadyExists("task", task.name) from None

    async def _settle(
        self, tasks: Sequence[NewTask], indices: Sequence[int], results: dict[int, Result]
    ) -> None:
        # A replacement locks the tasks that it cancels, a limit the counters of its tenant: on their own they
        # delay no other flush.
        alone: list[list[int]] = []
        together: dict[str, list[int]] = {"": []}
        for index in indices:
            task = tasks[index]
            if task.replaces:
                alone.append([index])
                continue
            tenant_id = task.tenant_id if task.limited or task.limits else ""
            # After the others, whom it may name; it locks its prerequisites.
            group = f"{tenant_id} after" if task.after else tenant_id
            together.setdefault(group, []).append(index)
        for chosen in (*together.values(), *alone):
            await self._bisect(tasks, chosen, results)

    async def _bisect(
        self, tasks: Sequence[NewTask], indices: Sequence[int], results: dict[int, Result]
    ) -> None:
        if not indices:
            return
        chosen = [tasks[index] for index in indices]
        try:
            await self.prepare(chosen)
            eager = self._eager.take(chosen) if self._eager is not None else None
            if is_single(chosen):
                await self._store_single(tasks, indices, results, eager)
            else:
                results.update(zip(indices, await self._transact(chosen, eager), strict=True))
        except Refused as refused:
            await self._without(tasks, indices, refused.errors, results)
        except pg.UniqueViolation:
            await self._without(tasks, indices, await self.find_taken(chosen), results)
        except _AT_FAULT as error:
            if len(indices) == 1:
                results[indices[0]] = _reason(error)
                return
            middle = len(indices) // 2
            await self._bisect(tasks, indices[:middle], results)
            await self._bisect(tasks, indices[middle:], results)
        except TaskyardError as error:
            results.update((index, error) for index in indices)

    async def _without(
        self,
        tasks: Sequence[NewTask],
        indices: Sequence[int],
        errors: dict[int, Exception],
        results: dict[int, Result],
    ) -> None:
        results.update((indices[position], error) for position, error in errors.items())
        await self._bisect(tasks, [index for index in indices if index not in results], results)

    async def _store_single(
        self,
        tasks: Sequence[NewTask],
        indices: Sequence[int],
        results: dict[int, Result],
        eager: EagerLeases | None,
    ) -> None:
        """Store tasks in one exchange with the database, and a second one if a request is repeated.

        In one, the loser of a race for a request id does not see the winner.
        """
        chosen = [tasks[index] for index in indices]

        async def work(tx: Tx) -> tuple[dict[int, CreateResult], CommitNotice]:
            await failpoints.CREATE_BEFORE_COMMIT.reach()
            return await write_single(tx, chosen, eager)

        stored = await self._attempt(work, eager, single=True)
        results.update((indices[position], result) for position, result in stored.items())
        repeated = {index: tasks[index] for index in indices if index not in results}
        if repeated:
            try:
                async with self._pool.reading() as tx:
                    results.update(await find_requests(tx, repeated))
            except (TaskyardError, *_AT_FAULT) as error:
                # Of these alone: the others are committed.
                reason = _reason(error) if isinstance(error, psycopg.Error) else error
                results.update(dict.fromkeys(repeated, reason))
            # What is not found was removed since: the request is a new one.
            await self._bisect(tasks, [index for index in repeated if index not in results], results)

    async def _transact(self, tasks: Sequence[NewTask], eager: EagerLeases | None) -> list[CreateResult]:
        # A repeated request fails the others, so its statement must not commit by itself.
        single = is_single(tasks) and not any(task.request_id for task in tasks)

        async def work(tx: Tx) -> tuple[list[CreateResult], CommitNotice]:
            if single:
                await failpoints.CREATE_BEFORE_COMMIT.reach()
                return await write(tx, tasks, eager)
            outcome = await write(tx, tasks, eager)
            await failpoints.CREATE_BEFORE_COMMIT.reach()
            return outcome

        return await self._attempt(work, eager, single=single)

    async def _attempt(
        self,
        work: Callable[[Tx], Awaitable[tuple[T, CommitNotice]]],
        eager: EagerLeases | None,
        *,
        single: bool,
    ) -> T:
        committed = False
        try:
            results, notice = await self._pool.attempt(work, single=single)
            committed = True
            if eager is not None:
                await failpoints.CREATE_BEFORE_PUSH.reach()
        finally:
            if eager is not None:
                eager.settle(committed=committed)
        await failpoints.CREATE_AFTER_COMMIT.reach()
        self._after_commit(notice)
        return results

    async def store(self, tasks: Sequence[NewTask], transact: Callable[[], Awaitable[T]]) -> T:
        """The result of a transaction that stores these tasks among other things.

        Raises Refused for tasks that cannot be stored, also for ids that are taken.
        """
        await self.prepare(tasks)
        try:
            return await transact()
        except pg.UniqueViolation:
            taken = await self.find_taken(tasks)
            if not taken:
                raise
            raise Refused(taken) from None

    async def prepare(self, tasks: Sequence[NewTask]) -> None:
        """Store the placement classes of tasks before their transaction. Raises Refused beyond the limit."""
        over = await self._classes.ensure((t.tenant_id, t.class_id, t.class_definition) for t in tasks)
        if over:
            keys = [(task.tenant_id, task.class_id) for task in tasks]
            raise Refused({position: over[key] for position, key in enumerate(keys) if key in over})

    async def find_taken(self, tasks: Sequence[NewTask]) -> dict[int, Exception]:
        """The tasks whose ids exist, by their positions."""
        async with self._pool.reading() as tx:
            rows = await tx.fetch(
                statement("find_taken_ids"),
                {
                    "tenant_ids": arrays.texts([task.tenant_id for task in tasks]),
                    "task_ids": arrays.texts([task.task_id for task in tasks]),
                },
            )
        taken = {(row[0], row[1]) for row in rows}
        return {
            position: AlreadyExists("task", task.name)
            for position, task in enumerate(tasks)
            if task.key in taken
        }


def _elect(tasks: Sequence[NewTask], indices: Iterable[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """The first task of each request id and task id, and all others with the one they depend on."""
    chosen = list(indices)
    plain = not any(tasks[index].request_id for index in chosen)
    if plain and len({tasks[index].key for index in chosen}) == len(chosen):
        return chosen, []
    first: dict[object, int] = {}
    leaders: list[int] = []
    followers: list[tuple[int, int]] = []
    for index in chosen:
        task = tasks[index]
        identities: list[object] = [task.key]
        if task.request_id:
            identities.append((task.tenant_id, task.method, task.request_id, "request"))
        leader = next((first[identity] for identity in reversed(identities) if identity in first), None)
        if leader is not None:
            followers.append((index, leader))
            continue
        leaders.append(index)
        first.update(dict.fromkeys(identities, index))
    return leaders, followers


def _follow(task: NewTask, leader: NewTask, result: Result) -> Result | None:
    """What becomes of a task after its leader's result; None if that does not decide it."""
    same_request = bool(task.request_id) and task.request_id == leader.request_id
    if same_request and task.body_hash == leader.body_hash:
        return result if isinstance(result, Exception) else _replay(leader, result)
    if isinstance(result, Exception):
        return None
    if same_request:
        first = _replay(leader, result)
        return RequestIdReused("task", f"tenants/{first.tenant_id}/tasks/{first.task_id}", task.request_id)
    return AlreadyExists("task", task.name) if isinstance(result, Created) else None


def _replay(leader: NewTask, result: CreateResult) -> Replayed:
    task_id = leader.task_id if isinstance(result, Created) else result.task_id
    return Replayed(leader.tenant_id, task_id)


def _reason(error: psycopg.Error) -> Exception:
    if isinstance(error, psycopg.DataError):
        reason = (error.diag.message_primary or "it is not a value of its column").splitlines()[0]
        return FieldInvalid.of("task", f"the database refuses a value: {reason}")
    if isinstance(error, pg.LockNotAvailable | pg.QueryCanceled):
        return overloaded("the time a lock or statement may take")
    return error
