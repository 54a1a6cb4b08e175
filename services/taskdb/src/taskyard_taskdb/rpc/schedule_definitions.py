"""Definitions of schedules: checked when they are stored, and read again at each instant."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.errors import FieldInvalid, FieldViolation, InvalidArgument
from taskyard.v1 import schedule_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain import cron
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.names import schedule_name
from taskyard_taskdb.domain.schedule_plan import ADMISSIONS, CATCH_UP_WINDOW, Missed, Overlap, Policy
from taskyard_taskdb.domain.schedule_times import EPOCH, Times, basic_format
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType, Kind
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.times import set_time, to_datetime, to_timedelta
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.create.new_task import NewTask
from taskyard_taskdb.storage.create.request_ids import Method
from taskyard_taskdb.storage.schedule.schedules import ScheduleKey, ScheduleRow
from taskyard_taskdb.storage.tenant.stored_bytes import StoredBytes
from taskyard_taskdb.storage.tenant.tenants import TenantCache

Schedule = schedule_pb2.Schedule

_CACHE_SIZE = 5000
_CACHE_BYTES = 32 * 1024 * 1024
_SECOND = timedelta(seconds=1)
# Times outside of these years cannot be compared with instants of every zone.
_YEARS = range(1970, 9000)


class _Parsed(NamedTuple):
    message: Schedule
    times: Times
    policy: Policy
    overlap: Overlap


class Repeat(NamedTuple):
    """What makes a repeated RunSchedule recognisable."""

    request_id: str
    body_hash: bytes


class ScheduleDefinitions:
    """Reads definitions, with a cache, and makes the tasks of instants as CreateTask does."""

    def __init__(
        self,
        tenants: TenantCache,
        types: TypeCache,
        specs: SpecReader,
        schemas: SchemaChecks,
        stored: StoredBytes,
    ) -> None:
        self._tenants = tenants
        self._types = types
        self._specs = specs
        self._schemas = schemas
        self._stored = stored
        self._parsed: BoundedCache[tuple[object, int], _Parsed] = BoundedCache(_CACHE_SIZE, _CACHE_BYTES)

    def times(self, row: ScheduleRow) -> Times:
        """When it fires."""
        return self._read(row).times

    def policy(self, row: ScheduleRow) -> Policy:
        """Its rules for late instants."""
        return self._read(row).policy

    def overlap(self, row: ScheduleRow) -> Overlap:
        """What an instant does while an earlier task is live."""
        return self._read(row).overlap

    async def make_task(
        self,
        row: ScheduleRow,
        instant: datetime,
        *,
        task_id: str = "",
        overlap: Overlap | None = None,
        repeat: Repeat | None = None,
    ) -> NewTask:
        """The task of an instant. Raises what CreateTask would raise for the template."""
        parsed = self._read(row)
        task = await self._make(
            row.key,
            parsed.message.template,
            overlap or parsed.overlap,
            task_id or f"{row.schedule_id}.{basic_format(instant)}",
            count_bytes=True,
        )
        origin = task_pb2.TaskSpec(schedule=row.name)
        set_time(origin.scheduled_time, instant)
        # Fields of an encoded message may follow each other in any order.
        task = task._replace(spec=task.spec + origin.SerializeToString())
        if repeat is not None and repeat.request_id:
            task = task._replace(
                request_id=repeat.request_id, body_hash=repeat.body_hash, method=Method.RUN_SCHEDULE
            )
        return task

    async def check(self, key: ScheduleKey, schedule: Schedule) -> None:
        """Raises FieldInvalid, or what CreateTask would raise for the template, with paths in `schedule`."""
        await check_times(schedule)
        overlap = read_overlap(schedule)
        spec = schedule.template.spec
        path = "schedule.template.spec"
        if spec.HasField("not_before"):
            raise FieldInvalid.of(f"{path}.not_before", "is not for schedules; use cron, every or offset")
        if spec.admission and overlap is not Overlap.ALLOW:
            raise FieldInvalid.of(f"{path}.admission", "is chosen by overlap; leave it unset, or use ALLOW")
        try:
            task_id = f"{key[1]}.{basic_format(EPOCH)}"
            task = await self._make(key, schedule.template, overlap, task_id, count_bytes=False)
        except InvalidArgument as error:
            raise _in_template(error) from None
        if task.kind == Kind.EXTERNAL and overlap is not Overlap.ALLOW:
            raise FieldInvalid.of(
                "schedule.overlap", "external tasks have no slot: use ALLOW, or another execution"
            )

    async def _make(
        self,
        key: ScheduleKey,
        template: task_pb2.Task,
        overlap: Overlap,
        task_id: str,
        *,
        count_bytes: bool,
    ) -> NewTask:
        tenant = await self._tenants.admit(key[0])
        request = task_service_pb2.CreateTaskRequest(task_id=task_id)
        request.task.metadata.labels.update(template.metadata.labels)
        if template.metadata.HasField("annotations"):
            request.task.metadata.annotations.CopyFrom(template.metadata.annotations)
        spec = request.task.spec
        spec.CopyFrom(template.spec)
        if overlap is not Overlap.ALLOW:
            spec.admission = task_pb2.AdmissionPolicy.ValueType(ADMISSIONS[overlap])
            if not (spec.slot or spec.HasField("entity")):
                spec.slot = f"schedule.{key[1]}"
        rules = (await self._types.find_all(key[0], [spec.task_type])).get(spec.task_type)
        if rules is not None:
            rules.check_enabled()
            payload = spec.payload if spec.HasField("payload") else None
            await self._schemas.check_payload(key[0], rules, payload, "task.spec.payload")
        if count_bytes and tenant.max_storage_bytes:
            await self._stored.admit(key[0], tenant.max_storage_bytes, request.ByteSize())
        actor = Actor(ActorType.SYSTEM, schedule_name(*key))
        return self._specs.read(request, tenant, actor, None, rules)

    def _read(self, row: ScheduleRow) -> _Parsed:
        identity = (row.uid, row.version)
        found = self._parsed.get(identity)
        if found is None:
            message = Schedule.FromString(row.definition)
            found = _Parsed(
                message, read_times(message, str(row.uid)), _policy(message), read_overlap(message)
            )
            # A parsed message takes a multiple of its bytes.
            self._parsed.put(identity, found, 3 * len(row.definition) + 2000)
        return found


def read_times(schedule: Schedule, uid: str) -> Times:
    """The times of a valid schedule."""
    return Times(
        uid=uid,
        lines=tuple(cron.parse(line) for line in schedule.cron),
        every=to_timedelta(schedule.every) if schedule.HasField("every") else None,
        offset=to_timedelta(schedule.offset),
        zone=cron.find_zone(schedule.time_zone or "UTC"),
        start_time=to_datetime(schedule.start_time) if schedule.HasField("start_time") else None,
        end_time=to_datetime(schedule.end_time) if schedule.HasField("end_time") else None,
        jitter=to_timedelta(schedule.jitter),
    )


def _policy(schedule: Schedule) -> Policy:
    window = (
        to_timedelta(schedule.catch_up_window) if schedule.HasField("catch_up_window") else CATCH_UP_WINDOW
    )
    return Policy(Missed(schedule.missed or Missed.LATEST), window)


def read_overlap(schedule: Schedule) -> Overlap:
    """The overlap policy, SKIP by default."""
    return Overlap(schedule.overlap or Overlap.SKIP)


async def check_times(schedule: Schedule, path: str = "schedule") -> None:
    """Raises FieldInvalid for times that are malformed, or a cron line that has no instant."""
    given: Any = schedule
    if not schedule.cron and not schedule.HasField("every"):
        raise FieldInvalid.of(f"{path}.cron", "must have a line, or every must be set")
    for name in ("every", "offset"):
        if getattr(schedule, name).nanos:
            raise FieldInvalid.of(f"{path}.{name}", "must be whole seconds")
    if schedule.HasField("every") and to_timedelta(schedule.every) < _SECOND:
        raise FieldInvalid.of(f"{path}.every", "must be at least 1 s")
    if schedule.HasField("offset"):
        if not schedule.HasField("every"):
            raise FieldInvalid.of(f"{path}.offset", "shifts every, which is not set")
        if to_timedelta(schedule.offset) >= to_timedelta(schedule.every):
            raise FieldInvalid.of(f"{path}.offset", "must be less than every")
    for name in ("start_time", "end_time"):
        if given.HasField(name):
            check_time(getattr(given, name), f"{path}.{name}")
    try:
        zone = cron.find_zone(schedule.time_zone or "UTC")
    except ValueError as error:
        raise FieldInvalid.of(f"{path}.time_zone", str(error), "iana_zone") from None
    for index, line in enumerate(schedule.cron):
        await _check_line(line, zone, f"{path}.cron[{index}]")


async def _check_line(line: str, zone: ZoneInfo, path: str) -> None:
    try:
        fields = cron.parse(line)
    except cron.CronInvalid as error:
        raise FieldInvalid.of(path, str(error), "cron") from None
    # A line that matches rarely is searched for over years.
    if await asyncio.to_thread(lambda: next(cron.instants(fields, zone, EPOCH), None)) is None:
        raise FieldInvalid.of(path, f"{line!r} has no instant within 50 years", "cron")


def check_time(value: Timestamp, path: str) -> None:
    """Raises FieldInvalid for a time with which instants cannot be compared."""
    if to_datetime(value).year not in _YEARS:
        raise FieldInvalid.of(path, "must be a time between the years 1970 and 9000", "timestamp")


def _in_template(error: InvalidArgument) -> InvalidArgument:
    """The same error with field paths inside the template."""

    def moved(field: str) -> str:
        return f"schedule.template.{field.removeprefix('task.')}" if field.startswith("task.") else field

    violations = tuple(FieldViolation(moved(v.field), v.description, v.rule) for v in error.violations)
    kind: Any = type(error)
    made: InvalidArgument = kind(violations)
    return made
