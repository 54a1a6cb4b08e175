"""What becomes of due instants: tasks, overlap, late ones, pauses, failures, and the events of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task, run_taskdb
from services.taskdb.tests.rpc.schedule_calls import (
    PARENT,
    Clock,
    Service,
    create,
    fire,
    get,
    schedule,
    template,
)
from taskyard.errors import TenantSuspended
from taskyard.v1 import (
    admin_service_pb2,
    schedule_pb2,
    task_pb2,
    task_service_pb2,
    task_type_pb2,
    task_type_service_pb2,
)
from taskyard_taskdb.domain.schedule import Nightly
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.jobs import no_guard, run_job
from taskyard_taskdb.sweep.retention import RetentionJob

NAME = f"{PARENT}/schedules/s"


@pytest.fixture
async def yard(database_url: str) -> AsyncIterator[RunningTaskDb]:
    async for running in run_taskdb(database_url, housekeeping=False):
        yield running


@pytest.fixture
async def tenant(yard: RunningTaskDb) -> Caller:
    return await yard.caller()


@pytest.fixture
def clock(yard: RunningTaskDb) -> Clock:
    return Clock(yard)


async def test_an_instant_creates_a_task_with_its_nominal_time(tenant: Caller, clock: Clock) -> None:
    await clock.create(
        tenant, missed=schedule_pb2.MISSED_POLICY_ALL, overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW
    )
    instant = await clock.back(1)
    await clock.run()
    (word, details), _ = await clock.events()
    task = await tenant.get(details["task"])
    assert word == "fired"
    assert task.name == f"{PARENT}/tasks/s.{instant:%Y%m%dT%H%M%SZ}"
    assert (task.spec.schedule, task.spec.scheduled_time.ToDatetime(UTC)) == (NAME, instant)
    assert (task.metadata.creator.type, task.metadata.creator.id) == (3, NAME)
    found = await get(tenant)
    assert (found.fired_count, found.last_task) == (2, f"{PARENT}/tasks/s.{clock.base:%Y%m%dT%H%M%SZ}")
    assert found.last_scheduled_time.ToDatetime(UTC) == clock.base


async def test_an_instant_fires_once_although_its_task_is_gone(
    tenant: Caller, clock: Clock, yard: RunningTaskDb
) -> None:
    assert len(await fire(clock, tenant, 1)) == 1
    await yard.execute("DELETE FROM tasks")
    await yard.execute("DELETE FROM queue")
    await clock.run()
    assert len(await clock.events()) == 1


async def test_an_old_leader_cannot_fire(tenant: Caller, clock: Clock, yard: RunningTaskDb) -> None:
    await clock.create(tenant)
    await clock.back(0)
    assert await clock.leadership.acquire()
    await yard.execute("UPDATE coordinator_state SET epoch = epoch + 1, value = 'another'")
    with pytest.raises(LeadershipLost):
        await clock.sweep.run(clock.leadership)
    assert await clock.events() == []
    assert await yard.rows("SELECT FROM tasks") == []


async def test_an_earlier_live_task_skips_an_instant(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 2)
    assert [word for word, _ in events] == ["fired", "skipped"]
    assert events[1][1]["blocking_task"] == events[0][1]["task"]
    assert (await get(tenant)).skipped_count == 1


async def test_queue_lets_tasks_wait_for_their_turn(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 2, overlap=schedule_pb2.SCHEDULE_OVERLAP_QUEUE)
    tasks = [await tenant.get(details["task"]) for _, details in events]
    assert [task.status.pending_reason for task in tasks] == [
        task_pb2.PENDING_REASON_QUEUED,
        task_pb2.PENDING_REASON_SLOT_BUSY,
    ]
    assert {task.spec.slot for task in tasks} == {"schedule.s"}


async def test_allow_lets_tasks_run_together(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 2, overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW)
    tasks = [await tenant.get(details["task"]) for _, details in events]
    assert {(t.status.pending_reason, t.spec.slot) for t in tasks} == {(task_pb2.PENDING_REASON_QUEUED, "")}


async def test_the_slot_of_a_template_is_kept(tenant: Caller, clock: Clock) -> None:
    holder = await tenant.create(slot="shared")
    events = await fire(clock, tenant, 1, template=template(slot="shared"))
    assert [(word, details["blocking_task"]) for word, details in events] == [("skipped", holder.name)]


async def test_queue_latest_replaces_the_waiter_and_never_the_holder(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 3, overlap=schedule_pb2.SCHEDULE_OVERLAP_QUEUE_LATEST)
    states = [(await tenant.get(details["task"])).status for _, details in events]
    assert [(status.phase, status.pending_reason) for status in states] == [
        (task_pb2.TASK_PHASE_PENDING, task_pb2.PENDING_REASON_QUEUED),
        (task_pb2.TASK_PHASE_CANCELLED, 0),
        (task_pb2.TASK_PHASE_PENDING, task_pb2.PENDING_REASON_SLOT_BUSY),
    ]
    assert events[2][1]["replaced_tasks"] == [events[1][1]["task"]]


async def test_replace_cancels_the_earlier_task(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 2, overlap=schedule_pb2.SCHEDULE_OVERLAP_REPLACE)
    phases = [(await tenant.get(details["task"])).status.phase for _, details in events]
    assert phases == [task_pb2.TASK_PHASE_CANCELLED, task_pb2.TASK_PHASE_PENDING]


async def test_of_late_instants_the_latest_fires(tenant: Caller, clock: Clock) -> None:
    await clock.create(tenant)
    first = await clock.back(5)
    await clock.run()
    events = await clock.events()
    assert [word for word, _ in events] == ["missed"] * 5 + ["fired"]
    assert {details["reason"] for _, details in events[:5]} == {"SUPERSEDED"}
    assert events[0][1]["scheduled_time"] == f"{first:%Y-%m-%dT%H:%M:%SZ}"


async def test_all_late_instants_fire_within_the_window(tenant: Caller, clock: Clock) -> None:
    await clock.create(
        tenant,
        overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW,
        missed=schedule_pb2.MISSED_POLICY_ALL,
        catch_up_window=100,
    )
    await clock.back(130)
    await clock.run()
    events = await clock.events()
    fired = [details["scheduled_time"] for word, details in events if word == "fired"]
    assert {details["reason"] for word, details in events if word == "missed"} <= {"TOO_LATE"}
    assert fired == sorted(set(fired))
    assert fired[-1] == f"{clock.base:%Y-%m-%dT%H:%M:%SZ}"


async def test_with_none_late_instants_are_missed(tenant: Caller, clock: Clock) -> None:
    last = clock.base - timedelta(minutes=30)
    await clock.create(
        tenant, every=3600, offset=last.timestamp() % 3600, missed=schedule_pb2.MISSED_POLICY_NONE
    )
    await clock.back(2 * 3600)
    await clock.run()
    events = await clock.events()
    assert [(word, details["reason"]) for word, details in events] == [("missed", "TOO_LATE")] * 2


async def test_a_long_outage_has_an_event_for_each_instant(tenant: Caller, clock: Clock) -> None:
    await clock.create(tenant)
    first = await clock.back(1200)
    await clock.run()
    times = [details["scheduled_time"] for _, details in await clock.events()]
    assert times == [f"{first + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}" for n in range(1201)]


async def test_a_pause_is_not_caught_up(tenant: Caller, clock: Clock) -> None:
    await create(tenant, every=3600)
    paused = await tenant.schedules.PauseSchedule(Service.PauseScheduleRequest(name=NAME, note="holiday"))
    assert (paused.schedule.paused, paused.schedule.pause_note) == (True, "holiday")
    assert not paused.schedule.HasField("next_fire_time")
    before = datetime.now(UTC)
    resumed = (await tenant.schedules.ResumeSchedule(Service.ResumeScheduleRequest(name=NAME))).schedule
    assert resumed.next_scheduled_time.ToDatetime(UTC) > before
    await clock.run()
    assert await clock.events() == []


@pytest.mark.parametrize("resumed", [False, True])
async def test_instants_that_were_due_before_a_pause_are_missed(
    tenant: Caller, clock: Clock, resumed: bool
) -> None:
    await clock.create(tenant)
    await clock.back(4)
    await tenant.schedules.PauseSchedule(Service.PauseScheduleRequest(name=NAME))
    if resumed:
        await tenant.schedules.ResumeSchedule(Service.ResumeScheduleRequest(name=NAME))
    await clock.run()
    events = await clock.events()
    assert [(word, details["reason"]) for word, details in events] == [("missed", "PAUSED")] * 5
    assert not (await get(tenant)).HasField("next_fire_time")


async def test_a_failure_pauses_a_schedule_that_wants_that(
    tenant: Caller, clock: Clock, yard: RunningTaskDb
) -> None:
    [(_, details)] = await fire(clock, tenant, 1, pause_on_failure=True)
    await yard.fail(details["task"])
    await clock.run()
    found = await get(tenant)
    assert (found.paused, found.pause_note) == (True, f"{details['task']} ended as FAILED")
    assert await yard.rows("SELECT FROM schedule_tasks") == []


async def test_a_success_does_not_pause(tenant: Caller, clock: Clock, yard: RunningTaskDb) -> None:
    [(_, details)] = await fire(clock, tenant, 1, pause_on_failure=True)
    assert len(await yard.rows("SELECT FROM schedule_tasks")) == 1
    await yard.succeed(details["task"])
    await clock.run()
    assert not (await get(tenant)).paused
    assert await yard.rows("SELECT FROM schedule_tasks") == []


async def test_remaining_runs_end_a_schedule(tenant: Caller, clock: Clock) -> None:
    events = await fire(clock, tenant, 5, remaining_runs=2, overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW)
    found = await get(tenant)
    assert (found.remaining_runs, found.fired_count, len(events)) == (0, 2, 2)
    assert not found.HasField("next_fire_time")


async def test_a_refused_task_is_a_missed_instant(tenant: Caller, clock: Clock, yard: RunningTaskDb) -> None:
    await yard.add_tenant("acme")
    acme = await yard.caller(tenant_id="acme")
    await clock.create(acme, "s", "tenants/acme")
    await yard.execute("UPDATE tenants SET suspended = true WHERE tenant_id = 'acme'")
    yard.taskdb.tenants.forget()
    await clock.back(0)
    await clock.run()
    assert [(word, details["reason"]) for word, details in await clock.events()] == [
        ("missed", "TENANT_SUSPENDED")
    ]
    with pytest.raises(TenantSuspended):
        await acme.schedules.RunSchedule(Service.RunScheduleRequest(name="tenants/acme/schedules/s"))


async def test_a_type_that_is_gone_and_a_full_queue_are_reasons(
    tenant: Caller, clock: Clock, yard: RunningTaskDb
) -> None:
    kind = task_type_pb2.TaskType(execution=template().spec.execution)
    await tenant.task_types.CreateTaskType(
        task_type_service_pb2.CreateTaskTypeRequest(parent=PARENT, task_type_id="report", task_type=kind)
    )
    await clock.create(tenant, "typed", template=template(task_type="report"))
    await tenant.task_types.DeleteTaskType(
        task_type_service_pb2.DeleteTaskTypeRequest(name=f"{PARENT}/taskTypes/report")
    )
    await clock.back(0, "typed")
    await clock.create(tenant, "full", overlap=schedule_pb2.SCHEDULE_OVERLAP_QUEUE)
    for _ in range(101):
        await tenant.create(slot="schedule.full")
    await clock.back(0, "full")
    await clock.create(tenant, "well")
    await clock.back(0, "well")
    await clock.run()
    reasons = {id: (await clock.events(id))[0] for id in ("typed", "full", "well")}
    assert reasons["typed"][1]["reason"] == "TASK_TYPE_UNKNOWN"
    assert reasons["full"][1]["reason"] == "SLOT_QUEUE_FULL"
    assert reasons["well"][0] == "fired"


async def test_a_taken_id_is_a_missed_instant(tenant: Caller, clock: Clock) -> None:
    await clock.create(tenant)
    instant = await clock.back(0)
    await tenant.create(task_id=f"s.{instant:%Y%m%dT%H%M%SZ}")
    await clock.run()
    assert [(word, details.get("reason")) for word, details in await clock.events()] == [
        ("missed", "ALREADY_EXISTS")
    ]


async def test_queue_latest_is_for_ordinary_tasks_too(tenant: Caller, yard: RunningTaskDb) -> None:
    latest = task_pb2.ADMISSION_POLICY_QUEUE_LATEST
    first, second = [await tenant.create(slot="x", admission=latest) for _ in range(2)]
    await tenant.create(slot="x")
    third = await tenant.tasks.CreateTask(new_task(slot="x", admission=latest))
    assert third.outcome == task_service_pb2.CREATE_OUTCOME_REPLACED
    assert len(third.replaced_tasks) == 2
    assert (await tenant.get(first.name)).status.phase == task_pb2.TASK_PHASE_PENDING
    assert (await tenant.get(second.name)).status.phase == task_pb2.TASK_PHASE_CANCELLED
    alone = await tenant.tasks.CreateTask(new_task(slot="y", admission=latest))
    assert alone.outcome == task_service_pb2.CREATE_OUTCOME_CREATED


async def test_jitter_is_that_of_the_preview(tenant: Caller, clock: Clock) -> None:
    made = await create(tenant, every=60, jitter=30)
    preview = await tenant.schedules.PreviewSchedule(
        Service.PreviewScheduleRequest(parent=PARENT, name=made.name, count=3)
    )
    assert preview.instants[0].scheduled_time == made.next_scheduled_time
    assert preview.instants[0].fire_time == made.next_fire_time
    delays = [i.fire_time.ToDatetime() - i.scheduled_time.ToDatetime() for i in preview.instants]
    assert all(timedelta(0) <= delay < timedelta(seconds=30) for delay in delays)
    assert len(set(delays)) > 1


async def test_a_changed_schedule_misses_what_was_due(tenant: Caller, clock: Clock) -> None:
    await clock.create(tenant)
    await clock.back(3)
    changed = schedule(every=3600)
    changed.name = NAME
    request = Service.UpdateScheduleRequest(schedule=changed)
    request.update_mask.paths.append("every")
    stored = (await tenant.schedules.UpdateSchedule(request)).schedule
    events = await clock.events()
    assert {details["reason"] for _, details in events} == {"CHANGED"}
    assert stored.missed_count == len(events) == 4


async def test_a_watch_shows_the_tasks_of_a_schedule(tenant: Caller, clock: Clock) -> None:
    stream = tenant.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent=PARENT))
    await stream.read()
    await fire(clock, tenant, 1)
    async with asyncio.timeout(30):
        while not (response := await stream.read()).events:
            pass
    [event] = response.events
    assert (event.event_type, event.task.spec.schedule) == ("task.created", NAME)
    stream.cancel()


async def test_the_audit_names_the_schedule(tenant: Caller, clock: Clock) -> None:
    await fire(clock, tenant, 2)
    listed = await tenant.tasks.ListAuditEvents(
        task_service_pb2.ListAuditEventsRequest(parent=PARENT, filter=f'resource = "{NAME}"')
    )
    found = [(event.event_type, event.resource) for event in listed.audit_events]
    words = ("schedule.skipped", "schedule.fired", "schedule.created")
    assert found == [(word, NAME) for word in words]


async def test_an_archived_task_keeps_its_instant(tenant: Caller, clock: Clock, yard: RunningTaskDb) -> None:
    [(_, details)] = await fire(clock, tenant, 1)
    await yard.succeed(details["task"])
    await yard.execute("UPDATE tasks SET end_time = end_time - interval '91 days'")
    await yard.execute("UPDATE runs SET end_time = end_time - interval '91 days'")
    job = RetentionJob(yard.pool, yard.taskdb._after_commit, archive_untyped=True, schedule=Nightly())
    assert await run_job(yard.pool, job, no_guard) == 1
    archived = await tenant.get(details["task"])
    assert archived.spec.schedule == NAME
    assert archived.spec.scheduled_time.ToJsonString() == details["scheduled_time"]
    # The id is free again, the instant is not.
    await clock.run()
    assert len(await clock.events()) == 1


async def test_the_doctor_finds_instants_that_nobody_handles(
    tenant: Caller, clock: Clock, yard: RunningTaskDb
) -> None:
    await clock.create(tenant, catch_up_window=10_000)
    await clock.back(600)
    admin = await yard.caller(api_keys.ADMIN)
    request = admin_service_pb2.RunDoctorRequest(checks=["schedules"])
    [finding] = (await admin.admin.RunDoctor(request)).findings
    assert (finding.count, list(finding.examples)) == (1, [NAME])
    await clock.run()
    [finding] = (await admin.admin.RunDoctor(request)).findings
    assert finding.count == 0


@pytest.mark.parametrize("change", ["every", "remaining_runs"])
async def test_a_change_during_a_pause_leaves_one_event_per_instant(
    tenant: Caller, clock: Clock, change: str
) -> None:
    await clock.create(tenant)
    await clock.back(3)
    await tenant.schedules.PauseSchedule(Service.PauseScheduleRequest(name=NAME))
    changed = schedule(every=3600, remaining_runs=0)
    changed.name = NAME
    request = Service.UpdateScheduleRequest(schedule=changed)
    request.update_mask.paths.append(change)
    await tenant.schedules.UpdateSchedule(request)
    await clock.run()
    times = [details["scheduled_time"] for _, details in await clock.events()]
    assert len(times) == len(set(times)) == 4
    assert not (await get(tenant)).HasField("next_fire_time")
