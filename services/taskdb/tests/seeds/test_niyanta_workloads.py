"""Workloads of Niyanta: ids, fields, states, leases, checkpoints and the audit of what happens to them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import create, listed, load, running
from services.taskdb.tests.rpc.test_audit import events
from services.taskdb.tests.rpc.test_checkpoints import PIECE, pieces, read, write
from services.taskdb.tests.rpc.test_restored import expire
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors
from taskyard.convert import from_payload
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2

P, S = task_pb2, task_service_pb2
WORKLOAD = "niyanta.workload"


@pytest.fixture
def taskdb(quiet: RunningTaskDb) -> RunningTaskDb:
    """Without the grace period of a new leader: the tests expire leases themselves."""
    return quiet


@pytest.fixture(autouse=True)
async def preset(admin: Caller) -> None:
    await load(admin, "niyanta")


async def workload(tenant: Caller, **fields: Any) -> task_pb2.Task:
    return await create(tenant, WORKLOAD, fields.pop("payload", None), **fields)


def progress(assignment: lease_pb2.Assignment, percent: int, message: str = "") -> lease_pb2.RunReport:
    return lease_pb2.RunReport(
        lease=assignment.lease, progress=common_pb2.Progress(percent=percent, message=message)
    )


@pytest.mark.seed("S2.30", "S2.126")
async def test_an_id_begins_with_wl_and_has_at_most_64_characters(tenant: Caller) -> None:
    made = await workload(tenant)
    assert made.metadata.id.startswith("wl_") and len(made.metadata.id) <= 64
    assert (await workload(tenant, task_id="wl_" + "x" * 61)).metadata.id == "wl_" + "x" * 61
    for wrong in ("task-1", "wl_" + "x" * 62):
        with pytest.raises(errors.FieldInvalid) as refused:
            await workload(tenant, task_id=wrong)
        assert refused.value.violations[0].field == "task_id"


@pytest.mark.seed("S2.127")
async def test_a_customer_is_required(tenant: Caller) -> None:
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.CreateTask(S.CreateTaskRequest())


@pytest.mark.seed("S2.34", "S2.37", "S2.40", "S2.44", "S2.46")
async def test_a_new_workload_is_pending_with_its_input_and_times(tenant: Caller) -> None:
    made = await workload(tenant, payload={"input": "in.mp4"})
    found = await tenant.get(made.name)
    assert (found.status.phase, found.status.retry_count) == (P.TASK_PHASE_PENDING, 0)
    assert from_payload(found.spec.payload) == {"input": "in.mp4"}
    assert found.metadata.create_time.seconds > 0
    assert found.metadata.update_time == found.metadata.create_time


@pytest.mark.seed("S2.122")
async def test_what_a_workload_does_not_have_is_left_out_of_its_answer(tenant: Caller, yard: Yard) -> None:
    """Worker, affinity, result, error, lease and times are there when they have a value."""
    optional = {"runner", "result", "error", "leaseExpireTime", "scheduleTime", "startTime", "endTime"}

    async def shown(name: str) -> tuple[set[str], set[str]]:
        found = MessageToDict(await tenant.get(name))
        return set(found["spec"]), set(found["status"])

    bare = await workload(tenant, payload={"input": "in.mp4"})
    spec, status = await shown(bare.name)
    assert "placement" not in spec and not status & optional
    assert {"taskType", "payload", "priority", "retry", "resources"} <= spec
    runner, assignment = await running(yard)
    assert (await shown(bare.name))[1] & optional == {
        "runner",
        "leaseExpireTime",
        "scheduleTime",
        "startTime",
    }
    bad = failed(assignment, permanent=True)
    await yard.report(runner, bad)
    assert (await shown(bare.name))[1] & optional == {"error", "scheduleTime", "startTime", "endTime"}
    required = common_pb2.RunnerSelector(match_labels={"gpu": "yes"})
    tagged = P.Placement(required=P.RunnerConstraint(selector=required))
    assert "placement" in (await shown((await workload(tenant, placement=tagged)).name))[0]


@pytest.mark.seed("S2.35", "S2.129")
async def test_a_priority_is_0_to_1000_and_10_by_default(tenant: Caller) -> None:
    assert (await workload(tenant)).spec.priority == 10
    assert (await workload(tenant, priority=1000)).spec.priority == 1000
    for wrong in (-1, 1001):
        with pytest.raises(errors.FieldInvalid):
            await workload(tenant, priority=wrong)


@pytest.mark.seed("S2.33", "S2.49")
async def test_a_worker_holds_a_workload_and_workloads_are_found_by_it(tenant: Caller, yard: Yard) -> None:
    task = await workload(tenant)
    assert not task.status.runner
    runner, assignment = await running(yard, "worker-a")
    assert (await tenant.get(task.name)).status.runner == "runners/worker-a"
    assert await listed(tenant, 'status.runner = "runners/worker-a"') == [task.name]
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    await yard.report(runner, release)
    assert not (await tenant.get(task.name)).status.runner


@pytest.mark.seed("S2.38", "S2.45")
async def test_a_completed_workload_has_its_result_and_the_times_of_its_way(
    tenant: Caller, yard: Yard
) -> None:
    task = await workload(tenant)
    assert not task.status.HasField("schedule_time")
    runner, assignment = await running(yard)
    result = P.TaskResult(output=common_pb2.Payload(raw=b'{"frames": 100}'))
    await yard.report(runner, succeeded(assignment, result=result))
    status = (await tenant.get(task.name)).status
    assert from_payload(status.result.output) == {"frames": 100}
    times = [status.schedule_time, status.start_time, status.end_time]
    assert all(time.seconds for time in times)
    assert [time.ToNanoseconds() for time in times] == sorted(time.ToNanoseconds() for time in times)


@pytest.mark.seed("S2.39", "S2.116")
async def test_a_permanent_failure_keeps_its_message_and_a_transient_one_is_retried(
    tenant: Caller, yard: Yard
) -> None:
    permanent, transient = await workload(tenant), await workload(tenant)
    runner, _ = await yard.hello()
    first, second = sorted((await yard.claim(runner)).assignments, key=lambda one: one.lease.task)
    by_task = {one.lease.task: one for one in (first, second)}
    bad = failed(by_task[permanent.name], permanent=True)
    bad.failed.error.message = "unsupported codec"
    await yard.report(runner, *(started(one) for one in by_task.values()))
    await yard.report(runner, bad, failed(by_task[transient.name]))
    status = (await tenant.get(permanent.name)).status
    assert (status.phase, status.error.message) == (P.TASK_PHASE_FAILED, "unsupported codec")
    assert (await tenant.get(transient.name)).status.phase == P.TASK_PHASE_PENDING


@pytest.mark.seed("S2.41", "S2.114", "S2.130")
async def test_progress_is_0_to_100_percent_with_a_message(tenant: Caller, yard: Yard) -> None:
    task = await workload(tenant)
    assert task.status.progress.percent == 0
    runner, assignment = await running(yard)
    await yard.report(runner, progress(assignment, 100, "done"))
    shown = (await tenant.get(task.name)).status.progress
    assert (shown.percent, shown.message) == (100, "done")
    # Schedulers validate what runners send; what callers send is validated here.
    external = await tenant.create(external=True)
    for wrong in (-1, 101):
        request = S.ReportTaskStatusRequest(name=external.name)
        request.progress.percent = wrong
        with pytest.raises(errors.FieldInvalid):
            await tenant.tasks.ReportTaskStatus(request)


@pytest.mark.seed("S2.42", "S2.43", "S2.51", "S2.136")
async def test_an_expired_lease_redistributes_the_workload_under_the_next_generation(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard, "worker-a")
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state"))
    held = (await tenant.get(task.name)).status
    assert held.HasField("lease_expire_time") and held.generation == 1
    await taskdb.execute("UPDATE sessions SET heartbeat_time = now() - interval '2 min', expire_time = now()")
    await expire(taskdb)
    assert (await tenant.get(task.name)).status.phase == P.TASK_PHASE_REDISTRIBUTING
    other, _ = await yard.hello("worker-b")
    (again,) = (await yard.claim(other)).assignments
    assert again.lease.generation == 2
    to, moved, *_ = await events(tenant, f'resource = "{task.name}"')
    assert (moved.event_type, moved.details["from_runner"]) == ("task.redistributed", "worker-a")
    assert moved.details["reason"] and str(moved.details["checkpoint_sequence"]) == "1"
    assert (to.event_type, to.details["runner"]) == ("task.scheduled", "runners/worker-b")
    (late,) = await yard.report("worker-a", succeeded(assignment))
    assert late.error.code
    assert (await tenant.get(task.name)).status.runner == "runners/worker-b"


@pytest.mark.seed("S2.29", "S2.52", "S2.119")
async def test_a_workload_goes_through_every_state_of_the_document(tenant: Caller, yard: Yard) -> None:
    seen = []

    async def note(name: str) -> None:
        seen.append(P.TaskPhase.Name((await tenant.get(name)).status.phase).removeprefix("TASK_PHASE_"))

    task = await workload(tenant)
    await note(task.name)
    await tenant.tasks.PauseTask(S.PauseTaskRequest(name=task.name))
    await note(task.name)
    await tenant.tasks.ResumeTask(S.ResumeTaskRequest(name=task.name))
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await note(task.name)
    await yard.report(runner, started(assignment))
    await note(task.name)
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    await yard.report(runner, release)
    await note(task.name)
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    await note(task.name)
    bad = await workload(tenant)
    _, assignment = await running(yard, "worker-b")
    await yard.report("worker-b", failed(assignment, permanent=True))
    await note(bad.name)
    unwanted = await workload(tenant)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=unwanted.name))
    await note(unwanted.name)
    assert seen == (
        ["PENDING", "PAUSED", "SCHEDULED", "RUNNING", "REDISTRIBUTING", "SUCCEEDED", "FAILED", "CANCELLED"]
    )


@pytest.mark.seed("S2.31", "S2.47", "S2.48")
async def test_workloads_belong_to_one_customer_and_are_found_by_it_and_by_status(
    tenant: Caller, taskdb: RunningTaskDb, admin: Caller
) -> None:
    mine = await workload(tenant)
    await taskdb.add_tenant("other")
    stranger = await taskdb.caller(tenant_id="other")
    with pytest.raises(errors.NotFound):
        await stranger.get(mine.name)
    request = S.ListTasksRequest(parent="tenants/other")
    assert list((await stranger.tasks.ListTasks(request)).tasks) == []
    assert await listed(tenant, "status.phase = PENDING") == [mine.name]


@pytest.mark.seed("S2.36", "S2.56")
async def test_rules_of_affinity_come_back_as_they_were_given(tenant: Caller) -> None:
    placement = P.Placement(
        required=P.RunnerConstraint(selector=common_pb2.RunnerSelector(match_labels={"region": "us-west-2"})),
        preferred=[P.PreferredRunners(weight=50, runners=P.RunnerConstraint(runner_ids=["worker-7"]))],
        avoid=P.RunnerConstraint(task_types=["video_transcoding"]),
    )
    task = await workload(tenant, placement=placement)
    assert (await tenant.get(task.name)).spec.placement == placement
    assert not (await workload(tenant)).spec.HasField("placement")


@pytest.mark.seed("S2.68", "S2.71", "S2.72", "S2.73", "S2.124")
async def test_a_checkpoint_comes_back_with_number_size_time_and_bytes(tenant: Caller, yard: Yard) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard)
    data = os.urandom(PIECE + 17)
    await write(yard, pieces(runner.id, assignment.lease, 1, data, progress_percent=40))
    (found,) = (await tenant.tasks.ListCheckpoints(S.ListCheckpointsRequest(parent=task.name))).checkpoints
    assert (found.name, found.sequence) == (f"{task.name}/checkpoints/1", 1)
    assert (found.size_bytes, found.progress_percent) == (len(data), 40)
    assert found.create_time.seconds > 0
    assert await read(yard, found.name) == data


@pytest.mark.seed("S2.70", "S2.74", "S2.132")
async def test_checkpoints_are_numbered_upwards_from_one_and_a_number_is_used_once(
    tenant: Caller, yard: Yard
) -> None:
    await workload(tenant)
    runner, assignment = await running(yard)
    with pytest.raises(errors.FieldInvalid):
        await write(yard, pieces(runner.id, assignment.lease, 0, b"zero"))
    await write(yard, pieces(runner.id, assignment.lease, 1, b"one"))
    await write(yard, pieces(runner.id, assignment.lease, 2, b"two"))
    for sequence in (1, 2):
        with pytest.raises(errors.CheckpointSequenceConflict):
            await write(yard, pieces(runner.id, assignment.lease, sequence, b"other"))


@pytest.mark.seed("S2.69", "S2.131")
async def test_a_checkpoint_belongs_to_a_workload_and_ends_with_it(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard)
    with pytest.raises(errors.FieldInvalid):
        await write(yard, pieces(runner.id, assignment.lease, 1, b"x", task=""))
    await write(yard, pieces(runner.id, assignment.lease, 1, b"x"))
    await yard.report(runner, succeeded(assignment))
    await tenant.tasks.DeleteTask(S.DeleteTaskRequest(name=task.name))
    with pytest.raises(errors.NotFound):
        await read(yard, f"{task.name}/checkpoints/1")


@pytest.mark.seed("S2.76", "S2.133", "S2.134")
async def test_a_checkpoint_has_1_to_10485760_bytes_and_the_error_names_the_limit(
    tenant: Caller, yard: Yard
) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard)
    for size in (0, 10_485_761):
        with pytest.raises(errors.TaskyardError) as refused:
            await write(yard, pieces(runner.id, assignment.lease, 1, b"x", size_bytes=size))
        assert size == 0 or "10485760" in str(refused.value)
    whole = bytes(10_485_760)
    await write(yard, pieces(runner.id, assignment.lease, 1, whole))
    assert (await tenant.get(task.name)).status.checkpoint_sequence == 1


@pytest.mark.seed("S2.75", "S2.77", "S2.139")
async def test_the_newest_checkpoint_is_found_first_and_ten_are_kept(tenant: Caller, yard: Yard) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard)
    for sequence in range(1, 13):
        await write(yard, pieces(runner.id, assignment.lease, sequence, b"%d" % sequence))
    page = await tenant.tasks.ListCheckpoints(S.ListCheckpointsRequest(parent=task.name, page_size=100))
    assert [one.sequence for one in page.checkpoints] == list(range(12, 2, -1))
    assert await read(yard, f"{task.name}/checkpoints/latest") == b"12"


@pytest.mark.seed("S2.110")
async def test_an_assignment_has_type_config_input_checkpoint_generation_and_lease(
    tenant: Caller, yard: Yard
) -> None:
    await workload(tenant, payload={"input": "in.mp4"})
    runner, assignment = await running(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state"))
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    await yard.report(runner, release)
    (again,) = (await yard.claim(runner, lease_seconds=60)).assignments
    assert (again.spec.task_type, from_payload(again.spec.payload)) == (WORKLOAD, {"input": "in.mp4"})
    assert (again.lease.generation, again.lease_ttl.seconds) == (2, 60)
    assert (again.checkpoint.sequence, from_payload(again.config)) == (1, {})


# What Niyanta calls an event, and what the audit calls it here.
WORDS = {
    "workload.created": "task.created",
    "workload.scheduled": "task.scheduled",
    "workload.started": "task.started",
    "workload.checkpoint_created": "task.checkpoint_created",
    "workload.progress_updated": "task.progress_updated",
    "workload.paused": "task.paused",
    "workload.resumed": "task.resumed",
    "workload.failed": "task.failed",
    "workload.completed": "task.succeeded",
    "workload.cancelled": "task.cancelled",
    "workload.redistributed": "task.redistributed",
}


@pytest.mark.seed("S2.78", "S2.81", "S2.83-85", "S2.89-98", "S2.125")
async def test_every_event_of_a_workload_is_in_the_audit_with_actor_details_and_time(
    tenant: Caller, yard: Yard
) -> None:
    task = await workload(tenant)
    await tenant.tasks.PauseTask(S.PauseTaskRequest(name=task.name))
    await tenant.tasks.ResumeTask(S.ResumeTaskRequest(name=task.name))
    runner, assignment = await running(yard, "worker-a")
    await yard.report(runner, progress(assignment, 30))
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=40))
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    await yard.report(runner, release)
    _, assignment = await running(yard, "worker-b")
    await yard.report("worker-b", succeeded(assignment))
    bad = await workload(tenant)
    _, assignment = await running(yard, "worker-c")
    await yard.report("worker-c", failed(assignment, permanent=True))
    unwanted = await workload(tenant)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=unwanted.name, reason="not needed"))
    found: dict[str, Any] = {}
    for name in (task.name, bad.name, unwanted.name):
        found |= {one.event_type: one for one in await events(tenant, f'resource = "{name}"')}
    assert set(WORDS.values()) <= found.keys()
    for event in found.values():
        assert event.name and event.time.seconds and event.actor.id and event.resource_version
    assert found["task.scheduled"].actor.type == common_pb2.ACTOR_TYPE_SCHEDULER
    assert found["task.succeeded"].actor.id == "worker-b"
    assert found["task.cancelled"].details["reason"] == "not needed"
    assert found["task.redistributed"].details["reason"] == "DRAINED"


@pytest.mark.seed("S2.82")
async def test_an_actor_is_scheduler_runner_system_or_user(tenant: Caller, yard: Yard) -> None:
    await workload(tenant)
    runner, assignment = await running(yard)
    await yard.report(runner, succeeded(assignment))
    kinds = {common_pb2.ActorType.Name(one.actor.type) for one in await events(tenant)}
    assert kinds == {"ACTOR_TYPE_USER", "ACTOR_TYPE_SCHEDULER", "ACTOR_TYPE_RUNNER"}
    assert set(common_pb2.ActorType.keys()) - {"ACTOR_TYPE_UNSPECIFIED"} == kinds | {"ACTOR_TYPE_SYSTEM"}


@pytest.mark.seed("S2.79", "S2.143")
async def test_the_audit_of_a_workload_outlives_it(tenant: Caller) -> None:
    task = await workload(tenant)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=task.name))
    await tenant.tasks.DeleteTask(S.DeleteTaskRequest(name=task.name))
    trail = [one.event_type for one in await events(tenant, f'resource = "{task.name}"')]
    assert trail == ["task.deleted", "task.cancelled", "task.created"]


@pytest.mark.seed("S2.80", "S2.86", "S2.87", "S2.88", "S2.137")
async def test_the_audit_is_found_by_workload_customer_and_type_newest_first(
    tenant: Caller, taskdb: RunningTaskDb, admin: Caller
) -> None:
    first, second = await workload(tenant), await workload(tenant)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=first.name))
    mine = await events(tenant, f'resource = "{first.name}"')
    assert [one.event_type for one in mine] == ["task.cancelled", "task.created"]
    created = await events(tenant, 'event_type = "task.created"')
    assert [one.resource for one in created] == [second.name, first.name]
    page = await tenant.tasks.ListAuditEvents(S.ListAuditEventsRequest(parent="tenants/default", page_size=1))
    assert [one.event_type for one in page.audit_events] == ["task.cancelled"] and page.next_page_token
    await taskdb.add_tenant("other")
    stranger = await taskdb.caller(tenant_id="other")
    assert await events(stranger, parent="tenants/other") == []
    everybody = await events(admin, 'event_type = "task.created"', parent="tenants/-")
    assert len(everybody) == 2


@pytest.mark.seed("S2.100", "S2.102")
async def test_a_worker_is_registered_and_marked_dead_in_the_audit(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await yard.hello("worker-a")
    await taskdb.execute("UPDATE sessions SET heartbeat_time = now() - interval '2 min', expire_time = now()")
    await expire(taskdb)
    found = await events(admin, 'resource = "runners/worker-a"', parent="tenants/system")
    assert {"runner.registered", "runner.marked_dead"} <= {one.event_type for one in found}


@pytest.mark.seed("S2.117", "S2.118")
async def test_a_cancel_reaches_the_worker_with_its_reason(tenant: Caller, yard: Yard) -> None:
    task = await workload(tenant)
    runner, assignment = await running(yard)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=task.name, reason="customer left"))
    (verdict,) = (await yard.renew(runner, listed=[assignment.lease])).verdicts
    assert (verdict.lease.task, verdict.reason) == (task.name, "customer left")
    assert verdict.action == lease_pb2.LEASE_ACTION_CANCEL
