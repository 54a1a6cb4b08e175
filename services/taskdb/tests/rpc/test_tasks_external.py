"""ReportTaskStatus: the owner of an external task reports, at once or through the inbox."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2

RUNNING, SUCCEEDED = task_pb2.TASK_PHASE_RUNNING, task_pb2.TASK_PHASE_SUCCEEDED
FAILED = task_pb2.TASK_PHASE_FAILED


def struct(**fields: Any) -> Struct:
    """An object with these fields."""
    made = Struct()
    made.update(fields)
    return made


async def report(caller: Any, name: str, phase: Any = 0, **fields: Any) -> Any:
    """Reports on a task."""
    request = task_service_pb2.ReportTaskStatusRequest(name=name, phase=phase, **fields)
    return await caller.tasks.ReportTaskStatus(request)


async def test_owner_takes_a_task_to_its_end(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create(external=True)
    await report(tenant, task.name, RUNNING, details=struct(a=1, b=1))
    await report(tenant, task.name, progress=common_pb2.Progress(percent=50), details=struct(b=2))
    running = await tenant.get(task.name)
    assert (running.status.phase, running.status.attempt) == (RUNNING, 1)
    assert running.status.progress.percent == 50
    assert dict(running.status.details) == {"a": 1, "b": 2}
    output = task_pb2.TaskResult(output=common_pb2.Payload(raw=b"{}"))
    response = await report(tenant, task.name, SUCCEEDED, result=output)
    assert response.task.status.phase == SUCCEEDED
    assert (await tenant.get(task.name)).status.result == output


async def test_failure_keeps_its_error(tenant: Any) -> None:
    task = await tenant.create(external=True)
    await report(tenant, task.name, RUNNING)
    error = common_pb2.TaskError(code="BROKEN", message="it broke")
    await report(tenant, task.name, FAILED, error=error)
    status = (await tenant.get(task.name)).status
    assert (status.phase, status.error.code) == (FAILED, "BROKEN")


@pytest.mark.covers("ReportTaskStatus", "NOT_FOUND")
async def test_missing_and_foreign_tasks_are_not_found(taskdb: Any, tenant: Any, admin: Any) -> None:
    await taskdb.add_tenant("acme")
    foreign = await admin.create(parent="tenants/acme", external=True)
    for name in ("tenants/default/tasks/none", foreign.name):
        for enqueue in (False, True):
            with pytest.raises(errors.NotFound):
                await report(tenant, name, RUNNING, enqueue=enqueue)
    assert await taskdb.rows("SELECT * FROM inbox") == []


@pytest.mark.covers("ReportTaskStatus", "PHASE_CONFLICT")
async def test_only_external_tasks_are_reported_on(tenant: Any) -> None:
    task = await tenant.create()
    with pytest.raises(errors.PhaseConflict):
        await report(tenant, task.name, RUNNING)
    assert (await tenant.get(task.name)).metadata.resource_version == 1


@pytest.mark.covers("ReportTaskStatus", "TASK_TERMINAL")
async def test_ended_task_takes_no_other_end(tenant: Any) -> None:
    task = await tenant.create(external=True)
    await report(tenant, task.name, SUCCEEDED)
    ended = await tenant.get(task.name)
    with pytest.raises(errors.TaskTerminal):
        await report(tenant, task.name, FAILED)
    await report(tenant, task.name, SUCCEEDED)
    assert await tenant.get(task.name) == ended


@pytest.mark.covers("ReportTaskStatus", "RESOURCE_VERSION_MISMATCH")
async def test_stale_resource_version_is_refused(tenant: Any) -> None:
    task = await tenant.create(external=True)
    await report(tenant, task.name, RUNNING, resource_version=1)
    with pytest.raises(errors.ResourceVersionMismatch):
        await report(tenant, task.name, SUCCEEDED, resource_version=1)
    assert (await tenant.get(task.name)).status.phase == RUNNING


@pytest.mark.covers("ReportTaskStatus", "REQUEST_ID_REUSED")
async def test_request_id_makes_a_report_repeatable(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create(external=True)
    for _ in range(2):
        await report(tenant, task.name, RUNNING, details=struct(a=1), request_id="r")
    assert (await tenant.get(task.name)).metadata.resource_version == 2
    for enqueue in (False, True):
        with pytest.raises(errors.RequestIdReused):
            await report(tenant, task.name, SUCCEEDED, request_id="r", enqueue=enqueue)
    assert (await tenant.get(task.name)).status.phase == RUNNING


async def test_enqueued_reports_are_applied_in_order(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create(external=True)
    response = await report(tenant, task.name, RUNNING, enqueue=True)
    assert response.task.metadata.resource_version == 1
    await report(tenant, task.name, SUCCEEDED, enqueue=True)
    assert (await tenant.get(task.name)).status.phase == SUCCEEDED
    assert await taskdb.rows("SELECT * FROM inbox") == []


async def store_report(taskdb: Any, name: str, phase: Any, **fields: Any) -> None:
    """Store a report without applying it, as a process does that ends in between."""
    request = task_service_pb2.ReportTaskStatusRequest(name=name, phase=phase, **fields)
    _, tenant_id, _, task_id = name.split("/")
    await taskdb.rows(
        "INSERT INTO inbox (tenant_id, task_id, actor_id, report) VALUES (%s, %s, 'k', %s) RETURNING id",
        tenant_id,
        task_id,
        request.SerializeToString(),
    )


async def test_direct_report_comes_after_what_is_stored(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create(external=True)
    await store_report(taskdb, task.name, RUNNING, details=struct(a=1, b=1))
    await report(tenant, task.name, SUCCEEDED, details=struct(b=2))
    status = (await tenant.get(task.name)).status
    assert (status.phase, dict(status.details)) == (SUCCEEDED, {"a": 1, "b": 2})
    events = await taskdb.rows("SELECT event, version FROM changes ORDER BY id")
    assert events == [(1, 1), (3, 2), (8, 3)]


async def test_stored_report_that_is_no_transition_is_dropped_and_audited(taskdb: Any, tenant: Any) -> None:
    done, ordinary, deleted = (
        await tenant.create(external=True),
        await tenant.create(),
        await tenant.create(external=True),
    )
    await report(tenant, done.name, SUCCEEDED)
    for task in (done, ordinary, deleted):
        await store_report(taskdb, task.name, FAILED)
    await taskdb.rows("DELETE FROM tasks WHERE task_id = %s RETURNING 1", deleted.metadata.id)
    assert await taskdb.taskdb.inbox.apply_all() == 3
    assert await taskdb.rows("SELECT * FROM inbox") == []
    rows = await taskdb.rows(
        "SELECT resource_id, details ->> 'reason' FROM changes WHERE event = 23 ORDER BY id"
    )
    assert rows == [(done.metadata.id, "TASK_TERMINAL"), (ordinary.metadata.id, "PHASE_CONFLICT")]


async def test_bad_documents_are_refused(tenant: Any) -> None:
    task = await tenant.create(external=True)
    with pytest.raises(errors.FieldInvalid):
        await report(tenant, task.name, RUNNING, details=struct(a="\0"))
    with pytest.raises(errors.FieldInvalid):
        await report(tenant, task.name, task_pb2.TASK_PHASE_CANCELLED)
    with pytest.raises(errors.TooLarge):
        await report(tenant, task.name, RUNNING, details=struct(a="x" * 65536))
