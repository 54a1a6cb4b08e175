"""Handles due instants of schedules: creates their tasks, skips or misses them, and pauses after failures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from taskyard.errors import Overloaded, TaskyardError, Unavailable
from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.schedule_plan import Policy, Reason, plan
from taskyard_taskdb.domain.schedule_times import Times
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.batch import isolate
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.create.creator import TaskCreator
from taskyard_taskdb.storage.create.new_task import NewTask, Refused
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.schedule import firing, schedules
from taskyard_taskdb.storage.schedule.firing import Ended, Step
from taskyard_taskdb.storage.schedule.schedules import ScheduleRow
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.sweep.apply_events import OnCommit
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

PAGE = 200
ENDED_PAGE = 500
_FAILURES = (Phase.FAILED, Phase.TIMED_OUT, Phase.EXHAUSTED)


class Definitions(Protocol):
    """Reads the stored definitions of schedules, which are messages of the contract."""

    def times(self, row: ScheduleRow) -> Times:
        """When it fires."""
        ...

    def policy(self, row: ScheduleRow) -> Policy:
        """Its rules for late instants."""
        ...

    async def make_task(self, row: ScheduleRow, instant: datetime) -> NewTask:
        """The task of an instant. Raises what CreateTask would raise."""
        ...


class ScheduleSweep:
    """Handles due instants, each schedule's in order; its cursor moves in the same transaction."""

    name = "schedules"
    # A schedule that another replica has stored is noticed after this time at most.
    poll = 1.0

    def __init__(
        self,
        pool: Pool,
        creator: TaskCreator,
        definitions: Definitions,
        on_commit: OnCommit,
        page: int = PAGE,
    ) -> None:
        self._pool = pool
        self._creator = creator
        self._definitions = definitions
        self._on_commit = on_commit
        self._page = page

    async def run(self, leadership: Leadership) -> float:
        await self._pause_failed(leadership)
        failed: set[tuple[str, str]] = set()
        while True:
            async with self._pool.reading() as tx:
                found, now, upcoming = await schedules.due(tx, self._page + len(failed))
            due = [row for row in found if row.key not in failed]
            if not due:
                return math.inf if upcoming is None else max(0.0, (upcoming - now).total_seconds())
            await self._handle(leadership, due, now, failed)

    async def _handle(
        self, leadership: Leadership, due: Sequence[ScheduleRow], now: datetime, failed: set[tuple[str, str]]
    ) -> None:
        def note_failure(step: Step, error: Exception) -> None:
            # Tried again in the next run; the other schedules go on.
            log.error("schedule_failed", schedule=step.row.name, error=repr(error))
            failed.add(step.row.key)

        async def apply(part: Sequence[Step]) -> None:
            await self._apply(leadership, part)

        steps: list[Step] = []
        for row in due:
            try:
                steps.append(await self._plan(row, now))
            except TaskyardError:
                raise
            except Exception:
                # A definition that this version cannot read, such as a zone that is gone. Logged with its
                # traceback; the other schedules must fire in time, and the next run tries this one again.
                log.exception("schedule_unreadable", schedule=row.name)
                failed.add(row.key)
        # A replacement locks the tasks that it cancels: on its own it delays no other schedule.
        alone = [[step] for step in steps if step.task is not None and step.task.replaces]
        together = [step for step in steps if step.task is None or not step.task.replaces]
        for group in (together, *alone):
            if group:
                await isolate(group, apply, note_failure)

    async def _plan(self, row: ScheduleRow, now: datetime) -> Step:
        assert row.next_scheduled_time is not None
        planned = plan(
            self._definitions.times(row),
            self._definitions.policy(row),
            row.next_scheduled_time,
            now,
            paused=row.paused,
            skip_until=row.skip_until,
        )
        step = Step(row, planned)
        if planned.fire is None:
            return step
        try:
            task = await self._definitions.make_task(row, planned.fire)
        except (Unavailable, Overloaded):
            raise
        except TaskyardError as error:
            return step.refused(error.reason)
        except Exception:
            # A defect must not stop all schedules: the instant counts as missed, the log has the traceback.
            log.exception("schedule_template_failed", schedule=row.name)
            return step.refused(Reason.INTERNAL)
        return Step(row, planned, task)

    async def _apply(self, leadership: Leadership, steps: Sequence[Step]) -> None:
        async def work(tx: Tx) -> CommitNotice:
            await leadership.check(tx)
            notice = await firing.handle(tx, steps)
            await failpoints.SCHEDULE_BEFORE_COMMIT.reach()
            return notice

        while True:
            tasks = [step.task for step in steps if step.task is not None]
            try:
                self._on_commit(await self._creator.store(tasks, lambda: self._pool.run(work)))
                return
            except Refused as refused:
                steps = _without(steps, tasks, refused.errors)

    async def _pause_failed(self, leadership: Leadership) -> None:
        """Pause the schedules of which a task has failed, if they want that."""
        while True:
            async with self._pool.reading() as tx:
                ended = await firing.ended_tasks(tx, ENDED_PAGE)
            if not ended:
                return

            async def work(tx: Tx, ended: Sequence[Ended] = ended) -> None:
                await leadership.check(tx)
                for entry in sorted(ended):
                    if entry.phase in _FAILURES:
                        await _pause(tx, entry)
                await firing.forget_tasks(tx, ended)

            await self._pool.run(work)
            self._on_commit(CommitNotice(changed=True))
            if len(ended) < ENDED_PAGE:
                return


async def _pause(tx: Tx, entry: Ended) -> None:
    row = await schedules.lock(tx, (entry.tenant_id, entry.schedule_id))
    if row is None or row.paused or not row.pause_on_failure:
        return
    failed = task_name(entry.tenant_id, entry.task_id)
    note = f"{failed} ended as {Phase(entry.phase).name}"
    stored = await schedules.update(tx, row.pausing(note, await database_time(tx)))
    await append_change(
        tx,
        ChangeEvent.SCHEDULE_PAUSED,
        *stored.key,
        SYSTEM,
        stored.update_time,
        version=stored.version,
        details={"reason": "FAILURE", "task": failed},
    )


def _without(steps: Sequence[Step], tasks: Sequence[NewTask], errors: dict[int, Exception]) -> list[Step]:
    """The steps with those tasks missed that cannot be stored. Raises what is no fault of a task."""
    reasons: dict[tuple[str, str], str] = {}
    for position, error in errors.items():
        if not isinstance(error, TaskyardError) or isinstance(error, Unavailable | Overloaded):
            raise error
        reasons[tasks[position].key] = error.reason
    return [
        step.refused(reasons[step.task.key]) if step.task is not None and step.task.key in reasons else step
        for step in steps
    ]
