"""CancelTask, PauseTask, ResumeTask, RetryTask, DeleteTask and their batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import task_pb2, task_service_pb2

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]

PENDING, PAUSED = task_pb2.TASK_PHASE_PENDING, task_pb2.TASK_PHASE_PAUSED
CANCELLED, SUCCEEDED = task_pb2.TASK_PHASE_CANCELLED, task_pb2.TASK_PHASE_SUCCEEDED
RUNNING = task_pb2.TASK_PHASE_RUNNING

REQUESTS: dict[str, type[Any]] = {
    "CancelTask": task_service_pb2.CancelTaskRequest,
    "PauseTask": task_service_pb2.PauseTaskRequest,
    "ResumeTask": task_service_pb2.ResumeTaskRequest,
    "RetryTask": task_service_pb2.RetryTaskRequest,
    "DeleteTask": task_service_pb2.DeleteTaskRequest,
}


async def ask(caller: Any, rpc: str, name: str, **fields: Any) -> Any:
    """Calls an RPC that is about one task."""
    return await getattr(caller.tasks, rpc)(REQUESTS[rpc](name=name, **fields))


async def snapshot(taskdb: Any) -> Any:
    """Everything that an action could change."""
    return await taskdb.rows(
        "SELECT (SELECT array_agg(t.* ORDER BY task_id)::text FROM tasks t), "
        "(SELECT array_agg(q.* ORDER BY task_id)::text FROM queue q), "
        "(SELECT array_agg(l.* ORDER BY task_id)::text FROM leases l), (SELECT count(*) FROM changes), "
        "(SELECT count(*) FROM idempotency_keys)"
    )


@pytest.mark.covers("CancelTask", "NOT_FOUND")
@pytest.mark.covers("PauseTask", "NOT_FOUND")
@pytest.mark.covers("ResumeTask", "NOT_FOUND")
@pytest.mark.covers("RetryTask", "NOT_FOUND")
@pytest.mark.covers("DeleteTask", "NOT_FOUND")
@pytest.mark.parametrize("rpc", REQUESTS)
async def test_missing_and_foreign_tasks_are_not_found(
    taskdb: Any, tenant: Any, admin: Any, make_task: MakeTask, rpc: str
) -> None:
    await taskdb.add_tenant("acme")
    foreign = await admin.create(parent="tenants/acme")
    before = await snapshot(taskdb)
    for name in ("tenants/default/tasks/none", foreign.name):
        with pytest.raises(errors.NotFound) as refused:
            await ask(tenant, rpc, name)
        assert refused.value.name == name
    assert await snapshot(taskdb) == before


@pytest.mark.covers("CancelTask", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("PauseTask", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("ResumeTask", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("RetryTask", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("DeleteTask", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.parametrize("rpc", REQUESTS)
async def test_stale_resource_version_changes_nothing(taskdb: Any, tenant: Any, rpc: str) -> None:
    task = await tenant.create()
    if rpc in ("RetryTask", "DeleteTask"):
        await ask(tenant, "CancelTask", task.name)
    if rpc == "ResumeTask":
        await ask(tenant, "PauseTask", task.name)
    current = (await tenant.get(task.name)).metadata.resource_version
    before = await snapshot(taskdb)
    with pytest.raises(errors.ResourceVersionMismatch) as refused:
        await ask(tenant, rpc, task.name, resource_version=current + 1)
    assert refused.value.current_resource_version == str(current)
    assert await snapshot(taskdb) == before
    await ask(tenant, rpc, task.name, resource_version=current)


async def test_cancel_of_a_queued_task_takes_effect_at_once_and_may_be_repeated(
    taskdb: Any, tenant: Any
) -> None:
    task = await tenant.create()
    first = await ask(tenant, "CancelTask", task.name, reason="enough")
    again = await ask(tenant, "CancelTask", task.name)
    assert first.task.status.phase == CANCELLED
    assert again.task == first.task
    assert await taskdb.rows("SELECT * FROM queue") == []
    rows = await taskdb.rows("SELECT event, details FROM changes ORDER BY id DESC LIMIT 1")
    assert rows == [(12, {"reason": "enough"})]


async def test_cancel_of_a_running_task_asks_its_holder(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await taskdb.start(task.name)
    requested = (await ask(tenant, "CancelTask", task.name, reason="enough")).task
    assert requested.status.phase == RUNNING
    assert requested.status.requested_action.action == task_pb2.TASK_ACTION_CANCEL
    assert requested.status.requested_action.reason == "enough"
    assert requested.status.requested_action.actor.id == requested.metadata.creator.id
    again = (await ask(tenant, "CancelTask", task.name)).task
    assert again.metadata.resource_version == requested.metadata.resource_version


@pytest.mark.covers("CancelTask", "TASK_TERMINAL")
@pytest.mark.covers("PauseTask", "TASK_TERMINAL")
@pytest.mark.covers("ResumeTask", "TASK_TERMINAL")
@pytest.mark.parametrize("rpc", ["CancelTask", "PauseTask", "ResumeTask"])
async def test_ended_task_is_left_alone(taskdb: Any, tenant: Any, rpc: str) -> None:
    task = await tenant.create()
    await taskdb.succeed(task.name)
    before = await snapshot(taskdb)
    with pytest.raises(errors.TaskTerminal):
        await ask(tenant, rpc, task.name)
    assert await snapshot(taskdb) == before


async def test_pause_and_resume_of_a_queued_task(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    for _ in range(2):
        assert (await ask(tenant, "PauseTask", task.name)).task.status.phase == PAUSED
    assert await taskdb.rows("SELECT * FROM queue") == []
    for _ in range(2):
        assert (await ask(tenant, "ResumeTask", task.name)).task.status.phase == PENDING
    assert await taskdb.rows("SELECT task_id FROM queue") == [(task.metadata.id,)]
    assert (await tenant.get(task.name)).metadata.resource_version == 3


async def test_pause_of_a_running_task_is_asked_for_and_withdrawn(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await taskdb.start(task.name)
    requested = (await ask(tenant, "PauseTask", task.name)).task
    assert requested.status.requested_action.action == task_pb2.TASK_ACTION_PAUSE
    resumed = (await ask(tenant, "ResumeTask", task.name)).task
    assert resumed.status.phase == RUNNING and not resumed.status.HasField("requested_action")


@pytest.mark.covers("PauseTask", "PHASE_CONFLICT")
async def test_external_task_and_one_being_cancelled_cannot_be_paused(taskdb: Any, tenant: Any) -> None:
    external, running = await tenant.create(external=True), await tenant.create()
    await taskdb.start(running.name)
    await ask(tenant, "CancelTask", running.name)
    before = await snapshot(taskdb)
    for task in (external, running):
        with pytest.raises(errors.PhaseConflict):
            await ask(tenant, "PauseTask", task.name)
    assert await snapshot(taskdb) == before


async def test_retry_starts_over_with_fresh_budgets(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await taskdb.fail(task.name)
    retried = (await ask(tenant, "RetryTask", task.name)).task
    assert retried.status.phase == PENDING
    assert (retried.status.retry_count, retried.status.generation) == (0, 1)
    assert not retried.status.HasField("error")
    assert await taskdb.rows("SELECT task_id FROM queue") == [(task.metadata.id,)]


async def test_retry_with_a_request_id_may_be_repeated(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await taskdb.fail(task.name)
    first = (await ask(tenant, "RetryTask", task.name, request_id="r")).task
    await taskdb.fail(task.name)
    # Without the request id this would be a second retry.
    again = (await ask(tenant, "RetryTask", task.name, request_id="r")).task
    assert first.status.phase == PENDING
    assert again.status.phase == task_pb2.TASK_PHASE_FAILED


@pytest.mark.covers("RetryTask", "REQUEST_ID_REUSED")
async def test_retry_with_a_request_id_of_another_task_is_refused(taskdb: Any, tenant: Any) -> None:
    one, other = await tenant.create(), await tenant.create()
    await taskdb.fail(one.name)
    await taskdb.fail(other.name)
    await ask(tenant, "RetryTask", one.name, request_id="r")
    before = await snapshot(taskdb)
    with pytest.raises(errors.RequestIdReused):
        await ask(tenant, "RetryTask", other.name, request_id="r")
    assert await snapshot(taskdb) == before


@pytest.mark.seed("S1.52")
@pytest.mark.covers("RetryTask", "PHASE_CONFLICT")
async def test_live_and_succeeded_tasks_are_not_retried(taskdb: Any, tenant: Any) -> None:
    live, done = await tenant.create(), await tenant.create()
    await taskdb.succeed(done.name)
    before = await snapshot(taskdb)
    for task in (live, done):
        with pytest.raises(errors.PhaseConflict):
            await ask(tenant, "RetryTask", task.name, request_id=f"r-{task.metadata.id}")
    assert await snapshot(taskdb) == before


@pytest.mark.covers("RetryTask", "TENANT_SUSPENDED")
async def test_suspended_tenant_does_not_retry(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await ask(tenant, "CancelTask", task.name)
    await taskdb.rows("UPDATE tenants SET suspended = true WHERE tenant_id = 'default' RETURNING 1")
    taskdb.taskdb.tenants.forget("default")
    with pytest.raises(errors.TenantSuspended):
        await ask(tenant, "RetryTask", task.name)


@pytest.mark.covers("RetryTask", "SLOT_QUEUE_FULL")
async def test_retry_into_a_full_slot_is_refused(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    task = await tenant.create(slot="s")
    await ask(tenant, "CancelTask", task.name)
    full = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=[make_task(slot="s") for _ in range(101)]
    )
    await tenant.tasks.BatchCreateTasks(full)
    before = await snapshot(taskdb)
    with pytest.raises(errors.SlotQueueFull):
        await ask(tenant, "RetryTask", task.name)
    assert await snapshot(taskdb) == before


async def test_delete_removes_the_task_and_keeps_its_trail(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await taskdb.succeed(task.name)
    await ask(tenant, "DeleteTask", task.name)
    with pytest.raises(errors.NotFound):
        await tenant.get(task.name)
    await ask(tenant, "DeleteTask", task.name, allow_missing=True)
    assert await taskdb.rows("SELECT * FROM ended_runs") == []
    assert await taskdb.rows("SELECT event FROM changes ORDER BY id DESC LIMIT 1") == [(21,)]


@pytest.mark.covers("DeleteTask", "PHASE_CONFLICT")
async def test_live_task_is_not_deleted(taskdb: Any, tenant: Any) -> None:
    queued, running = await tenant.create(), await tenant.create()
    await taskdb.start(running.name)
    before = await snapshot(taskdb)
    for task in (queued, running):
        with pytest.raises(errors.PhaseConflict):
            await ask(tenant, "DeleteTask", task.name)
    assert await snapshot(taskdb) == before


async def test_reason_with_nul_is_refused(tenant: Any) -> None:
    task = await tenant.create()
    for rpc in ("CancelTask", "PauseTask"):
        with pytest.raises(errors.FieldInvalid) as refused:
            await ask(tenant, rpc, task.name, reason="a\0b")
        assert refused.value.violations[0].field == "reason"


# --- batches


def reasons(response: Any) -> list[str]:
    """The reason of each result, empty for those accepted."""
    return [from_status(result.status).reason if result.status.code else "" for result in response.results]


@pytest.mark.covers("BatchCancelTasks", "NOT_FOUND")
@pytest.mark.covers("BatchCancelTasks", "TASK_TERMINAL")
async def test_batch_cancel_decides_each_task(taskdb: Any, tenant: Any) -> None:
    queued, running, done = await tenant.create(), await tenant.create(), await tenant.create()
    await taskdb.start(running.name)
    await taskdb.succeed(done.name)
    names = [queued.name, done.name, "tenants/default/tasks/none", running.name]
    request = task_service_pb2.BatchCancelTasksRequest(parent="tenants/default", names=names)
    for _ in range(2):
        response = await tenant.tasks.BatchCancelTasks(request)
        assert [result.name for result in response.results] == names
        assert reasons(response) == ["", "TASK_TERMINAL", "NOT_FOUND", ""]
    assert (await tenant.get(queued.name)).status.phase == CANCELLED
    assert (await tenant.get(running.name)).status.requested_action.action == task_pb2.TASK_ACTION_CANCEL


async def test_batch_cancel_by_filter_comes_to_an_end(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    request = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=[make_task(task_type="a") for _ in range(1000)]
    )
    await tenant.tasks.BatchCreateTasks(request)
    running, other = await tenant.create(task_type="a"), await tenant.create(task_type="b")
    await taskdb.start(running.name)
    cancel = task_service_pb2.BatchCancelTasksRequest(parent="tenants/default", filter='spec.task_type = "a"')
    first = await tenant.tasks.BatchCancelTasks(cancel)
    second = await tenant.tasks.BatchCancelTasks(cancel)
    third = await tenant.tasks.BatchCancelTasks(cancel)
    assert (len(first.results), first.more) == (1000, True)
    assert (len(second.results), second.more) == (1, False)
    assert (len(third.results), third.more) == (0, False)
    assert (await tenant.get(other.name)).status.phase == PENDING


@pytest.mark.covers("BatchRetryTasks", "NOT_FOUND")
@pytest.mark.covers("BatchRetryTasks", "PHASE_CONFLICT")
async def test_batch_retry_decides_each_task_and_finds_them_live_when_repeated(
    taskdb: Any, tenant: Any
) -> None:
    failed, cancelled, done = await tenant.create(), await tenant.create(), await tenant.create()
    await taskdb.fail(failed.name)
    await ask(tenant, "CancelTask", cancelled.name)
    await taskdb.succeed(done.name)
    names = [failed.name, done.name, "tenants/default/tasks/none", cancelled.name]
    request = task_service_pb2.BatchRetryTasksRequest(parent="tenants/default", names=names)
    response = await tenant.tasks.BatchRetryTasks(request)
    assert reasons(response) == ["", "PHASE_CONFLICT", "NOT_FOUND", ""]
    again = await tenant.tasks.BatchRetryTasks(request)
    assert reasons(again) == ["PHASE_CONFLICT", "PHASE_CONFLICT", "NOT_FOUND", "PHASE_CONFLICT"]


async def test_batch_retry_by_filter_takes_what_did_not_succeed(taskdb: Any, tenant: Any) -> None:
    failed, done = await tenant.create(task_type="a"), await tenant.create(task_type="a")
    await taskdb.fail(failed.name)
    await taskdb.succeed(done.name)
    request = task_service_pb2.BatchRetryTasksRequest(parent="tenants/default", filter='spec.task_type = "a"')
    response = await tenant.tasks.BatchRetryTasks(request)
    assert [result.name for result in response.results] == [failed.name]
    assert (await tenant.get(done.name)).status.phase == SUCCEEDED


@pytest.mark.covers("BatchRetryTasks", "TENANT_SUSPENDED")
async def test_suspended_tenant_does_not_retry_a_batch(taskdb: Any, admin: Any) -> None:
    await taskdb.add_tenant("acme", suspended=True)
    request = task_service_pb2.BatchRetryTasksRequest(parent="tenants/acme", names=["tenants/acme/tasks/t"])
    with pytest.raises(errors.TenantSuspended):
        await admin.tasks.BatchRetryTasks(request)


@pytest.mark.covers("BatchRetryTasks", "SLOT_QUEUE_FULL")
async def test_batch_retry_into_a_full_slot_refuses_that_task(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    slotted, free = await tenant.create(slot="s"), await tenant.create()
    for task in (slotted, free):
        await ask(tenant, "CancelTask", task.name)
    full = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=[make_task(slot="s") for _ in range(101)]
    )
    await tenant.tasks.BatchCreateTasks(full)
    request = task_service_pb2.BatchRetryTasksRequest(
        parent="tenants/default", names=[slotted.name, free.name]
    )
    assert reasons(await tenant.tasks.BatchRetryTasks(request)) == ["SLOT_QUEUE_FULL", ""]


@pytest.mark.covers("BatchCancelTasks", "BATCH_TOO_LARGE")
@pytest.mark.covers("BatchCancelTasks", "FILTER_INVALID")
@pytest.mark.covers("BatchRetryTasks", "BATCH_TOO_LARGE")
@pytest.mark.covers("BatchRetryTasks", "FILTER_INVALID")
@pytest.mark.parametrize("rpc", ["BatchCancelTasks", "BatchRetryTasks"])
async def test_batches_refuse_too_many_names_and_bad_filters(taskdb: Any, tenant: Any, rpc: str) -> None:
    request = getattr(task_service_pb2, f"{rpc}Request")
    call = getattr(tenant.tasks, rpc)
    names = [f"tenants/default/tasks/t{n}" for n in range(1001)]
    with pytest.raises(errors.BatchTooLarge):
        await call(request(parent="tenants/default", names=names))
    with pytest.raises(errors.FilterInvalid):
        await call(request(parent="tenants/default", filter="spec.nothing = 1"))
    with pytest.raises(errors.FieldInvalid):
        await call(request(parent="tenants/default"))
    await taskdb.add_tenant("acme")
    with pytest.raises(errors.NotFound):
        await call(request(parent="tenants/default", names=["tenants/acme/tasks/t"]))
