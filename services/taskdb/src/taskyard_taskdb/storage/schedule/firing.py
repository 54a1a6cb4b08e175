"""Handles due instants: tasks, events and cursors in one transaction, guarded by each schedule's cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.schedule_plan import Plan
from taskyard_taskdb.domain.schedule_times import extended_format
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import ChangeRow, insert_changes, resource_change
from taskyard_taskdb.storage.create import flush
from taskyard_taskdb.storage.create.new_task import Created, CreateResult, Dropped, NewTask
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.schedule.schedules import ScheduleKey, ScheduleRow
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import database_time


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with the due instants of a schedule that was read; `task` is that of plan.fire."""

    row: ScheduleRow
    plan: Plan
    task: NewTask | None = None

    def refused(self, reason: str) -> Step:
        """The step whose task cannot be created: its instant is missed as well."""
        assert self.plan.fire is not None
        missed = (*self.plan.missed, (self.plan.fire, reason))
        return Step(self.row, replace(self.plan, missed=missed, fire=None))


class _Result(NamedTuple):
    """The columns of advance_schedules."""

    tenant_id: str
    schedule_id: str
    next_scheduled_time: datetime | None
    next_fire_time: datetime | None
    last_scheduled_time: datetime | None
    last_task_id: str | None
    fired_count: int
    skipped_count: int
    missed_count: int


async def handle(tx: Tx, steps: Sequence[Step]) -> CommitNotice:
    """Carry out the steps whose schedules are as they were read; the others are left for the next reading.

    Raises what storing the tasks raises, and then nothing is stored.
    """
    current = await _lock(tx, [step.row.key for step in steps])
    valid = [step for step in steps if current.get(step.row.key) == step.row.cursor]
    if not valid:
        return CommitNotice()
    firing = [step for step in valid if step.task is not None]
    results, notice = await flush.write(tx, [step.task for step in firing if step.task is not None])
    by_key = {step.row.key: result for step, result in zip(firing, results, strict=True)}
    now = await database_time(tx)
    changes: list[ChangeRow] = []
    advanced: list[_Result] = []
    for step in valid:
        result = by_key.get(step.row.key)
        changes += missed_changes(step.row, step.plan.missed, now)
        if result is not None and step.plan.fire is not None:
            changes.append(_fired(step.row, step.plan.fire, result, now))
        advanced.append(_advance(step, result))
    await insert_changes(tx, changes)
    await _write(tx, advanced)
    await watch_failures(tx, [step.row for step in firing], results)
    notice.changed = True
    return notice


def missed_changes(
    row: ScheduleRow, missed: Sequence[tuple[datetime, str]], now: datetime
) -> list[ChangeRow]:
    """An event for each missed instant."""
    return [
        resource_change(
            ChangeEvent.SCHEDULE_MISSED,
            row.tenant_id,
            row.schedule_id,
            SYSTEM,
            now,
            version=row.version,
            details={"scheduled_time": extended_format(time), "reason": str(reason)},
        )
        for time, reason in missed
    ]


def _fired(row: ScheduleRow, instant: datetime, result: CreateResult, now: datetime) -> ChangeRow:
    details: dict[str, object] = {"scheduled_time": extended_format(instant)}
    if isinstance(result, Created):
        event = ChangeEvent.SCHEDULE_FIRED
        details["task"] = result.task.name
        if result.replaced:
            details["replaced_tasks"] = [task_name(row.tenant_id, id) for id in result.replaced]
    else:
        event = ChangeEvent.SCHEDULE_SKIPPED
        details["blocking_task"] = task_name(result.tenant_id, result.task_id)
    return resource_change(
        event, row.tenant_id, row.schedule_id, SYSTEM, now, version=row.version, details=details
    )


def _advance(step: Step, result: CreateResult | None) -> _Result:
    fired = isinstance(result, Created)
    skipped = isinstance(result, Dropped)
    row, upcoming = step.row, step.plan.next
    if fired and row.remaining_runs == 1:
        upcoming = None
    moved = row.at(upcoming)
    return _Result(
        row.tenant_id,
        row.schedule_id,
        moved.next_scheduled_time,
        moved.next_fire_time,
        step.plan.fire if fired else None,
        result.task.task_id if isinstance(result, Created) else None,
        int(fired),
        int(skipped),
        len(step.plan.missed),
    )


async def _lock(tx: Tx, keys: Sequence[ScheduleKey]) -> dict[ScheduleKey, tuple[object, ...]]:
    rows = await tx.fetch(statement("lock_schedules"), _keys(sorted(keys)))
    return {(row[0], row[1]): tuple(row[2:]) for row in rows}


def _keys(keys: Sequence[ScheduleKey]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "schedule_ids": arrays.texts([key[1] for key in keys]),
    }


async def _write(tx: Tx, results: Sequence[_Result]) -> None:
    columns = list(zip(*results, strict=True))
    await tx.execute(
        statement("advance_schedules"),
        {
            "tenant_ids": arrays.texts(columns[0]),
            "schedule_ids": arrays.texts(columns[1]),
            "next_scheduled_times": arrays.timestamps(columns[2]),
            "next_fire_times": arrays.timestamps(columns[3]),
            "last_scheduled_times": arrays.timestamps(columns[4]),
            "last_task_ids": arrays.texts(columns[5]),
            "fired": arrays.bigints(columns[6]),
            "skipped": arrays.bigints(columns[7]),
            "missed": arrays.bigints(columns[8]),
        },
    )


async def watch_failures(tx: Tx, rows: Sequence[ScheduleRow], results: Sequence[CreateResult]) -> None:
    """Note the new tasks of schedules that pause on a failure."""
    noted = [
        (*row.key, result.task.task_id)
        for row, result in zip(rows, results, strict=True)
        if row.pause_on_failure and isinstance(result, Created)
    ]
    if noted:
        params = _keys([entry[:2] for entry in noted])
        params["task_ids"] = arrays.texts([entry[2] for entry in noted])
        await tx.execute(statement("note_schedule_tasks"), params)


class Ended(NamedTuple):
    """A task of a schedule that pauses on a failure, which has ended; phase 0 if it is gone."""

    tenant_id: str
    schedule_id: str
    task_id: str
    phase: int


async def ended_tasks(tx: Tx, size: int) -> list[Ended]:
    """Noted tasks that have ended or are gone, unlocked."""
    return [Ended(*row) for row in await tx.fetch(statement("ended_schedule_tasks"), (size,))]


async def forget_tasks(tx: Tx, ended: Sequence[Ended]) -> None:
    """Delete what was noted of these tasks."""
    params = _keys([(entry.tenant_id, entry.schedule_id) for entry in ended])
    params["task_ids"] = arrays.texts([entry.task_id for entry in ended])
    await tx.execute(statement("forget_schedule_tasks"), params)
