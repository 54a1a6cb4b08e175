"""Schedules of a tenant: tasks that are created by time.

Methods return the proto messages of taskyard.v1, which document each field.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from google.protobuf.field_mask_pb2 import FieldMask

from taskyard.channels import Channels, deferred
from taskyard.convert import Seconds, to_duration, to_timestamp
from taskyard.names import new_request_id, schedule_name, tenant_name
from taskyard.new_task import NewTask
from taskyard.pages import pages
from taskyard.stream import Stream
from taskyard.task import Task
from taskyard.v1 import schedule_pb2
from taskyard.v1 import schedule_service_pb2 as pb
from taskyard.v1.schedule_service_pb2_grpc import ScheduleServiceStub

if TYPE_CHECKING:
    from taskyard.v1.schedule_service_pb2_grpc import ScheduleServiceAsyncStub

PAGE_SIZE = 1000

Overlap = Literal["skip", "queue", "queue_latest", "replace", "allow"]


class ScheduleOptions(TypedDict, total=False):
    """When a schedule creates its task, and what it does with late and overlapping instants."""

    cron: str | Sequence[str]
    """Lines of five fields, or @daily and the like."""
    every: Seconds
    """An interval, instead of cron lines or beside them."""
    offset: Seconds
    """Shifts the instants of `every`."""
    time_zone: str
    """IANA name; default UTC."""
    start_time: datetime
    end_time: datetime
    jitter: Seconds
    """Longest random delay of an instant."""
    overlap: Overlap
    """What happens while an earlier task is live; default skip."""
    missed: Literal["latest", "all", "none"]
    """What happens to instants that were not handled in time; default latest."""
    catch_up_window: Seconds
    """Older instants are missed; default 24 h."""
    pause_on_failure: bool
    paused: bool
    pause_note: str
    remaining_runs: int
    """How many instants create a task; default no limit."""
    description: str


def new_schedule(task: NewTask, options: ScheduleOptions) -> schedule_pb2.Schedule:
    """The message of a schedule; raises TypeError for an unknown option, ValueError for an unknown word."""
    if unknown := options.keys() - ScheduleOptions.__annotations__.keys():
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
    lines = options.get("cron", ())
    made = schedule_pb2.Schedule(
        cron=[lines] if isinstance(lines, str) else lines,
        time_zone=options.get("time_zone", ""),
        description=options.get("description", ""),
        pause_on_failure=options.get("pause_on_failure", False),
        paused=options.get("paused", False),
        pause_note=options.get("pause_note", ""),
        remaining_runs=options.get("remaining_runs"),
        overlap=_number(schedule_pb2.ScheduleOverlap, "SCHEDULE_OVERLAP_", options.get("overlap")),
        missed=_number(schedule_pb2.MissedPolicy, "MISSED_POLICY_", options.get("missed")),
    )
    made.template.metadata.CopyFrom(task.request.task.metadata)
    made.template.spec.CopyFrom(task.request.task.spec)
    given: Any = options
    for name in ("every", "offset", "jitter", "catch_up_window"):
        if name in given:
            getattr(made, name).CopyFrom(to_duration(given[name]))
    for name in ("start_time", "end_time"):
        if name in given:
            getattr(made, name).CopyFrom(to_timestamp(given[name]))
    return made


def _number(enum: Any, prefix: str, word: str | None) -> Any:
    if word is None:
        return 0
    words = {name.removeprefix(prefix).lower(): number for name, number in enum.items() if number}
    if word not in words:
        raise ValueError(f"{word!r} is not one of {', '.join(words)}")
    return words[word]


class Schedules:
    """The schedules of a Client's tenant. A schedule is given as its id or its full name."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def create(
        self,
        schedule_id: str,
        task: NewTask,
        *,
        validate_only: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> schedule_pb2.Schedule:
        """Creates a schedule of a task; its first instant is after now.

        Example:
            nightly = await client.schedules.create(
                "nightly", command("true"), cron="30 2 * * *", time_zone="Europe/Berlin"
            )
            print(nightly.next_scheduled_time.ToDatetime())
        """
        request = pb.CreateScheduleRequest(
            parent=tenant_name(await self._channels.tenant()),
            schedule_id=schedule_id,
            schedule=new_schedule(task, options),
            request_id=new_request_id(),
            validate_only=validate_only,
        )
        return (await self._channels.call(self._stub.CreateSchedule, request)).schedule

    async def get(self, schedule: str) -> schedule_pb2.Schedule:
        """Returns a schedule.

        Example:
            print((await client.schedules.get("nightly")).fired_count)
        """
        request = pb.GetScheduleRequest(name=await self._name(schedule))
        return (await self._channels.call(self._stub.GetSchedule, request)).schedule

    def list(self, filter: str = "", *, tenant: str = "") -> Stream[schedule_pb2.Schedule]:
        """The schedules of a tenant, by id; the filter may name id, paused and create_time.

        Example:
            print([schedule.name async for schedule in client.schedules.list("paused = false")])
        """

        async def first() -> AsyncGenerator[Sequence[schedule_pb2.Schedule]]:
            request = pb.ListSchedulesRequest(
                parent=tenant_name(tenant or await self._channels.tenant()),
                filter=filter,
                page_size=PAGE_SIZE,
            )
            return pages(self._channels, lambda: self._stub.ListSchedules, request, "schedules", _identity)

        return Stream(deferred(first))

    async def put(
        self, schedule: schedule_pb2.Schedule, *paths: str, validate_only: bool = False
    ) -> schedule_pb2.Schedule:
        """Creates or changes a schedule: the fields named by `paths`, or every field that is set.

        Example:
            nightly = await client.schedules.get("nightly")
            del nightly.cron[:]
            nightly.cron.append("0 3 * * *")
            await client.schedules.put(nightly, "cron")
        """
        request = pb.UpdateScheduleRequest(
            schedule=schedule,
            update_mask=FieldMask(paths=paths),
            allow_missing=True,
            validate_only=validate_only,
        )
        request.schedule.name = await self._name(schedule.name)
        return (await self._channels.call(self._stub.UpdateSchedule, request)).schedule

    async def pause(self, schedule: str, note: str = "") -> schedule_pb2.Schedule:
        """Lets a schedule create no tasks until it is resumed.

        Example:
            await client.schedules.pause("nightly", "the warehouse is moved")
        """
        request = pb.PauseScheduleRequest(name=await self._name(schedule), note=note)
        return (await self._channels.call(self._stub.PauseSchedule, request)).schedule

    async def resume(self, schedule: str) -> schedule_pb2.Schedule:
        """Lets a schedule go on at its next instant; the pause is not caught up.

        Example:
            await client.schedules.resume("nightly")
        """
        request = pb.ResumeScheduleRequest(name=await self._name(schedule))
        return (await self._channels.call(self._stub.ResumeSchedule, request)).schedule

    async def run(self, schedule: str) -> Task:
        """Creates the task of a schedule now; its overlap policy applies.

        Example:
            print((await client.schedules.run("nightly")).id)
        """
        request = pb.RunScheduleRequest(name=await self._name(schedule), request_id=new_request_id())
        return Task((await self._channels.call(self._stub.RunSchedule, request)).task)

    async def backfill(
        self,
        schedule: str,
        start: datetime,
        end: datetime,
        *,
        overlap: Literal["queue", "allow"] | None = None,
        validate_only: bool = False,
    ) -> pb.BackfillScheduleResponse:
        """Creates the tasks of past instants from `start` to before `end`, at most 1,000.

        Example:
            now = datetime.now(UTC)
            made = await client.schedules.backfill("nightly", now - timedelta(days=3), now)
            print(made.tasks)
        """
        request = pb.BackfillScheduleRequest(
            name=await self._name(schedule),
            start_time=to_timestamp(start),
            end_time=to_timestamp(end),
            overlap=_number(schedule_pb2.ScheduleOverlap, "SCHEDULE_OVERLAP_", overlap),
            validate_only=validate_only,
        )
        return await self._channels.call(self._stub.BackfillSchedule, request)

    async def preview(
        self, schedule: str | schedule_pb2.Schedule, count: int = 10, *, start: datetime | None = None
    ) -> Sequence[schedule_pb2.ScheduledInstant]:
        """The next instants of a schedule, or of a message that is not stored.

        Example:
            for instant in await client.schedules.preview("nightly", 3):
                print(instant.local_time)
        """
        request = pb.PreviewScheduleRequest(parent=tenant_name(await self._channels.tenant()), count=count)
        if isinstance(schedule, str):
            request.name = await self._name(schedule)
        else:
            request.schedule.CopyFrom(schedule)
        if start is not None:
            request.start_time.CopyFrom(to_timestamp(start))
        return (await self._channels.call(self._stub.PreviewSchedule, request)).instants

    async def delete(self, schedule: str) -> None:
        """Deletes a schedule; its tasks stay.

        Example:
            await client.schedules.delete("nightly")
        """
        request = pb.DeleteScheduleRequest(name=await self._name(schedule))
        await self._channels.call(self._stub.DeleteSchedule, request)

    @property
    def _stub(self) -> ScheduleServiceAsyncStub:
        return self._channels.stub("taskdb", ScheduleServiceStub)

    async def _name(self, schedule: str) -> str:
        return schedule_name(await self._channels.tenant(), schedule)


def _identity(message: Any) -> Any:
    return message
