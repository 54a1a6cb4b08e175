"""ScheduleService: definitions of schedules, and pausing them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from taskyard.errors import Aborted, AlreadyExists, FieldInvalid, NotFound, ResourceVersionMismatch
from taskyard.v1 import schedule_pb2, schedule_service_pb2
from taskyard_kit.auth import current_principal, require_tenant
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.filter_fields import SCHEDULE_FIELDS
from taskyard_taskdb.domain.names import parse_schedule_name, schedule_name, task_name
from taskyard_taskdb.domain.schedule_plan import Reason, overdue
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.rpc import access, masks
from taskyard_taskdb.rpc.access import visible_scope
from taskyard_taskdb.rpc.convert import hide_secrets
from taskyard_taskdb.rpc.ids import Uuid7
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.schedule_definitions import ScheduleDefinitions, read_times
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.storage.change_log.append import append_change, insert_changes
from taskyard_taskdb.storage.create import request_ids
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.schedule import firing, schedules
from taskyard_taskdb.storage.schedule.schedules import ScheduleKey, ScheduleRow
from taskyard_taskdb.storage.transition.load import database_time

Service = schedule_service_pb2
Schedule = schedule_pb2.Schedule

MAX_SCHEDULES = 1000
# Due instants that a change of the times misses in its own transaction; beyond that the sweep comes first.
_MAX_OVERDUE = 10_000
# Fields that the definition does not hold: those of the server, and those with a column.
_OUTPUT = (
    "name", "uid", "resource_version", "create_time", "update_time", "next_scheduled_time", "next_fire_time",
    "last_scheduled_time", "last_task", "fired_count", "skipped_count", "missed_count",
)  # fmt: skip
_COLUMNS = ("paused", "pause_note", "remaining_runs")
_MUTABLE = tuple(
    name
    for name in Schedule.DESCRIPTOR.fields_by_name
    if name not in _OUTPUT and name not in ("paused", "pause_note")
)
_TIMES = ("cron", "every", "offset", "time_zone", "start_time", "end_time", "jitter")


class ScheduleHandler:
    """ScheduleService, except for the calls that make or preview instants."""

    def __init__(self, pool: Pool, bus: Bus, definitions: ScheduleDefinitions) -> None:
        self._pool = pool
        self._bus = bus
        self._definitions = definitions
        self._ids = Uuid7()

    async def CreateSchedule(
        self, request: Service.CreateScheduleRequest, context: Any
    ) -> Service.CreateScheduleResponse:
        key = (access.visible_tenant(request.parent), request.schedule_id)
        await self._check(key, request.schedule)
        actor = access.caller()

        async def work(tx: Tx) -> ScheduleRow:
            if request.request_id and await _is_repeat(tx, request, key):
                found = await schedules.find(tx, key)
                if found is not None:
                    return found
            return await self._insert(tx, key, request.schedule, actor, request.request_id)

        if request.validate_only:
            made = await self._pool.rehearse(work)
        else:
            made = await self._pool.run(work)
            self._bus.publish(CommitNotice(changed=True))
        return Service.CreateScheduleResponse(schedule=schedule_message(made))

    async def GetSchedule(
        self, request: Service.GetScheduleRequest, context: Any
    ) -> Service.GetScheduleResponse:
        found = await find_schedule(self._pool, visible_schedule(request.name))
        return Service.GetScheduleResponse(schedule=_visible_message(found))

    async def ListSchedules(
        self, request: Service.ListSchedulesRequest, context: Any
    ) -> Service.ListSchedulesResponse:
        tenant_id = visible_scope(request.parent)
        async with self._pool.reading(planned=True) as tx:

            async def read(after: tuple[str, ...], size: int) -> list[ScheduleRow]:
                return [_listed(row) for row in await schedules.page(tx, tenant_id, after, size)]

            found, token = await read_page(
                read,
                lambda row: row.key,
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListSchedules", request.parent),
                key_size=2,
                filter_text=request.filter,
                fields=SCHEDULE_FIELDS,
                values=_values,
                # Templates hold payloads, which the list leaves out.
                step=50,
            )
        response = Service.ListSchedulesResponse(next_page_token=token)
        response.schedules.extend(map(_visible_message, found))
        return response

    async def UpdateSchedule(
        self, request: Service.UpdateScheduleRequest, context: Any
    ) -> Service.UpdateScheduleResponse:
        given = request.schedule
        key = visible_schedule(given.name, "schedule.name")
        paths = masks.chosen_paths(request.update_mask.paths, given, _MUTABLE, "a schedule")
        actor = access.caller()
        while True:
            async with self._pool.reading() as tx:
                before = await schedules.find(tx, key)
            # The template is compared with schemas, which may take long: without a lock.
            changed = _changed(before, given, paths)
            if before is None and not request.allow_missing:
                raise NotFound("schedule", given.name)
            await self._check(key, changed)

            async def work(
                tx: Tx, before: ScheduleRow | None = before, changed: Schedule = changed
            ) -> ScheduleRow | None:
                found = await schedules.lock(tx, key)
                if (found.version if found else 0) != (before.version if before else 0):
                    return None
                if found is None:
                    return await self._insert(tx, key, changed, actor)
                return await self._update(tx, found, given, changed, actor)

            stored = await (self._pool.rehearse(work) if request.validate_only else self._pool.run(work))
            if stored is not None:
                break
        self._bus.publish(CommitNotice(changed=True))
        return Service.UpdateScheduleResponse(schedule=schedule_message(stored))

    async def _update(
        self, tx: Tx, found: ScheduleRow, given: Schedule, changed: Schedule, actor: Actor
    ) -> ScheduleRow:
        check_version(found, given.resource_version)
        remaining = _remaining(changed)
        row = found._replace(
            definition=_definition(changed),
            pause_on_failure=changed.pause_on_failure,
            remaining_runs=remaining,
        )
        before = Schedule.FromString(found.definition)
        moved = any(getattr(before, name) != getattr(changed, name) for name in _TIMES)
        if row.definition == found.definition and remaining == found.remaining_runs:
            return found
        now = await database_time(tx)
        if moved or remaining == 0:
            # The cursor leaves instants behind that were due and not handled.
            row = (await self._miss_overdue(tx, row, found, now)).at(None)
        if not row.paused and row.next_fire_time is None:
            row = self._upcoming(row, changed, now)
        stored = await schedules.update(tx, row)
        await _log(tx, ChangeEvent.SCHEDULE_UPDATED, stored, actor)
        return stored

    async def DeleteSchedule(
        self, request: Service.DeleteScheduleRequest, context: Any
    ) -> Service.DeleteScheduleResponse:
        key = visible_schedule(request.name)
        actor = access.caller()

        async def work(tx: Tx) -> None:
            found = await _lock(tx, key)
            check_version(found, request.resource_version)
            now = await database_time(tx)
            await self._miss_overdue(tx, found, found, now)
            await schedules.delete(tx, key)
            deleted = found._replace(version=found.version + 1, update_time=now)
            await _log(tx, ChangeEvent.SCHEDULE_DELETED, deleted, actor)

        await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return Service.DeleteScheduleResponse()

    async def PauseSchedule(
        self, request: Service.PauseScheduleRequest, context: Any
    ) -> Service.PauseScheduleResponse:
        key = visible_schedule(request.name)
        check_text(request.note, "note")
        actor = access.caller()

        async def work(tx: Tx) -> ScheduleRow:
            found = await _lock(tx, key)
            if found.paused and found.pause_note == request.note:
                return found
            stored = await schedules.update(tx, found.pausing(request.note, await database_time(tx)))
            await _log(tx, ChangeEvent.SCHEDULE_PAUSED, stored, actor, note=request.note)
            return stored

        stored = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return Service.PauseScheduleResponse(schedule=schedule_message(stored))

    async def ResumeSchedule(
        self, request: Service.ResumeScheduleRequest, context: Any
    ) -> Service.ResumeScheduleResponse:
        key = visible_schedule(request.name)
        actor = access.caller()

        async def work(tx: Tx) -> ScheduleRow:
            found = await _lock(tx, key)
            if not found.paused:
                return found
            now = await database_time(tx)
            row = found._replace(paused=False, pause_note="", skip_until=now)
            # Instants that were due before the pause, and that the sweep has not missed yet, keep the cursor.
            if found.next_fire_time is None:
                row = self._upcoming(row, Schedule.FromString(found.definition), now)
            stored = await schedules.update(tx, row)
            await _log(tx, ChangeEvent.SCHEDULE_RESUMED, stored, actor)
            return stored

        stored = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return Service.ResumeScheduleResponse(schedule=schedule_message(stored))

    async def _check(self, key: ScheduleKey, schedule: Schedule) -> None:
        check_text(schedule.description, "schedule.description")
        check_text(schedule.pause_note, "schedule.pause_note")
        await self._definitions.check(key, schedule)

    async def _insert(
        self, tx: Tx, key: ScheduleKey, given: Schedule, actor: Actor, request_id: str = ""
    ) -> ScheduleRow:
        if await schedules.count(tx, key[0], MAX_SCHEDULES) >= MAX_SCHEDULES:
            problem = (
                f"tenant {key[0]} has {MAX_SCHEDULES} schedules, the most that a tenant may have; delete one"
            )
            raise FieldInvalid.of("parent", problem)
        now = await database_time(tx)
        row = ScheduleRow(
            *key,
            UUID(bytes=self._ids.draw()),
            version=1,
            create_time=now,
            update_time=now,
            definition=_definition(given),
            paused=given.paused,
            pause_note=given.pause_note if given.paused else "",
            pause_on_failure=given.pause_on_failure,
            remaining_runs=_remaining(given),
            next_scheduled_time=None,
            next_fire_time=None,
            skip_until=None,
            last_scheduled_time=None,
            last_task_id=None,
            fired_count=0,
            skipped_count=0,
            missed_count=0,
        )
        made = await schedules.insert(tx, row if row.paused else self._upcoming(row, given, now))
        if made is None:
            raise AlreadyExists("schedule", schedule_name(*key))
        await _log(tx, ChangeEvent.SCHEDULE_CREATED, made, actor, request_id)
        return made

    def _upcoming(self, row: ScheduleRow, schedule: Schedule, now: datetime) -> ScheduleRow:
        """The row with its cursor at the first instant after now."""
        if row.remaining_runs == 0:
            return row.at(None)
        return row.at(read_times(schedule, str(row.uid)).first_after(now))

    async def _miss_overdue(
        self, tx: Tx, row: ScheduleRow, before: ScheduleRow, now: datetime
    ) -> ScheduleRow:
        """Miss the instants that were due before a change and that the sweep has not handled."""
        if before.next_scheduled_time is None:
            return row
        times = self._definitions.times(before)
        found = overdue(times, before.next_scheduled_time, now, _MAX_OVERDUE)
        if len(found) == _MAX_OVERDUE:
            raise Aborted(
                message=f"{before.name} has more than {_MAX_OVERDUE} due instants; try again in a few seconds"
            )
        await insert_changes(
            tx, firing.missed_changes(before, [(time, Reason.CHANGED) for time in found], now)
        )
        return row._replace(missed_count=row.missed_count + len(found))


def visible_schedule(name: str, field: str = "name") -> ScheduleKey:
    """Tenant id and schedule id. Raises FieldInvalid, or NotFound for a tenant that is not visible."""
    key = parse_schedule_name(name, field)
    require_tenant(key[0], "schedule", name)
    return key


async def find_schedule(pool: Pool, key: ScheduleKey) -> ScheduleRow:
    """The schedule. Raises NotFound."""
    async with pool.reading() as tx:
        found = await schedules.find(tx, key)
    if found is None:
        raise NotFound("schedule", schedule_name(*key))
    return found


async def _lock(tx: Tx, key: ScheduleKey) -> ScheduleRow:
    found = await schedules.lock(tx, key)
    if found is None:
        raise NotFound("schedule", schedule_name(*key))
    return found


def check_version(found: ScheduleRow, wanted: int) -> None:
    """Raises ResourceVersionMismatch for another version than the wanted one; 0 wants none."""
    if wanted and wanted != found.version:
        raise ResourceVersionMismatch(found.name, str(wanted), str(found.version))


def _changed(before: ScheduleRow | None, given: Schedule, paths: list[masks.Path]) -> Schedule:
    """The schedule after a change; a missing one begins as it is given."""
    if before is None:
        return given
    after = Schedule.FromString(before.definition)
    if before.remaining_runs is not None:
        after.remaining_runs = before.remaining_runs
    for path in paths:
        masks.copy(given, after, path)
    return after


def _remaining(given: Schedule) -> int | None:
    return given.remaining_runs if given.HasField("remaining_runs") else None


def _definition(given: Schedule) -> bytes:
    definition: Any = Schedule()
    definition.CopyFrom(given)
    for name in (*_OUTPUT, *_COLUMNS):
        definition.ClearField(name)
    template = definition.template
    for name in ("name", "status"):
        template.ClearField(name)
    for name in list(template.metadata.DESCRIPTOR.fields_by_name):
        if name not in ("labels", "annotations"):
            template.metadata.ClearField(name)
    encoded: bytes = definition.SerializeToString(deterministic=True)
    return encoded


def _listed(row: ScheduleRow) -> ScheduleRow:
    """The row without what a list leaves out."""
    definition = Schedule.FromString(row.definition)
    definition.template.metadata.ClearField("annotations")
    definition.template.spec.ClearField("payload")
    return row._replace(definition=definition.SerializeToString())


def _values(row: ScheduleRow) -> Mapping[str, Any]:
    return {"id": row.schedule_id, "paused": row.paused, "create_time": row.create_time}


async def _is_repeat(tx: Tx, request: Service.CreateScheduleRequest, key: ScheduleKey) -> bool:
    body = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()[:16]
    repeatable = Request(key[0], request.request_id, body, key[1])
    found = (await request_ids.claim(tx, Method.CREATE_SCHEDULE, [repeatable])).get(repeatable.key)
    if isinstance(found, Exception):
        raise AlreadyExists("schedule", schedule_name(*key))
    return found is not None


async def _log(
    tx: Tx, event: ChangeEvent, row: ScheduleRow, actor: Actor, request_id: str = "", note: str = ""
) -> None:
    await append_change(
        tx,
        event,
        row.tenant_id,
        row.schedule_id,
        actor,
        row.update_time,
        version=row.version,
        request_id=request_id or None,
        details={"note": note} if note else None,
    )


def _visible_message(row: ScheduleRow) -> Schedule:
    """A schedule as the caller may see it: a key that only reads sees no environment and no headers."""
    message = schedule_message(row)
    if not current_principal().may("write"):
        hide_secrets(message.template.spec)
    return message


def schedule_message(row: ScheduleRow) -> Schedule:
    """A schedule as callers see it."""
    message = Schedule.FromString(row.definition)
    message.name = row.name
    message.uid = str(row.uid)
    message.resource_version = row.version
    message.paused = row.paused
    message.pause_note = row.pause_note
    if row.remaining_runs is not None:
        message.remaining_runs = row.remaining_runs
    set_time(message.create_time, row.create_time)
    set_time(message.update_time, row.update_time)
    set_time(message.next_scheduled_time, row.next_scheduled_time)
    set_time(message.next_fire_time, row.next_fire_time)
    set_time(message.last_scheduled_time, row.last_scheduled_time)
    if row.last_task_id is not None:
        message.last_task = task_name(row.tenant_id, row.last_task_id)
    message.fired_count = row.fired_count
    message.skipped_count = row.skipped_count
    message.missed_count = row.missed_count
    return message
