"""Reports of external tasks: applied at once, or stored and applied later, per task in order."""

from __future__ import annotations

import random
from collections.abc import Callable

from taskyard.errors import NotFound, TaskyardError
from taskyard_taskdb.domain.event import ExternalReported
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.action.actions import AfterCommit, expect, is_repeat
from taskyard_taskdb.storage.change_log.append import ChangeRow, insert_changes
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read.tasks import Key
from taskyard_taskdb.storage.report.rejections import rejection
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.write import write

ReadReport = Callable[[bytes, TaskState, Actor], ExternalReported]
"""The event that a stored report is for a task as it is now."""

_PAGE = 100
_rng = random.Random()


class ReportInbox:
    """The durable inbox; `after_commit` gets the notice of each committed transaction."""

    def __init__(self, pool: Pool, read_report: ReadReport, after_commit: AfterCommit) -> None:
        self._pool = pool
        self._read_report = read_report
        self._after_commit = after_commit

    async def apply(
        self, key: Key, report: bytes, actor: Actor, resource_version: int, request: Request | None
    ) -> None:
        """Applies a report now, behind those of the task that are stored.

        Raises NotFound, ResourceVersionMismatch, RequestIdReused and what the lifecycle refuses with.
        """

        async def work(tx: Tx) -> CommitNotice:
            if request is not None and await is_repeat(tx, Method.REPORT_TASK_STATUS, request):
                return CommitNotice()
            loaded = await load_for_update(tx, [key])
            task = expect(loaded.tasks, key, resource_version)
            drained = await self._drain(tx, task, loaded)
            event = self._read_report(report, drained[-1].task if drained else task, actor)
            last = apply(drained[-1].task if drained else task, event, loaded.now, _rng)
            return await write(tx, [*drained, last])

        self._after_commit(await self._pool.run(work))

    async def store(self, key: Key, report: bytes, actor: Actor, request: Request | None) -> None:
        """Stores a report, then applies what is stored of the task. Raises NotFound, RequestIdReused."""

        async def work(tx: Tx) -> None:
            if request is not None and await is_repeat(tx, Method.REPORT_TASK_STATUS, request):
                return
            if await tx.execute(statement("insert_report"), (actor.id, report, *key)) == 0:
                raise NotFound("task", task_name(*key))

        await self._pool.run(work)
        await self.apply_stored(key)

    async def apply_stored(self, key: Key) -> int:
        """Applies the stored reports of a task, a page of them; returns how many those were."""

        async def work(tx: Tx) -> tuple[CommitNotice, int]:
            loaded = await load_for_update(tx, [key])
            task = loaded.tasks.get(key)
            if task is None:
                return CommitNotice(), await tx.execute(statement("forget_reports"), key)
            counted: list[int] = []
            drained = await self._drain(tx, task, loaded, counted)
            return await write(tx, drained), len(counted)

        notice, count = await self._pool.run(work)
        self._after_commit(notice)
        return count

    async def apply_all(self, limit: int = 100) -> int:
        """Applies stored reports of up to `limit` tasks that a process left behind when it ended."""
        async with self._pool.reading() as tx:
            keys = [(row[0], row[1]) for row in await tx.fetch(statement("find_reported_tasks"), (limit,))]
        return sum([await self.apply_stored(key) for key in keys])

    async def _drain(
        self, tx: Tx, task: TaskState, loaded: Loaded, counted: list[int] | None = None
    ) -> list[Transition]:
        """The transitions of the stored reports, which are removed; what is none is dropped and audited."""
        rows = await tx.fetch(statement("take_reports"), (task.tenant_id, task.task_id, _PAGE))
        transitions: list[Transition] = []
        rejected: list[ChangeRow] = []
        for _, actor_id, report in sorted(rows):
            current = transitions[-1].task if transitions else task
            actor = Actor(ActorType.USER, actor_id)
            try:
                event = self._read_report(report, current, actor)
                transitions.append(apply(current, event, loaded.now, _rng))
            except TaskyardError as error:
                rejected.append(rejection(current, actor, loaded.now, error))
        await insert_changes(tx, rejected)
        if counted is not None:
            counted.extend(row[0] for row in rows)
        return transitions
