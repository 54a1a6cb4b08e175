"""RunSchedule, BackfillSchedule and PreviewSchedule: instants outside of a schedule's own course."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from itertools import islice
from typing import Any

from taskyard.errors import FieldInvalid
from taskyard.v1 import schedule_pb2, schedule_service_pb2, task_service_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.schedule_plan import Overlap
from taskyard_taskdb.domain.schedule_times import Planned, Times, basic_format, extended_format
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.rpc import access, convert
from taskyard_taskdb.rpc.schedule_definitions import (
    Repeat,
    ScheduleDefinitions,
    check_time,
    check_times,
    read_times,
)
from taskyard_taskdb.rpc.schedules import find_schedule, visible_schedule
from taskyard_taskdb.rpc.times import set_time, to_datetime
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.create import flush
from taskyard_taskdb.storage.create.creator import AfterCommit, TaskCreator
from taskyard_taskdb.storage.create.new_task import Created, CreateResult, Dropped, NewTask, Refused, Replayed
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.schedule import firing, schedules
from taskyard_taskdb.storage.schedule.schedules import ScheduleRow
from taskyard_taskdb.storage.tenant.tenants import TenantCache
from taskyard_taskdb.storage.transition.load import database_time

Service = schedule_service_pb2

MAX_BACKFILL = 1000
DEFAULT_PREVIEW = 10
_SLICE = 50

_Stored = tuple[list[CreateResult], CommitNotice]


class ScheduleRunHandler:
    """The calls of ScheduleService that make or preview instants."""

    def __init__(
        self,
        pool: Pool,
        tenants: TenantCache,
        creator: TaskCreator,
        definitions: ScheduleDefinitions,
        after_commit: AfterCommit,
    ) -> None:
        self._pool = pool
        self._tenants = tenants
        self._creator = creator
        self._definitions = definitions
        self._after_commit = after_commit

    async def RunSchedule(
        self, request: Service.RunScheduleRequest, context: Any
    ) -> Service.RunScheduleResponse:
        row = await find_schedule(self._pool, visible_schedule(request.name))
        actor = access.caller()
        async with self._pool.reading() as tx:
            now = await database_time(tx)
        # The microseconds keep it different from the ids of instants.
        task_id = f"{row.schedule_id}.{basic_format(now)[:-1]}.{now.microsecond:06}Z"
        body = hashlib.sha256(request.name.encode()).digest()[:16]
        task = await self._definitions.make_task(
            row, now, task_id=task_id, repeat=Repeat(request.request_id, body)
        )

        async def work(tx: Tx) -> _Stored:
            await schedules.lock(tx, row.key)
            results, notice = await flush.write(tx, [task])
            await firing.watch_failures(tx, [row], results)
            if not isinstance(results[0], Replayed):
                await _log_run(tx, row, actor, now, results[0], request.request_id)
            return results, notice

        [result] = await self._store([task], work)
        return await self._response(result)

    async def BackfillSchedule(
        self, request: Service.BackfillScheduleRequest, context: Any
    ) -> Service.BackfillScheduleResponse:
        row = await find_schedule(self._pool, visible_schedule(request.name))
        actor = access.caller()
        instants = await self._past_instants(request, row)
        overlap = _backfill_overlap(request.overlap, self._definitions.overlap(row))
        made: list[NewTask] = []
        for position, instant in enumerate(instants):
            if position % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            made.append(await self._definitions.make_task(row, instant, overlap=overlap))
        taken = await self._creator.find_taken(made) if made else {}
        fresh = [task for position, task in enumerate(made) if position not in taken]
        response = Service.BackfillScheduleResponse(
            tasks=[task.name for task in fresh], existing_count=len(taken)
        )
        if not fresh:
            return response
        (await self._tenants.admit(row.tenant_id)).check_batch(len(fresh))
        details = {
            "start_time": extended_format(to_datetime(request.start_time)),
            "end_time": extended_format(to_datetime(request.end_time)),
            "count": len(fresh),
        }

        async def work(tx: Tx) -> _Stored:
            await schedules.lock(tx, row.key)
            results, notice = await flush.write(tx, fresh)
            await firing.watch_failures(tx, [row] * len(fresh), results)
            now = await database_time(tx)
            await append_change(
                tx,
                ChangeEvent.SCHEDULE_BACKFILLED,
                *row.key,
                actor,
                now,
                version=row.version,
                details=details,
            )
            return results, notice

        await self._store(fresh, work, validate_only=request.validate_only)
        return response

    async def PreviewSchedule(
        self, request: Service.PreviewScheduleRequest, context: Any
    ) -> Service.PreviewScheduleResponse:
        access.visible_tenant(request.parent)
        if bool(request.name) == request.HasField("schedule"):
            raise FieldInvalid.of("name", "must be set, or schedule must be, not both")
        if request.name:
            row = await find_schedule(self._pool, visible_schedule(request.name))
            times = self._definitions.times(row)
        else:
            await check_times(request.schedule)
            times = read_times(request.schedule, request.schedule.uid)
        if request.HasField("start_time"):
            check_time(request.start_time, "start_time")
            start = to_datetime(request.start_time)
        else:
            async with self._pool.reading() as tx:
                start = await database_time(tx)
        count = request.count or DEFAULT_PREVIEW
        found = await asyncio.to_thread(lambda: list(islice(times.after(start), count)))
        response = Service.PreviewScheduleResponse()
        for planned in found:
            _fill(response.instants.add(), planned, times)
        return response

    async def _past_instants(
        self, request: Service.BackfillScheduleRequest, row: ScheduleRow
    ) -> list[datetime]:
        for name in ("start_time", "end_time"):
            check_time(getattr(request, name), name)
        start, end = to_datetime(request.start_time), to_datetime(request.end_time)
        async with self._pool.reading() as tx:
            now = await database_time(tx)
        if end > now:
            raise FieldInvalid.of("end_time", f"is in the future; it is {extended_format(now)}")
        if start >= end:
            raise FieldInvalid.of("start_time", "must be before end_time")
        # Due instants that are not handled yet belong to the sweep.
        before = min(end, row.next_scheduled_time) if row.next_scheduled_time is not None else end
        times = self._definitions.times(row)
        found = await asyncio.to_thread(lambda: times.between(start, before, MAX_BACKFILL + 1))
        if len(found) > MAX_BACKFILL:
            problem = f"the range has more than {MAX_BACKFILL} instants; backfill it in parts"
            raise FieldInvalid.of("end_time", problem, "max_instants")
        return found

    async def _store(
        self, wanted: list[NewTask], work: Any, *, validate_only: bool = False
    ) -> list[CreateResult]:
        transact = self._pool.rehearse if validate_only else self._pool.run
        try:
            results, notice = await self._creator.store(wanted, lambda: transact(work))
        except Refused as refused:
            _, error = min(refused.errors.items(), key=lambda entry: entry[0])
            raise error from None
        if not validate_only:
            notice.changed = True
            self._after_commit(notice)
        stored: list[CreateResult] = results
        return stored

    async def _response(self, result: CreateResult) -> Service.RunScheduleResponse:
        response = Service.RunScheduleResponse()
        if isinstance(result, Created):
            response.outcome = (
                task_service_pb2.CREATE_OUTCOME_REPLACED
                if result.replaced
                else task_service_pb2.CREATE_OUTCOME_CREATED
            )
            convert.fill_created(response.task, result, convert.FULL)
            return response
        response.outcome = (
            task_service_pb2.CREATE_OUTCOME_DROPPED
            if isinstance(result, Dropped)
            else task_service_pb2.CREATE_OUTCOME_REPLAYED
        )
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, result.tenant_id, result.task_id)
        if record is not None:
            response.task.CopyFrom(convert.task_message(record, convert.FULL))
        else:
            response.task.name = task_name(result.tenant_id, result.task_id)
        return response


def _backfill_overlap(wanted: int, of_schedule: Overlap) -> Overlap:
    if wanted:
        return Overlap(wanted)
    return Overlap.ALLOW if of_schedule is Overlap.ALLOW else Overlap.QUEUE


async def _log_run(
    tx: Tx, row: ScheduleRow, actor: Actor, now: datetime, result: CreateResult, request_id: str
) -> None:
    details: dict[str, object] = {"scheduled_time": extended_format(now)}
    if isinstance(result, Created):
        details["task"] = result.task.name
    else:
        details["blocking_task"] = task_name(result.tenant_id, result.task_id)
    await append_change(
        tx,
        ChangeEvent.SCHEDULE_RUN,
        *row.key,
        actor,
        await database_time(tx),
        version=row.version,
        request_id=request_id or None,
        details=details,
    )


def _fill(message: schedule_pb2.ScheduledInstant, planned: Planned, times: Times) -> None:
    set_time(message.scheduled_time, planned.time)
    set_time(message.fire_time, planned.fire_time)
    message.local_time = planned.time.astimezone(times.zone).isoformat(timespec="seconds")
    message.daylight_saving_note = schedule_pb2.DaylightSavingNote.ValueType(planned.note)
