"""The preset aiopslab: fields, defaults, bounds and life of a task that solves a problem."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller
from services.taskdb.tests.preset_tasks import listed, load, problem, running
from services.taskdb.tests.yard import Yard, duration, failed, started, succeeded
from taskyard import errors
from taskyard.convert import from_payload
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, task_pb2, task_service_pb2

P = task_pb2


@pytest.fixture(autouse=True)
async def preset(admin: Caller) -> None:
    await load(admin, "aiopslab")


def timed_out(assignment: lease_pb2.Assignment) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(
        lease=assignment.lease, timed_out=lease_pb2.RunTimedOut(code="ATTEMPT_TIMEOUT")
    )


def minutes(number: float) -> dict[str, int]:
    return {"seconds": int(number * 60)}


@pytest.mark.seed("S0.1", "S0.2", "S0.26")
async def test_a_task_has_a_uuid_of_its_own_and_is_found_by_it(tenant: Caller) -> None:
    first, second = await problem(tenant), await problem(tenant)
    assert str(uuid.UUID(first.metadata.id)) == first.metadata.id != second.metadata.id
    assert (await tenant.get(first.name)).metadata.id == first.metadata.id
    with pytest.raises(errors.AlreadyExists):
        await problem(tenant, task_id=first.metadata.id)


@pytest.mark.seed("S0.3", "S0.22", "S0.74")
async def test_a_problem_is_required_and_not_empty(tenant: Caller) -> None:
    made = await problem(tenant, {"problem_id": "misconfig-1"})
    assert from_payload((await tenant.get(made.name)).spec.payload)["problem_id"] == "misconfig-1"
    broken: list[dict[str, Any]] = [{"agent_config": {}}, {"problem_id": ""}, {"problem_id": 3}]
    for payload in broken:
        with pytest.raises(errors.PayloadSchemaViolation) as refused:
            await problem(tenant, payload)
        assert "problem_id" in str(refused.value)


@pytest.mark.seed("S0.5", "S0.6", "S0.10", "S0.75")
async def test_agent_config_and_metadata_are_objects_and_come_back(tenant: Caller) -> None:
    parameters = {"problem_id": "p", "agent_config": {"model": "m"}, "metadata": {"team": "a"}}
    made = await problem(tenant, parameters)
    assert from_payload((await tenant.get(made.name)).spec.payload) == parameters
    await problem(tenant, {"problem_id": "p"})
    for wrong in ({"agent_config": "m"}, {"metadata": "a"}):
        with pytest.raises(errors.PayloadSchemaViolation):
            await problem(tenant, {"problem_id": "p"} | wrong)


@pytest.mark.seed("S0.75")
async def test_parameters_that_are_no_json_are_refused(tenant: Caller) -> None:
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default")
    request.task.spec.task_type = "aiopslab.problem"
    request.task.spec.payload.raw = b'{"problem_id": "p",'
    with pytest.raises(errors.InvalidArgument):
        await tenant.tasks.CreateTask(request)


@pytest.mark.seed("S0.4", "S0.7", "S0.8", "S0.11")
async def test_what_is_left_open_has_the_defaults_of_the_system(tenant: Caller) -> None:
    task = await problem(tenant)
    assert task.status.phase == P.TASK_PHASE_PENDING
    assert (task.spec.max_steps, task.spec.attempt_timeout.seconds) == (30, 30 * 60)
    assert task.spec.priority == 2 * 5


@pytest.mark.seed("S0.7", "S0.76")
async def test_max_steps_are_1_to_1000(tenant: Caller) -> None:
    for steps in (1, 1000):
        assert (await problem(tenant, max_steps=steps)).spec.max_steps == steps
    for steps in (0, 1001):
        with pytest.raises(errors.FieldInvalid) as refused:
            await problem(tenant, max_steps=steps)
        assert refused.value.violations[0].field == "task.spec.max_steps"


@pytest.mark.seed("S0.25", "S0.77")
async def test_a_timeout_is_1_to_180_minutes(tenant: Caller) -> None:
    for bound in (1, 180):
        task = await problem(tenant, attempt_timeout=minutes(bound))
        assert task.spec.attempt_timeout.seconds == bound * 60
    for beyond in (0.9, 181):
        with pytest.raises(errors.FieldInvalid) as refused:
            await problem(tenant, attempt_timeout=minutes(beyond))
        assert refused.value.violations[0].field == "task.spec.attempt_timeout"


@pytest.mark.seed("S0.11", "S0.78")
async def test_a_priority_of_0_to_10_is_0_to_20_here(tenant: Caller) -> None:
    for priority in (0, 20):
        assert (await problem(tenant, priority=priority)).spec.priority == priority
    for priority in (-1, 21):
        with pytest.raises(errors.FieldInvalid):
            await problem(tenant, priority=priority)


@pytest.mark.seed("S0.9", "S0.79")
@pytest.mark.parametrize("url", ["ftp://example.com/x", "not a url", "https://"])
async def test_a_callback_that_is_no_http_url_is_refused(tenant: Caller, url: str) -> None:
    with pytest.raises(errors.FieldInvalid):
        await problem(tenant, callback=P.Callback(url=url))


@pytest.mark.seed("S0.12", "S0.24", "S0.27", "S0.72")
async def test_a_worker_is_assigned_while_the_task_runs_and_tasks_are_found_by_it(
    tenant: Caller, yard: Yard
) -> None:
    task = await problem(tenant)
    assert not task.status.runner
    runner, assignment = await running(yard)
    assert (await tenant.get(task.name)).status.runner == "runners/worker-001-kind"
    assert await listed(tenant, 'status.runner = "runners/worker-001-kind"') == [task.name]
    await yard.report(runner, succeeded(assignment))
    ended = (await tenant.get(task.name)).status
    assert (ended.runner, ended.last_runner) == ("", "runners/worker-001-kind")
    assert await listed(tenant, 'status.runner = "runners/worker-001-kind"') == []


@pytest.mark.seed("S0.27")
async def test_tasks_are_found_by_status_and_time_of_creation(tenant: Caller, yard: Yard) -> None:
    first = await problem(tenant)
    second = await problem(tenant)
    time = second.metadata.create_time.ToJsonString()
    assert await listed(tenant, f'metadata.create_time >= "{time}"') == [second.name]
    await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=second.name))
    assert await listed(tenant, "status.phase = PENDING") == [first.name]


@pytest.mark.seed("S0.13", "S0.15", "S0.16", "S0.64")
async def test_a_success_has_output_and_metrics(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    result = P.TaskResult(output=common_pb2.Payload(raw=b'{"answer": 42}'))
    result.metrics["steps"] = 7
    await yard.report(runner, succeeded(assignment, result=result))
    status = (await tenant.get(task.name)).status
    assert status.phase == P.TASK_PHASE_SUCCEEDED
    assert from_payload(status.result.output) == {"answer": 42} and status.result.metrics["steps"] == 7


@pytest.mark.seed("S0.17", "S0.65")
async def test_an_error_of_execution_fails_the_task_with_its_message_and_is_not_retried(
    tenant: Caller, yard: Yard
) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    report = failed(assignment)
    report.failed.error.message = "agent import failed"
    await yard.report(runner, report)
    status = (await tenant.get(task.name)).status
    assert (status.phase, status.error.message) == (P.TASK_PHASE_FAILED, "agent import failed")


@pytest.mark.seed("S0.18", "S0.19", "S0.20", "S0.21")
async def test_times_of_creation_start_end_and_last_change(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    assert task.metadata.HasField("create_time") and not task.status.HasField("start_time")
    runner, assignment = await running(yard)
    started_task = await tenant.get(task.name)
    assert started_task.status.HasField("start_time") and not started_task.status.HasField("end_time")
    await yard.report(runner, succeeded(assignment))
    ended = await tenant.get(task.name)
    times = [
        task.metadata.create_time.ToNanoseconds(),
        started_task.status.start_time.ToNanoseconds(),
        ended.status.end_time.ToNanoseconds(),
    ]
    assert times == sorted(times) and ended.metadata.create_time == task.metadata.create_time
    changes = [one.metadata.update_time.ToNanoseconds() for one in (task, started_task, ended)]
    assert changes == sorted(set(changes))


@pytest.mark.seed("S0.23", "S0.63", "S0.83")
async def test_a_pending_task_runs_when_a_worker_has_claimed_it_and_ends_only_then(
    tenant: Caller, yard: Yard
) -> None:
    task = await problem(tenant)
    runner, _ = await yard.hello("worker-001-kind")
    forged = lease_pb2.RunReport(lease=lease_pb2.LeaseRef(task=task.name, generation=1, lease_id=1))
    forged.succeeded.SetInParent()
    (refused,) = await yard.report(runner, forged)
    assert refused.error.code and (await tenant.get(task.name)).status.phase == P.TASK_PHASE_PENDING
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    assert (await tenant.get(task.name)).status.phase == P.TASK_PHASE_RUNNING
    assert not (await yard.claim(runner)).assignments


@pytest.mark.seed("S0.23", "S0.66")
async def test_a_task_times_out_when_its_minutes_are_over(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant, attempt_timeout=minutes(1))
    runner, assignment = await running(yard)
    assert assignment.spec.attempt_timeout.seconds == 60
    await yard.report(runner, timed_out(assignment))
    assert (await tenant.get(task.name)).status.phase == P.TASK_PHASE_TIMED_OUT


@pytest.mark.seed("S0.67", "S0.84")
@pytest.mark.parametrize("end", ["success", "failure", "timeout"])
async def test_nothing_leads_out_of_an_end_but_a_retry_by_hand(tenant: Caller, yard: Yard, end: str) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    reports = {
        "success": succeeded(assignment),
        "failure": failed(assignment),
        "timeout": timed_out(assignment),
    }
    await yard.report(runner, reports.pop(end))
    phase = (await tenant.get(task.name)).status.phase
    for other in reports.values():
        (refused,) = await yard.report(runner, other)
        assert refused.error.code
    assert not (await yard.claim(runner)).assignments
    with pytest.raises(errors.TaskTerminal):
        await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=task.name))
    assert (await tenant.get(task.name)).status.phase == phase


@pytest.mark.seed("S0.91")
async def test_tasks_are_kept_for_ever(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    await yard.report(runner, succeeded(assignment))
    ended = await tenant.get(task.name)
    assert ended.spec.retention.seconds == 0 and not ended.metadata.HasField("expire_time")


@pytest.mark.seed("S0.87")
async def test_the_most_urgent_then_oldest_is_claimed_first(tenant: Caller, yard: Yard) -> None:
    names = [(await problem(tenant, priority=priority)).name for priority in (4, 20, 4, 20)]
    runner, _ = await yard.hello("worker-001-kind")
    # As a scheduler claims: a lane's lead grows with its priority.
    lanes = [
        lease_service_pb2.LaneClaim(lane=lane.key, offset=duration(3600 * lane.key.priority))
        for lane in sorted(await yard.lanes(), key=lambda lane: lane.key.priority)
    ]
    order = []
    for _ in names:
        (assignment,) = (await yard.claim(runner, 1, lanes=lanes)).assignments
        order.append(assignment.lease.task)
    assert order == [names[1], names[3], names[0], names[2]]


async def test_a_lost_worker_fails_its_task_and_nothing_is_retried(tenant: Caller) -> None:
    task = await problem(tenant)
    assert task.spec.on_runner_lost == P.RUNNER_LOST_POLICY_FAIL
    assert task.spec.retry.max_retries == 0
