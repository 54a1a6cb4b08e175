"""Presets: the rules of the systems that Taskyard replaces, kept by task types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors, presets
from taskyard.cli.manifest import resources
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2, task_type_service_pb2

PARENT = "tenants/default"
PROBLEM = "aiopslab.problem"


async def load(admin: Caller, name: str) -> list[str]:
    """The types of a preset, registered for everybody."""
    file = presets.path(name)
    made = []
    for resource in resources(file.read_text(), str(file)):
        request = task_type_service_pb2.CreateTaskTypeRequest(
            parent="tenants/system", task_type_id=resource.id, task_type=resource.message
        )
        made.append((await admin.task_types.CreateTaskType(request)).task_type.name.rpartition("/")[2])
    return made


async def create(caller: Caller, task_type: str, payload: Any = None, **fields: Any) -> task_pb2.Task:
    task_id = fields.pop("task_id", "")
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task_id=task_id)
    request.task.spec.MergeFrom(task_pb2.TaskSpec(task_type=task_type, **fields))
    if payload is not None:
        request.task.spec.payload.raw = json.dumps(payload).encode()
    made: task_pb2.Task = (await caller.tasks.CreateTask(request)).task
    return made


@pytest.mark.parametrize("name", presets.NAMES)
async def test_every_preset_is_accepted(admin: Caller, name: str) -> None:
    assert await load(admin, name)


@pytest.mark.seed("S0.3-11", "S0.22", "S0.25", "S0.74-78", "S0.91")
async def test_aiopslab_problems_keep_their_rules(admin: Caller, tenant: Caller) -> None:
    await load(admin, "aiopslab")
    task = await create(tenant, PROBLEM, {"problem_id": "p1", "agent_config": {"model": "m"}, "metadata": {}})
    spec = task.spec
    assert (spec.priority, spec.max_steps, spec.attempt_timeout.seconds) == (10, 30, 1800)
    assert (spec.retry.max_retries, spec.retention.seconds) == (0, 0)
    assert spec.on_runner_lost == task_pb2.RUNNER_LOST_POLICY_FAIL and len(task.metadata.id) == 36
    assert task.status.phase == task_pb2.TASK_PHASE_PENDING
    for payload in ({}, {"problem_id": ""}, {"problem_id": "p", "agent_config": 3}):
        with pytest.raises(errors.PayloadSchemaViolation):
            await create(tenant, PROBLEM, payload)
    for wrong in (
        {"max_steps": 1001},
        {"max_steps": 0},
        {"attempt_timeout": {"seconds": 59}},
        {"attempt_timeout": {"seconds": 10801}},
        {"priority": 21},
    ):
        with pytest.raises(errors.FieldInvalid):
            await create(tenant, PROBLEM, {"problem_id": "p"}, **wrong)
    await create(tenant, PROBLEM, {"problem_id": "p"}, priority=0, attempt_timeout={"seconds": 10800})


@pytest.mark.seed("S0.9", "S0.79")
@pytest.mark.parametrize("url", ["ftp://example.com/x", "not a url", "https://"])
async def test_a_callback_is_an_http_url(tenant: Caller, admin: Caller, url: str) -> None:
    await load(admin, "aiopslab")
    with pytest.raises(errors.FieldInvalid):
        await create(tenant, PROBLEM, {"problem_id": "p"}, callback=task_pb2.Callback(url=url))


@pytest.mark.seed("S1.3-7", "S1.11", "S1.20", "S1.26-34", "S1.54", "S1.56", "S1.58", "S1.61-62")
async def test_functions_of_the_agent_keep_their_rules(admin: Caller, tenant: Caller) -> None:
    names = await load(admin, "agent-functions")
    assert names == [
        "execute_initial_planning",
        "execute_task_creation",
        "execute_synthesis",
        "worker_initialisation",
        "execute_standard_worker",
        "execute_sql_worker",
    ]
    planner, worker = task_pb2.EntityRef(type="planner", id="p1"), task_pb2.EntityRef(type="worker", id="w1")
    question = {"user_question": "why", "instruction": "say"}
    task = await create(tenant, names[0], question, entity=planner)
    assert len(task.metadata.id) == 32 and task.spec.slot == "planner.p1"
    assert task.spec.execution.function.function == names[0]
    assert (task.spec.retry.max_retries, task.spec.silence_timeout.seconds) == (2, 1800)
    assert task.spec.retention.seconds == 7 * 86400
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await create(tenant, names[0], {"user_question": "why"}, entity=planner)
    assert refused.value.violations[0].field == "task.spec.payload.raw.instruction"
    for name in names[1:]:
        await create(
            tenant, name, entity=planner if name.startswith("execute_t") or "synth" in name else worker
        )
    for entity in (task_pb2.EntityRef(type="router", id="x"), worker):
        with pytest.raises(errors.FieldInvalid):
            await create(tenant, names[0], question, entity=entity)
    with pytest.raises(errors.TaskTypeUnknown):
        await create(tenant, "execute_nothing", question, entity=planner)
    given = await create(tenant, names[0], question, entity=planner, task_id="0" * 32)
    assert given.metadata.id == "0" * 32


@pytest.mark.seed("S2.16-25", "S2.30", "S2.35", "S2.126-129")
async def test_workloads_keep_their_rules(admin: Caller, tenant: Caller) -> None:
    [name] = await load(admin, "niyanta")
    task = await create(tenant, name)
    spec = task.spec
    assert task.metadata.id.startswith("wl_") and len(task.metadata.id) <= 64
    assert (spec.resources.cpu_millis, spec.resources.memory_mb, spec.resources.disk_mb) == (1000, 512, 1024)
    assert (spec.checkpoint_interval.seconds, spec.retry.max_retries) == (300, 3)
    assert (spec.attempt_timeout.seconds, spec.priority) == (3600, 10)
    assert spec.on_runner_lost == task_pb2.RUNNER_LOST_POLICY_REDISTRIBUTE
    for wrong in ({"task_id": "task-1"}, {"priority": 1001}, {"priority": -1}):
        with pytest.raises(errors.FieldInvalid):
            await create(tenant, name, **wrong)
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.CreateTask(task_service_pb2.CreateTaskRequest())
    with pytest.raises(errors.FieldInvalid):
        await create(tenant, "")


@pytest.mark.seed("S1.50", "S1.53")
async def test_a_success_after_a_failure_leaves_no_error(
    admin: Caller, yard: Yard, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await load(admin, "aiopslab")
    runner, _ = await yard.hello("worker-001-kind")
    name = (await create(tenant, PROBLEM, {"problem_id": "p"})).name
    stored = "SELECT phase, error IS NULL, error_code FROM tasks"
    (first,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first), failed(first, permanent=True))
    assert (await tenant.get(name)).status.error.code == "EXIT_NONZERO"
    assert await taskdb.rows(stored) == [(11, False, "EXIT_NONZERO")]
    await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name))
    assert not (await tenant.get(name)).status.HasField("error")
    (second,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(second), succeeded(second))
    done = await tenant.get(name)
    assert done.status.phase == task_pb2.TASK_PHASE_SUCCEEDED and not done.status.HasField("error")
    assert await taskdb.rows(stored) == [(10, True, None)]


@pytest.mark.seed("S0.12-19", "S1.18", "S1.50-51")
async def test_status_has_runner_result_error_and_times(admin: Caller, yard: Yard, tenant: Caller) -> None:
    await load(admin, "aiopslab")
    runner, _ = await yard.hello("worker-001-kind")
    names = [(await create(tenant, PROBLEM, {"problem_id": "p"})).name for _ in range(2)]
    waiting = await tenant.get(names[0])
    assert not waiting.status.runner and waiting.metadata.HasField("create_time")
    first, second = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first), started(second))
    running = await tenant.get(first.lease.task)
    assert running.status.runner == "runners/worker-001-kind" and running.status.HasField("start_time")
    result = task_pb2.TaskResult(output=common_pb2.Payload(raw=b'{"answer": 42}'))
    result.metrics["steps"] = 7
    await yard.report(runner, succeeded(first, result=result), failed(second, permanent=True))
    good, bad = await tenant.get(first.lease.task), await tenant.get(second.lease.task)
    assert good.status.result == result and not good.status.HasField("error")
    assert good.status.HasField("end_time") and bad.status.error.code == "EXIT_NONZERO"
    times = [task.metadata.update_time.ToNanoseconds() for task in (waiting, running, good)]
    assert times == sorted(set(times)) and bad.metadata.update_time.ToNanoseconds() > times[1]
    assert len({task.metadata.resource_version for task in (waiting, running, good)}) == 3


async def test_global_tasks_are_external_and_solti_tasks_are_dropped_while_one_runs(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    global_task, *_ = await load(admin, "global-tasks")
    task = await create(tenant, global_task)
    assert task.status.pending_reason == task_pb2.PENDING_REASON_EXTERNAL
    [solti] = await load(admin, "solti")
    command = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    first = await create(tenant, solti, slot="s", execution=command)
    assert first.metadata.id.startswith("tsk_")
    again = await create(tenant, solti, slot="s", execution=command)
    assert again.name == first.name
