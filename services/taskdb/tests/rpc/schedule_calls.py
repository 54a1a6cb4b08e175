"""Schedules as tests make them, and a sweep that runs when the test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from taskyard.v1 import schedule_pb2, schedule_service_pb2, task_pb2
from taskyard_taskdb.server import TaskDb
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.schedules import ScheduleSweep

Service = schedule_service_pb2
PARENT = "tenants/default"


def template(**spec: Any) -> task_pb2.Task:
    """A task that runs `true`."""
    if "execution" not in spec and "task_type" not in spec:
        spec["execution"] = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    return task_pb2.Task(spec=task_pb2.TaskSpec(**spec))


def schedule(**fields: Any) -> schedule_pb2.Schedule:
    """A schedule of every second, unless cron or every is given."""
    made = schedule_pb2.Schedule(template=fields.pop("template", None) or template())
    if "cron" not in fields and "every" not in fields:
        fields["every"] = 1
    for name in ("every", "offset", "jitter", "catch_up_window"):
        if name in fields:
            getattr(made, name).FromTimedelta(timedelta(seconds=fields.pop(name)))
    for name in ("start_time", "end_time"):
        if name in fields:
            getattr(made, name).FromDatetime(fields.pop(name))
    made.MergeFrom(schedule_pb2.Schedule(**fields))
    return made


async def create(
    caller: Caller, schedule_id: str = "s", parent: str = PARENT, **fields: Any
) -> schedule_pb2.Schedule:
    """The schedule that schedule(**fields) makes."""
    request = Service.CreateScheduleRequest(
        parent=parent, schedule_id=schedule_id, schedule=schedule(**fields)
    )
    made: schedule_pb2.Schedule = (await caller.schedules.CreateSchedule(request)).schedule
    return made


async def get(caller: Caller, name: str = f"{PARENT}/schedules/s") -> schedule_pb2.Schedule:
    """The schedule as it is now."""
    found: schedule_pb2.Schedule = (
        await caller.schedules.GetSchedule(Service.GetScheduleRequest(name=name))
    ).schedule
    return found


class Clock:
    """Sweeps a taskdb without housekeeping, and moves the cursors of schedules instead of waiting.

    Schedules that it creates have an instant each second up to `base`, so that no test depends on its pace.
    """

    def __init__(self, running: RunningTaskDb) -> None:
        taskdb: TaskDb = running.taskdb
        self._running = running
        self.base = datetime.now(UTC).replace(microsecond=0)
        self.leadership = Leadership(taskdb.pool, timedelta(0))
        self.sweep = ScheduleSweep(taskdb.pool, taskdb._creator, taskdb._schedules, taskdb._after_commit)

    async def create(
        self, caller: Caller, schedule_id: str = "s", parent: str = PARENT, **fields: Any
    ) -> None:
        """A schedule whose last instant is `base`."""
        await create(caller, schedule_id, parent, end_time=self.base + timedelta(seconds=1), **fields)

    async def run(self) -> float:
        """Handle everything that is due."""
        assert await self.leadership.acquire()
        return await self.sweep.run(self.leadership)

    async def back(self, seconds: int, schedule_id: str = "s") -> datetime:
        """Move the cursor of a schedule to `seconds` before base, as if nobody had handled what follows."""
        cursor = self.base - timedelta(seconds=seconds)
        await self._running.execute(
            "UPDATE schedules SET next_scheduled_time = %s, next_fire_time = %s WHERE schedule_id = %s",
            cursor,
            cursor,
            schedule_id,
        )
        return cursor

    async def events(self, schedule_id: str = "s") -> list[tuple[str, dict[str, Any]]]:
        """What became of the instants of a schedule, in order: fired, skipped or missed, and the details."""
        rows = await self._running.rows(
            "SELECT event, details FROM changes WHERE resource_kind = 9 AND resource_id = %s "
            "AND event BETWEEN 105 AND 107 ORDER BY id",
            schedule_id,
        )
        words = {105: "fired", 106: "skipped", 107: "missed"}
        return [(words[event], details) for event, details in rows]


async def fire(clock: Clock, caller: Caller, count: int, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    """Create a schedule and handle `count` of its instants, one after the other; returns their events."""
    await clock.create(caller, missed=schedule_pb2.MISSED_POLICY_ALL, **fields)
    await clock.back(count - 1)
    await clock.run()
    return await clock.events()
