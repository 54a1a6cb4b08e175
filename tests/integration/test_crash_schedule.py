"""A leader that is killed while an instant of a schedule is stored: the next one handles it, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.taskdb.tests.rpc.schedule_calls import schedule
from taskyard.v1 import schedule_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb

EVENTS = (
    "SELECT count(*), count(DISTINCT details->>'scheduled_time') FROM changes WHERE event IN (105, 106, 107)"
)


async def test_an_instant_interrupted_by_a_crash_fires_once(taskdb: CrashingTaskDb) -> None:
    await taskdb.start("schedule.before_commit=kill")
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
    made = schedule(every=1, end_time=end, overlap="SCHEDULE_OVERLAP_ALLOW", missed="MISSED_POLICY_ALL")
    await taskdb.yard.tenant.schedules.CreateSchedule(
        schedule_service_pb2.CreateScheduleRequest(parent="tenants/default", schedule_id="s", schedule=made)
    )
    await taskdb.killed()
    assert await taskdb.rows(EVENTS) == [(0, 0)]
    assert await taskdb.value("SELECT count(*) FROM tasks") == 0
    await taskdb.expire_leadership()
    await taskdb.start()
    await taskdb.until("SELECT next_fire_time IS NULL FROM schedules")
    ((events, instants),) = await taskdb.rows(EVENTS)
    assert events == instants == await taskdb.value("SELECT count(*) FROM tasks") >= 4
