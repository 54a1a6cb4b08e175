"""Expensive schemas run in processes of their own: bounded, shared by tenants, and in nobody's way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.type_calls import PARENT, register, typed
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2, task_type_service_pb2
from taskyard_taskdb.rpc import schema_processes
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.schema_processes import Job, SchemaProcesses

# Each value is compared with 900 subschemas: 36 KB take some 0.1 s.
HEAVY: dict[str, Any] = {"items": {"allOf": [{"type": "integer"} for _ in range(900)]}}
TEXT = json.dumps(HEAVY).encode()
DOCUMENT = json.dumps([1] * 12_000).encode()
WRONG = json.dumps([1] * 12_000 + ["x"]).encode()


def heavy(raw: bytes = DOCUMENT) -> common_pb2.Payload:
    return common_pb2.Payload(raw=raw)


@pytest.fixture
async def processes() -> AsyncIterator[SchemaProcesses]:
    made = SchemaProcesses(2)
    yield made
    await made.close()


@pytest.fixture
def checks(processes: SchemaProcesses) -> SchemaChecks:
    return SchemaChecks(processes)


async def test_an_expensive_check_leaves_the_event_loop_free(checks: SchemaChecks) -> None:
    """No round of the loop takes as much CPU time as one check."""
    await checks.check("a", TEXT, heavy(), "f")
    rounds = [time.thread_time()]
    running = asyncio.gather(*(checks.check("a", TEXT, heavy(), "f") for _ in range(4)))
    while not running.done():
        await asyncio.sleep(0.001)
        rounds.append(time.thread_time())
    assert await running == [()] * 4
    assert max(after - before for before, after in pairwise(rounds)) < 0.04


async def test_processes_and_the_event_loop_find_the_same(checks: SchemaChecks) -> None:
    (found,) = await checks.check("a", TEXT, heavy(WRONG), "f")
    assert (found.field, found.rule) == ("f.raw", "json_schema")
    (found,) = await checks.check("a", TEXT, heavy(b"{" + b" " * 30_000), "f")
    assert found.rule == "json" and found.field == "f.raw"
    bad = json.dumps({"type": "nonsense", "description": "x" * 100_000}).encode()
    with pytest.raises(errors.FieldInvalid, match="is not a JSON Schema") as refused:
        await checks.compile("a", bad, "payload_schema")
    assert refused.value.violations[0].field == "payload_schema"


async def test_cheap_checks_start_no_process(checks: SchemaChecks, processes: SchemaProcesses) -> None:
    for _ in range(1000):
        assert not await checks.check("a", b'{"type": "object"}', common_pb2.Payload(raw=b'{"a": 1}'), "f")
    assert not processes.pids


async def test_the_event_loop_is_lent_to_a_tenant_for_a_part_of_the_time(
    checks: SchemaChecks, processes: SchemaProcesses
) -> None:
    """Each check alone is cheap enough for the loop; a hundred at once go to the processes."""
    medium = common_pb2.Payload(raw=json.dumps([1] * 600).encode())
    assert checks.check_now("a", TEXT, medium, "f") == ()
    found = await asyncio.gather(*(checks.check("a", TEXT, medium, "f") for _ in range(50)))
    assert found == [()] * 50 and processes.pids
    assert None in [checks.check_now("a", TEXT, medium, "f") for _ in range(3)]
    assert checks.check_now("b", TEXT, medium, "f") == ()


async def test_a_job_beyond_its_cpu_time_ends_with_its_process() -> None:
    processes = SchemaProcesses(1, cpu_seconds=0.01)
    try:
        job = Job("f", TEXT, heavy().SerializeToString())
        (found,) = await processes.run("a", job)
        assert found.rule == "json_schema.work" and "0.01 s of CPU time" in found.description
        assert await processes.run("a", Job("f", b"{}")) == ()
    finally:
        await processes.close()


async def test_a_killed_process_costs_no_check(checks: SchemaChecks, processes: SchemaProcesses) -> None:
    await checks.check("a", TEXT, heavy(), "f")
    (pid,) = processes.pids
    os.kill(pid, signal.SIGKILL)
    assert await checks.check("a", TEXT, heavy(), "f") == ()
    assert processes.pids and processes.pids != [pid]


async def test_one_tenant_occupies_half_of_the_processes_and_a_bounded_queue(
    checks: SchemaChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_processes, "MAX_WAITING", 5)
    first = [asyncio.create_task(checks.check("a", TEXT, heavy(), "f")) for _ in range(10)]
    await asyncio.sleep(0)
    other = asyncio.create_task(checks.check("b", TEXT, heavy(), "f"))
    answers = await asyncio.gather(*first, return_exceptions=True)
    assert other.done(), "the second tenant did not wait behind all jobs of the first"
    shed = [answer for answer in answers if isinstance(answer, errors.Overloaded)]
    assert len(shed) == 4 and all(error.retry_after for error in shed)
    assert [answer for answer in answers if answer not in shed] == [()] * 6


async def test_closing_ends_every_process_and_fails_what_waits(processes: SchemaProcesses) -> None:
    job = Job("f", TEXT, heavy().SerializeToString())
    await processes.run("a", job)
    pids = processes.pids
    waiting = [asyncio.create_task(processes.run("a", job)) for _ in range(3)]
    await asyncio.sleep(0)
    await processes.close()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, errors.ServerDraining) for answer in answers)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(errors.ServerDraining):
        await processes.run("a", job)


async def test_expensive_validations_of_one_tenant_delay_no_create_of_another(
    taskdb: RunningTaskDb, tenant: Caller, yard: Yard
) -> None:
    """24 parallel ValidatePayload: another tenant creates meanwhile, and a runner keeps a short lease."""
    made = await register(tenant, payload_schema=HEAVY)
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")
    request = task_type_service_pb2.ValidatePayloadRequest(name=made.name, payload=heavy())
    reader = await taskdb.caller(read_only=True)
    assert (await reader.task_types.ValidatePayload(request)).valid
    flood = [asyncio.create_task(reader.task_types.ValidatePayload(request)) for _ in range(24)]
    slowest, created = 0.0, 0
    runner, _ = await yard.hello(lease_seconds=5)
    while not all(call.done() for call in flood):
        before = time.monotonic()
        await other.tasks.CreateTask(new_task("tenants/other"))
        slowest, created = max(slowest, time.monotonic() - before), created + 1
        renewed = await yard.renew(runner, lease_seconds=5)
        assert not renewed.lost
    assert all(response.valid for response in await asyncio.gather(*flood))
    # In the event loop one create would wait for all 24 checks; the bound leaves room for a busy machine.
    assert created > 10 and slowest < 3.0, (created, slowest)


@pytest.mark.covers("ReportRuns", "RESULT_CHECK_PENDING")
async def test_expensive_results_are_checked_outside_of_the_flush(
    taskdb: RunningTaskDb, tenant: Caller, yard: Yard
) -> None:
    """A report with an expensive result is pending, others are applied; repeated, it finds its verdict."""
    await register(tenant, result_schema=TEXT)
    good, bad, plain = await yard.create(3, task_type="plan")
    runner, _ = await yard.hello()
    leases = {item.lease.task: item for item in (await yard.claim(runner)).assignments}
    await yard.report(runner, *(started(lease) for lease in leases.values()))

    def outcome(name: str, raw: bytes) -> Any:
        return succeeded(leases[name], result=task_pb2.TaskResult(output=heavy(raw)))

    reports = [outcome(good, DOCUMENT), outcome(bad, WRONG), outcome(plain, b"[1]")]
    first = await yard.report(runner, *reports)
    assert [isinstance(from_status(item.error), errors.ResultCheckPending) for item in first[:2]] == [
        True
    ] * 2
    assert first[2].phase == task_pb2.TASK_PHASE_SUCCEEDED
    expected = (task_pb2.TASK_PHASE_SUCCEEDED, task_pb2.TASK_PHASE_FAILED)
    for report, phase in zip(reports[:2], expected, strict=True):
        found = (await yard.report(runner, report))[0]
        async with asyncio.timeout(60):
            while found.HasField("error"):
                await asyncio.sleep(0.02)
                found = (await yard.report(runner, report))[0]
        assert found.phase == phase
    assert (await yard.task(bad)).status.error.code == "RESULT_SCHEMA_VIOLATION"


async def test_expensive_payloads_are_checked_by_every_call_that_stores_them(tenant: Caller) -> None:
    await register(tenant, payload_schema=HEAVY)
    task = new_task(task_type="plan", payload=heavy())
    stored = (await tenant.tasks.CreateTask(task)).task
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await tenant.tasks.CreateTask(new_task(task_type="plan", payload=heavy(WRONG)))
    assert refused.value.violations[0].field == "task.spec.payload.raw"
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=PARENT, requests=[task, new_task(task_type="plan", payload=heavy(WRONG))]
    )
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.BatchCreateTasks(batch)
    change = task_service_pb2.UpdateTaskRequest()
    change.task.name = stored.name
    change.task.spec.payload.raw = WRONG
    change.update_mask.paths.append("spec.payload")
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.UpdateTask(change)
    change.task.spec.payload.raw = DOCUMENT[:-1] + b", 2]"
    assert (await tenant.tasks.UpdateTask(change)).task.spec.payload.raw == change.task.spec.payload.raw


async def test_a_type_without_a_schema_takes_objects_only(tenant: Caller) -> None:
    made = await register(tenant, execution=new_task().task.spec.execution)
    assert (await tenant.tasks.CreateTask(typed(payload={"a": 1}))).task.name
    for raw in (b"[1]", b'"text"', b"1", b"null"):
        request = typed()
        request.task.spec.payload.raw = raw
        with pytest.raises(errors.PayloadSchemaViolation, match="JSON object"):
            await tenant.tasks.CreateTask(request)
        answer = await tenant.task_types.ValidatePayload(
            task_type_service_pb2.ValidatePayloadRequest(name=made.name, payload=request.task.spec.payload)
        )
        assert not answer.valid and answer.violations[0].field == "payload.raw"
    opaque = typed()
    opaque.task.spec.payload.MergeFrom(common_pb2.Payload(raw=b"\xff", content_type="image/png"))
    assert (await tenant.tasks.CreateTask(opaque)).task.name
