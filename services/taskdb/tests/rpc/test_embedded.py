"""EmbeddedService: tasks that only the process which created them runs."""

from __future__ import annotations

import uuid

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.yard import Yard, duration, failed, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2
from taskyard.v1 import embedded_service_pb2 as pb
from taskyard_taskdb.domain.event import LeaseExpired, QueueTimeoutPassed

HOLDER = "embedded-here"


async def create(caller: Caller, holder: str = HOLDER, **spec: object) -> task_pb2.Task:
    request = new_task(execution=task_pb2.Execution(), **spec)  # type: ignore[arg-type]
    made = await caller.embedded.CreateEmbeddedTask(
        pb.CreateEmbeddedTaskRequest(holder_id=holder, request=request)
    )
    task: task_pb2.Task = made.response.task
    return task


async def claim(caller: Caller, name: str, holder: str = HOLDER) -> list[lease_pb2.Assignment]:
    request = pb.ClaimEmbeddedTaskRequest(holder_id=holder, name=name, request_id=uuid.uuid4().hex)
    return list((await caller.embedded.ClaimEmbeddedTask(request)).assignments)


async def report(caller: Caller, *reports: lease_pb2.RunReport, holder: str = HOLDER) -> list[object]:
    request = pb.ReportEmbeddedTasksRequest(holder_id=holder, reports=reports)
    return [
        from_status(found.error) for found in (await caller.embedded.ReportEmbeddedTasks(request)).results
    ]


@pytest.mark.seed("S4.30")
async def test_a_process_runs_its_own_task_under_a_lease(tenant: Caller) -> None:
    made = await create(tenant)
    assert made.spec.execution.WhichOneof("kind") == "embedded"
    (assignment,) = await claim(tenant, made.name)
    await report(tenant, started(assignment))
    task = await tenant.get(made.name)
    assert task.status.phase == task_pb2.TASK_PHASE_RUNNING and task.status.runner == f"runners/{HOLDER}"
    renewal = pb.RenewEmbeddedTasksRequest(holder_id=HOLDER, leases=[assignment.lease])
    assert not (await tenant.embedded.RenewEmbeddedTasks(renewal)).verdicts
    batch = lease_pb2.LogBatch(lease=assignment.lease)
    batch.entries.add(sequence=1, message="here")
    logs = pb.AppendEmbeddedLogsRequest(holder_id=HOLDER, batches=[batch])
    assert [found.code for found in (await tenant.embedded.AppendEmbeddedLogs(logs)).results] == [0]
    await report(tenant, succeeded(assignment))
    assert (await tenant.get(made.name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED


@pytest.mark.seed("S4.63")
@pytest.mark.covers("CreateEmbeddedTask", "FIELD_INVALID")
async def test_an_ordinary_create_refuses_it(tenant: Caller) -> None:
    embedded = task_pb2.Execution(embedded=task_pb2.EmbeddedExecution())
    with pytest.raises(errors.FieldInvalid, match="EmbeddedService only"):
        await tenant.tasks.CreateTask(new_task(execution=embedded))
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default",
        mode=common_pb2.BATCH_MODE_PER_ITEM,
        requests=[new_task(execution=embedded), new_task()],
    )
    refused = (await tenant.tasks.BatchCreateTasks(batch)).results
    assert [result.WhichOneof("result") for result in refused] == ["error", "created"]
    command = new_task()
    with pytest.raises(errors.FieldInvalid, match="is command"):
        await tenant.embedded.CreateEmbeddedTask(
            pb.CreateEmbeddedTaskRequest(holder_id=HOLDER, request=command)
        )


@pytest.mark.covers("ClaimEmbeddedTask", "NOT_FOUND")
@pytest.mark.covers("ReportEmbeddedTasks", "NOT_FOUND")
@pytest.mark.covers("ReportEmbeddedTasks", "LEASE_NOT_HELD")
@pytest.mark.covers("RenewEmbeddedTasks", "NOT_FOUND")
@pytest.mark.covers("AppendEmbeddedLogs", "NOT_FOUND")
async def test_nobody_else_claims_it(tenant: Caller, yard: Yard, taskdb: RunningTaskDb) -> None:
    made = await create(tenant)
    with pytest.raises(errors.NotFound):
        await claim(tenant, made.name, "embedded-there")
    with pytest.raises(errors.FieldInvalid, match="begins with embedded-"):
        await yard.hello(HOLDER)
    (assignment,) = await claim(tenant, made.name)
    (refused,) = await report(tenant, started(assignment), holder="embedded-there")
    assert isinstance(refused, errors.LeaseNotHeld)
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")
    with pytest.raises(errors.NotFound):
        await report(other, started(assignment))
    with pytest.raises(errors.NotFound):
        await other.embedded.RenewEmbeddedTasks(
            pb.RenewEmbeddedTasksRequest(holder_id=HOLDER, leases=[assignment.lease])
        )
    with pytest.raises(errors.NotFound):
        await other.embedded.AppendEmbeddedLogs(
            pb.AppendEmbeddedLogsRequest(
                holder_id=HOLDER, batches=[lease_pb2.LogBatch(lease=assignment.lease)]
            )
        )


async def test_a_lease_of_a_runner_is_none_of_a_tenants(tenant: Caller, yard: Yard) -> None:
    """The secret of a lease does not help: it belongs to another holder."""
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    (refused,) = await report(tenant, started(assignment))
    assert isinstance(refused, errors.LeaseNotHeld)
    with pytest.raises(errors.NotFound, match="embedded task"):
        await claim(tenant, assignment.lease.task)


async def test_a_failed_attempt_is_retried_by_the_same_process(tenant: Caller) -> None:
    backoff = common_pb2.BackoffPolicy(initial=duration(0.001), jitter=common_pb2.JITTER_POLICY_NONE)
    made = await create(tenant, retry=common_pb2.RetryPolicy(max_retries=1, backoff=backoff))
    for _ in range(2):
        while not (found := await claim(tenant, made.name)):
            pass
        await report(tenant, started(found[0]), failed(found[0]))
    status = (await tenant.get(made.name)).status
    assert (status.phase, status.attempt) == (task_pb2.TASK_PHASE_EXHAUSTED, 2)


async def test_the_task_of_a_dead_process_fails_as_lost(tenant: Caller, taskdb: RunningTaskDb) -> None:
    running, waiting = await create(tenant), await create(tenant, "embedded-there")
    (assignment,) = await claim(tenant, running.name)
    await report(tenant, started(assignment))
    await taskdb.execute("UPDATE leases SET expire_time = now() - interval '1 s'")
    await taskdb.apply(running.name, lambda task, now: LeaseExpired(generation=task.generation))
    for table in ("tasks", "queue"):
        await taskdb.execute(f"UPDATE {table} SET ready_time = ready_time - interval '1 h'")
    await taskdb.apply(waiting.name, lambda task, now: QueueTimeoutPassed())
    for made in (running, waiting):
        status = (await tenant.get(made.name)).status
        assert (status.phase, status.error.code) == (task_pb2.TASK_PHASE_FAILED, "RUNNER_LOST")
