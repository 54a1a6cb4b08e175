"""Results and the schema of their type: a result that does not match is a failure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2, task_type_pb2, task_type_service_pb2

SCHEMA = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}}
SUCCEEDED, FAILED = task_pb2.TASK_PHASE_SUCCEEDED, task_pb2.TASK_PHASE_FAILED
VIOLATION = "RESULT_SCHEMA_VIOLATION"


async def register(caller: Caller, parent: str = "tenants/default", type_id: str = "ask") -> str:
    """A type whose results must have an integer `answer`."""
    made = task_type_pb2.TaskType(result_schema=json.dumps(SCHEMA).encode())
    request = task_type_service_pb2.CreateTaskTypeRequest(parent=parent, task_type_id=type_id, task_type=made)
    name: str = (await caller.task_types.CreateTaskType(request)).task_type.name
    return name


async def accept_anything(caller: Caller, name: str) -> None:
    """The next revision of the type has no schema."""
    request = task_type_service_pb2.UpdateTaskTypeRequest(
        task_type=task_type_pb2.TaskType(name=name), update_mask=FieldMask(paths=["result_schema"])
    )
    await caller.task_types.UpdateTaskType(request)


def result(raw: bytes, content_type: str = "") -> dict[str, task_pb2.TaskResult]:
    output = common_pb2.Payload(raw=raw, content_type=content_type)
    return {"result": task_pb2.TaskResult(output=output)}


async def run(yard: Yard, fields: dict[str, Any], **spec: Any) -> task_pb2.Task:
    """A task that a runner has completed with this result."""
    (name,) = await yard.create(**{"task_type": "ask", **spec})
    runner, _ = await yard.hello(f"runner-{name.rsplit('/', 1)[1]}")
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment, exit_code=0, **fields))
    return await yard.task(name)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (result(b'{"answer": "42"}'), "result.output.raw.answer"),
        (result(b"{}"), "result.output.raw.answer"),
        (result(b"{"), "is not JSON"),
        (result(b"\xff"), "is not JSON"),
        (result(b"42", "text/plain"), "must be JSON"),
        ({}, "result.output.answer"),
    ],
)
async def test_a_result_that_does_not_match_fails_the_run_for_good(
    yard: Yard, tenant: Caller, fields: dict[str, Any], expected: str
) -> None:
    await register(tenant)
    task = await run(yard, fields, retry=common_pb2.RetryPolicy(max_retries=3))
    assert task.status.phase == FAILED and not task.status.HasField("result")
    error = task.status.error
    assert (error.code, error.error_class) == (VIOLATION, common_pb2.ERROR_CLASS_PERMANENT)
    assert expected in error.message, error.message


async def test_results_that_match_and_those_of_other_types_are_kept(yard: Yard, tenant: Caller) -> None:
    await register(tenant)
    good = result(b'{"answer": 42}')
    assert (await run(yard, good)).status.result == good["result"]
    other = result(b"anything")
    assert (await run(yard, other, task_type="free")).status.result == other["result"]
    assert (await run(yard, {}, task_type="")).status.phase == SUCCEEDED


async def test_a_shared_type_holds_every_tenant_to_its_schema(yard: Yard, admin: Caller) -> None:
    await register(admin, "tenants/system")
    assert (await run(yard, {})).status.error.code == VIOLATION


async def test_a_run_is_held_to_the_revision_it_was_claimed_with(yard: Yard, tenant: Caller) -> None:
    type_name = await register(tenant)
    (name,) = await yard.create(task_type="ask")
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await accept_anything(tenant, type_name)
    await yard.report(runner, succeeded(assignment))
    assert (await yard.task(name)).status.error.code == VIOLATION
    assert (await run(yard, {})).status.phase == SUCCEEDED


async def test_a_repeated_report_is_recognised_although_it_was_turned_into_a_failure(
    yard: Yard, tenant: Caller
) -> None:
    await register(tenant)
    await yard.create(2, task_type="ask")
    runner, _ = await yard.hello()
    bad, good = (await yard.claim(runner)).assignments
    reports = [started(bad), succeeded(bad), started(good), succeeded(good, **result(b'{"answer": 1}'))]
    first = await yard.report(runner, *reports)
    assert [expected.phase for expected in first][1::2] == [FAILED, SUCCEEDED]
    again = await yard.report(runner, reports[1], reports[3])
    assert [(expected.phase, expected.duplicate) for expected in again] == [(FAILED, True), (SUCCEEDED, True)]


@pytest.fixture
async def replica(taskdb: RunningTaskDb) -> AsyncIterator[RunningTaskDb]:
    async for running in run_taskdb(taskdb.url):
        yield running


async def test_replica_checks_a_schema_registered_by_another(
    taskdb: RunningTaskDb, replica: RunningTaskDb, tenant: Caller
) -> None:
    yard = await make_yard(replica, await replica.caller(3, None), await replica.caller())
    assert (await run(yard, {}, task_type="")).status.phase == SUCCEEDED
    await register(tenant)
    # As if the time for which a replica caches types had passed.
    replica.taskdb.types.forget()
    assert (await run(yard, {})).status.error.code == VIOLATION


@pytest.mark.parametrize("enqueue", [False, True])
async def test_the_owner_of_an_external_task_is_held_to_it_too(tenant: Caller, enqueue: bool) -> None:
    await register(tenant)
    for raw, phase in ((b'{"answer": 1}', SUCCEEDED), (b"{}", FAILED)):
        task = await tenant.create(task_type="ask", external=True)
        request = task_service_pb2.ReportTaskStatusRequest(
            name=task.name,
            phase=SUCCEEDED,
            enqueue=enqueue,
            request_id=f"r-{phase}",
            result=result(raw)["result"],
        )
        await tenant.tasks.ReportTaskStatus(request)
        wait = task_service_pb2.WaitTaskRequest(name=task.name)
        ended = (await tenant.tasks.WaitTask(wait)).task
        assert ended.status.phase == phase
        assert ended.status.error.code == ("" if phase == SUCCEEDED else VIOLATION)
        assert (await tenant.tasks.ReportTaskStatus(request)).task.name == task.name
