"""Updates of external tasks in bulk: accepted many in one statement, applied by each replica's own writer.

The inbox is the queue. A replica applies what it has accepted; what it did not come to before it ended is
applied by the sweep of the leader. Both lock a task before they take its updates, oldest first, so that the
updates of one task are applied in the order in which they were accepted, whichever process applies them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from taskyard.errors import NotFound, Overloaded, TaskTerminal, TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.event import Edited, ExternalReported
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import ActorType, Kind
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.action.actions import AfterCommit
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.change_log.append import ChangeRow, insert_changes
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord
from taskyard_taskdb.storage.report.external_inbox import ReadReport, ReportInbox
from taskyard_taskdb.storage.report.rejections import rejection
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.write import write

log = get_log(__name__)

# Updates that a replica has accepted and not applied; beyond it, it accepts no more for a second.
MAX_BACKLOG = 50_000
_MAX_TASKS = 200
_MAX_UPDATES = 1000
_RETRY_SECONDS = 0.5
# Between two transactions of the writer: what arrives meanwhile shares the next one. At 1,500 updates
# a second it saves a fifth of taskdb's CPU and half of PostgreSQL's.
_GATHER_SECONDS = 0.05
_rng = random.Random()

Respec = Callable[[bytes], bytes]
"""A task's spec with another input."""


@dataclass(frozen=True, slots=True)
class Update:
    """A report of one task, as it is stored."""

    key: Key
    report: bytes
    actor_id: str


class UpdateWriter(ReportInbox):
    """Accepts and applies updates; `run` is its loop in the background."""

    def __init__(self, pool: Pool, read_report: ReadReport, after_commit: AfterCommit) -> None:
        super().__init__(pool, read_report, after_commit)
        self._accepts: Batcher[Update, None] = Batcher(self._insert, weigh=lambda u: len(u.report))
        self._waiting: dict[Key, None] = {}
        self._arrived = asyncio.Event()
        self._max_tasks = _MAX_TASKS
        self.backlog = 0

    async def push(self, update: Update) -> None:
        """Store an update durably. Raises NotFound, or Overloaded while too many wait."""
        (error,) = await self.push_all([update])
        if error is not None:
            raise error

    async def push_all(self, updates: Sequence[Update]) -> list[Exception | None]:
        """Store updates durably, those of one task in this order; None, or what `push` raises, for each."""
        if self.backlog >= MAX_BACKLOG:
            limit = f"{MAX_BACKLOG} updates that wait to be applied"
            return [Overloaded("the server", limit, retry_after=timedelta(seconds=1))] * len(updates)
        results = await self._accepts.submit_all(updates)
        return [result if isinstance(result, Exception) else None for result in results]

    async def change(self, key: Key, report: bytes | None, actor: Actor, respec: Respec | None) -> TaskRecord:
        """Replace input and status at once, behind what is stored; the task as it is then.

        Raises NotFound, also for a task that is not external, and what the lifecycle refuses with.
        """

        async def work(tx: Tx) -> tuple[CommitNotice, TaskRecord]:
            loaded = await load_for_update(tx, [key])
            task = loaded.tasks.get(key)
            if task is None or not task.external:
                raise NotFound("task", task_name(*key))
            steps = await self._drain(tx, task, loaded)
            before = current = steps[-1].task if steps else task
            if respec is not None:
                steps.append(apply(current, Edited(actor=actor), loaded.now, _rng))
                current = steps[-1].task
            if report is not None:
                event = self._read_report(report, current, actor)
                _check_end(before, event)
                steps.append(apply(current, event, loaded.now, _rng))
            notice = await write(tx, steps)
            if respec is not None:
                spec = respec((await _read(tx, key)).spec)
                await tx.execute(statement("replace_spec"), (spec, *key))
            return notice, await _read(tx, key)

        notice, record = await self._pool.run(work)
        self._after_commit(notice)
        return record

    async def apply_all(self, limit: int = _MAX_TASKS) -> int:
        """Applies stored updates of up to `limit` tasks: what a process that ended had not come to."""
        async with self._pool.reading() as tx:
            keys = [(row[0], row[1]) for row in await tx.fetch(statement("find_reported_tasks"), (limit,))]
        return len(await self._apply_some(keys)) if keys else 0

    async def run(self) -> None:
        """Apply what this replica has accepted, until cancelled."""
        while True:
            await self._arrived.wait()
            keys = list(self._waiting)[: self._max_tasks]
            for key in keys:
                del self._waiting[key]
            if not self._waiting:
                self._arrived.clear()
            await self._work(keys)
            await asyncio.sleep(_GATHER_SECONDS)

    async def close(self) -> None:
        """Accept nothing more, and finish what was accepted as far as the database lets it."""
        await self._accepts.close()
        while self._waiting:
            keys = list(self._waiting)
            self._waiting.clear()
            with contextlib.suppress(TaskyardError):
                await self._apply_some(keys)

    async def _work(self, keys: Sequence[Key]) -> None:
        try:
            taken = await self._apply_some(keys)
        except TaskyardError as error:
            # What fails together may succeed in smaller parts; nothing is lost, it stays in the inbox.
            log.failure("global_updates_postponed", error, tasks=len(keys))
            self._max_tasks = max(1, len(keys) // 2)
            self._wake(keys)
            await asyncio.sleep(_RETRY_SECONDS)
            return
        self._max_tasks = min(_MAX_TASKS, self._max_tasks * 2)
        if len(taken) >= _MAX_UPDATES:
            self._wake(keys)
        elif not self._waiting:
            # Others may have applied what was accepted here, so the count begins anew when nothing waits.
            self.backlog = 0

    async def _insert(self, updates: list[Update]) -> list[Exception | None]:
        found = await self._pool.run(lambda tx: _store(tx, updates))
        accepted = [update for update in updates if update.key in found]
        self.backlog += len(accepted)
        self._wake(update.key for update in accepted)
        return [None if u.key in found else NotFound("task", task_name(*u.key)) for u in updates]

    def _wake(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._waiting[key] = None
        if self._waiting:
            self._arrived.set()

    async def _apply_some(self, keys: Sequence[Key]) -> list[Row]:
        async def work(tx: Tx) -> tuple[CommitNotice, list[Row]]:
            loaded = await load_for_update(tx, keys)
            rows = await tx.fetch(statement("take_updates"), {**_arrays(loaded.tasks), "page": _MAX_UPDATES})
            missing = [key for key in keys if key not in loaded.tasks]
            if missing:
                await tx.execute(statement("forget_updates"), _arrays(missing))
            return await self._apply_rows(tx, loaded, rows), rows

        notice, rows = await self._pool.run(work)
        self._after_commit(notice)
        self.backlog = max(0, self.backlog - len(rows))
        return rows

    async def _apply_rows(self, tx: Tx, loaded: Loaded, rows: Sequence[Row]) -> CommitNotice:
        current = dict(loaded.tasks)
        steps: list[Transition] = []
        rejected: list[ChangeRow] = []
        for _, tenant_id, task_id, actor_id, report in sorted(rows):
            task = current[tenant_id, task_id]
            actor = Actor(ActorType.USER, actor_id)
            try:
                step = apply(task, self._read_report(report, task, actor), loaded.now, _rng)
            except TaskyardError as error:
                rejected.append(rejection(task, actor, loaded.now, error))
                continue
            current[tenant_id, task_id] = step.task
            steps.append(step)
        await insert_changes(tx, rejected)
        return await write(tx, steps)


def _check_end(task: TaskState, event: ExternalReported) -> None:
    """Raises TaskTerminal for new details of a task that has ended: a repeat of its end would drop them."""
    if task.phase.terminal and event.details is not None and event.details != (task.details or b""):
        raise TaskTerminal(task.name, task.phase.name)


async def _read(tx: Tx, key: Key) -> TaskRecord:
    record = await tasks.read(tx, *key)
    assert record is not None, "the task is locked"
    return record


async def _store(tx: Tx, updates: Sequence[Update]) -> set[Key]:
    params = {
        **_arrays([update.key for update in updates]),
        "actor_ids": arrays.texts([update.actor_id for update in updates]),
        "reports": arrays.byteas([update.report for update in updates]),
        "external": int(Kind.EXTERNAL),
    }
    return {(row[0], row[1]) for row in await tx.fetch(statement("insert_updates"), params)}


def _arrays(keys: Iterable[Key]) -> dict[str, object]:
    listed = list(keys)
    return {
        "tenant_ids": arrays.texts([key[0] for key in listed]),
        "task_ids": arrays.texts([key[1] for key in listed]),
    }
