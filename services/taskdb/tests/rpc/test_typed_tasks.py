"""The rules of registered types for their tasks."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, new_task, run_taskdb
from services.taskdb.tests.rpc.type_calls import (
    COMMAND,
    PARENT,
    get,
    register,
    seconds,
    typed,
    update,
)
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard.v1 import task_type_service_pb2 as Service
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.tenant.tenants import TTL


async def test_every_default_of_a_type_fills_what_a_task_leaves_open(tenant: Caller) -> None:
    defaults: dict[str, Any] = {
        "execution": COMMAND,
        "resources": common_pb2.Resources(cpu_millis=1000, memory_mb=512, disk_mb=1024),
        "retry": common_pb2.RetryPolicy(max_retries=5, backoff=common_pb2.BackoffPolicy(initial=seconds(2))),
        "attempt_timeout": seconds(3600),
        "checkpoint_interval": seconds(300),
        "priority": 7,
        "admission": task_pb2.ADMISSION_POLICY_REPLACE,
        "placement": task_pb2.Placement(required=task_pb2.RunnerConstraint(runner_ids=["r1"])),
        "retention": seconds(604800),
        "max_steps": 30,
        "total_timeout": seconds(7200),
        "queue_timeout": seconds(600),
        "silence_timeout": seconds(60),
        "stop_grace_period": seconds(5),
        "overlap": task_pb2.OVERLAP_POLICY_FORBID,
        "orphan_timeout": seconds(10),
        "on_runner_lost": task_pb2.RUNNER_LOST_POLICY_FAIL,
    }
    made = await register(
        tenant,
        description="plans",
        env=[common_pb2.EnvVar(name="A", value="type")],
        config=common_pb2.Payload(raw=b'{"a": 1}'),
        **defaults,
    )
    assert made.name == f"{PARENT}/taskTypes/plan" and (made.revision, made.resource_version) == (1, 1)
    assert made == await get(tenant, made.name)
    request = typed(env=[common_pb2.EnvVar(name="A", value="task")])
    task = (await tenant.tasks.CreateTask(request)).task
    assert task.status.task_type_name == made.name
    for name in set(defaults) - {"retry"}:
        assert getattr(task.spec, name) == defaults[name], name
    assert (task.spec.retry.max_retries, task.spec.retry.backoff.initial.seconds) == (5, 2)
    assert task.spec.retry.backoff.max.seconds == 300
    assert [variable.value for variable in task.spec.env] == ["type", "task"]
    own = (
        await tenant.tasks.CreateTask(
            typed(priority=9, attempt_timeout=seconds(1), retry=common_pb2.RetryPolicy(max_retries=0))
        )
    ).task
    assert (own.spec.priority, own.spec.attempt_timeout.seconds, own.spec.retry.max_retries) == (9, 1, 0)
    assert own == await tenant.get(own.name)


@pytest.mark.covers("CreateTask", "FIELD_INVALID")
async def test_bounds_patterns_and_entity_types_are_kept(tenant: Caller) -> None:
    await register(
        tenant,
        execution=COMMAND,
        attempt_timeout=seconds(1800),
        min_attempt_timeout=seconds(60),
        max_attempt_timeout=seconds(10800),
        min_priority=0,
        max_priority=20,
        max_steps=30,
        max_max_steps=500,
        task_id_pattern="^wl_[0-9a-z]+$",
        task_id_prefix="wl_",
        entity_types=["planner", "worker"],
    )
    entity = task_pb2.EntityRef(type="planner", id="p1")
    for field, spec in (
        ("task.spec.attempt_timeout", {"attempt_timeout": seconds(59)}),
        ("task.spec.attempt_timeout", {"attempt_timeout": seconds(10801)}),
        ("task.spec.priority", {"priority": 21}),
        ("task.spec.max_steps", {"max_steps": 501}),
        ("task.spec.max_steps", {"max_steps": 0}),
        ("task.spec.entity.type", {"entity": task_pb2.EntityRef(type="router", id="x")}),
    ):
        with pytest.raises(errors.FieldInvalid) as refused:
            await tenant.tasks.CreateTask(typed(**({"entity": entity} | spec)))
        assert refused.value.violations[0].field == field, refused.value
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.CreateTask(typed())
    assert refused.value.violations[0].field == "task.spec.entity"
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.CreateTask(typed(task_id="task-1", entity=entity))
    assert refused.value.violations[0].field == "task_id"
    made = (await tenant.tasks.CreateTask(typed(entity=entity))).task
    assert made.metadata.id.startswith("wl_") and len(made.metadata.id) <= 64
    given = (await tenant.tasks.CreateTask(typed(task_id="wl_1", entity=entity))).task
    assert given.metadata.id == "wl_1"
    change = task_service_pb2.UpdateTaskRequest(update_mask=FieldMask(paths=["spec.priority"]))
    change.task.name = given.name
    change.task.spec.priority = 30
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.UpdateTask(change)


async def bounded(caller: Caller, **bounds: Any) -> task_pb2.TaskSpec:
    """The spec of a task that leaves everything open to a type that has nothing but bounds."""
    await register(caller, **bounds)
    found: task_pb2.TaskSpec = (await caller.tasks.CreateTask(new_task(task_type="plan"))).task.spec
    return found


@pytest.mark.parametrize(
    ("bounds", "priority"),
    [
        ({"max_priority": 5}, 5),
        ({"min_priority": 20}, 20),
        ({"min_priority": 20, "max_priority": 30}, 20),
        ({"min_priority": 2, "max_priority": 3}, 3),
        ({"min_priority": 2, "max_priority": 30}, 10),
    ],
)
async def test_unset_priority_is_the_nearest_to_the_default_within_the_bounds(
    tenant: Caller, bounds: dict[str, int], priority: int
) -> None:
    assert (await bounded(tenant, **bounds)).priority == priority


async def test_unset_limits_are_the_largest_that_the_type_allows(tenant: Caller) -> None:
    spec = await bounded(tenant, max_attempt_timeout=seconds(60), max_max_steps=7)
    assert (spec.attempt_timeout.seconds, spec.max_steps) == (60, 7)
    made = (await tenant.tasks.CreateTask(new_task(task_type="plan", max_steps=3))).task
    assert (made.spec.attempt_timeout.seconds, made.spec.max_steps) == (60, 3)
    # A cleared field gets its default again.
    change = task_service_pb2.UpdateTaskRequest(update_mask=FieldMask(paths=["spec.max_steps"]))
    change.task.name = made.name
    assert (await tenant.tasks.UpdateTask(change)).task.spec.max_steps == 7


@pytest.mark.seed("S1.3")
async def test_ids_are_made_in_the_form_that_the_pattern_asks_for(tenant: Caller) -> None:
    await register(tenant, "hex", execution=COMMAND, task_id_pattern="^[0-9a-f]{32}$")
    await register(tenant, "own", execution=COMMAND, task_id_pattern="^job-[0-9]+$")
    assert len((await tenant.tasks.CreateTask(typed("hex"))).task.metadata.id) == 32
    with pytest.raises(errors.FieldInvalid, match="must be given"):
        await tenant.tasks.CreateTask(typed("own"))
    assert (await tenant.tasks.CreateTask(typed("own", task_id="job-7"))).task.metadata.id == "job-7"


@pytest.mark.covers("CreateTask", "TASK_TYPE_UNKNOWN")
async def test_types_are_found_in_the_tenant_then_in_system_else_they_are_mere_words(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await register(admin, parent="tenants/system", execution=COMMAND, priority=3)
    shared = (await tenant.tasks.CreateTask(typed())).task
    assert (shared.spec.priority, shared.status.task_type_name) == (3, "tenants/system/taskTypes/plan")
    await register(tenant, execution=COMMAND, priority=4)
    own = (await tenant.tasks.CreateTask(typed())).task
    assert (own.spec.priority, own.status.task_type_name) == (4, f"{PARENT}/taskTypes/plan")
    with pytest.raises(errors.TaskTypeUnknown):
        await tenant.tasks.CreateTask(typed("nowhere"))
    word = (await tenant.tasks.CreateTask(new_task(task_type="nowhere"))).task
    assert word.spec.task_type == "nowhere" and not word.status.task_type_name


async def test_a_type_decides_whether_tasks_bring_their_own_execution(tenant: Caller) -> None:
    await register(tenant, "fixed", execution=COMMAND)
    await register(tenant, "open", execution=COMMAND, allow_execution_override=True)
    await register(tenant, "bare")
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.CreateTask(new_task(task_type="fixed"))
    assert refused.value.violations[0].field == "task.spec.execution"
    other = task_pb2.Execution(command=task_pb2.CommandExecution(program="false"))
    for name in ("open", "bare"):
        task = (await tenant.tasks.CreateTask(new_task(task_type=name, execution=other))).task
        assert task.spec.execution == other
    with pytest.raises(errors.TaskTypeUnknown):
        await tenant.tasks.CreateTask(typed("bare"))


@pytest.mark.covers("CreateTask", "TASK_TYPE_DISABLED")
@pytest.mark.covers("BatchCreateTasks", "TASK_TYPE_DISABLED")
@pytest.mark.covers("RetryTask", "TASK_TYPE_DISABLED")
@pytest.mark.covers("BatchRetryTasks", "TASK_TYPE_DISABLED")
async def test_a_disabled_type_takes_no_new_tasks_and_existing_ones_go_on(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    made = await register(tenant, execution=COMMAND)
    old = (await tenant.tasks.CreateTask(typed())).task
    ended = (await tenant.tasks.CreateTask(typed())).task
    await taskdb.fail(ended.name)
    await update(tenant, made.name, "disabled", disabled=True)
    with pytest.raises(errors.TaskTypeDisabled):
        await tenant.tasks.CreateTask(typed())
    with pytest.raises(errors.TaskTypeDisabled):
        await tenant.tasks.BatchCreateTasks(
            task_service_pb2.BatchCreateTasksRequest(parent=PARENT, requests=[typed()])
        )
    with pytest.raises(errors.TaskTypeDisabled):
        await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=ended.name))
    batch = await tenant.tasks.BatchRetryTasks(
        task_service_pb2.BatchRetryTasksRequest(parent=PARENT, names=[ended.name])
    )
    assert isinstance(from_status(batch.results[0].status), errors.TaskTypeDisabled)
    await taskdb.succeed(old.name)
    await update(tenant, made.name, "disabled")
    await tenant.tasks.CreateTask(typed())


async def test_a_run_gets_the_configuration_of_the_revision_it_names(tenant: Caller, yard: Yard) -> None:
    made = await register(tenant, execution=COMMAND, config=common_pb2.Payload(raw=b'{"n":1}'))
    runner, _ = await yard.hello()
    await tenant.tasks.CreateTask(typed())
    await tenant.tasks.CreateTask(typed())
    first = (await yard.claim(runner, 1)).assignments[0]
    document = json_format.ParseDict({"n": 2}, Struct())
    changed = await update(tenant, made.name, "config", config=common_pb2.Payload(json=document))
    assert (changed.revision, changed.resource_version) == (2, 2)
    second = (await yard.claim(runner, 1)).assignments[0]
    assert json.loads(first.config.raw) == {"n": 1} and json.loads(second.config.raw) == {"n": 2}
    for assignment, revision in ((first, 1), (second, 2)):
        await yard.report(runner, started(assignment), succeeded(assignment))
        runs = await tenant.tasks.ListTaskRuns(
            task_service_pb2.ListTaskRunsRequest(parent=assignment.lease.task)
        )
        assert runs.runs[0].task_type_revision == revision


async def remake(caller: Caller, number: int) -> None:
    """A type in place of the one that had its name, as a revision of the same number."""
    name = f"{PARENT}/taskTypes/plan"
    with contextlib.suppress(errors.NotFound):
        await caller.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=name))
    made = await register(
        caller,
        execution=COMMAND,
        priority=number,
        config=common_pb2.Payload(raw=b"%d" % number),
        payload_schema={"properties": {"n": {"const": number}}},
        result_schema=json.dumps({"required": [f"k{number}"]}).encode(),
    )
    assert made.revision == 1


async def run_one(yard: Yard, runner: Runner, number: int) -> tuple[int, str, int]:
    """Priority, configuration and phase of a task that does as the type of this number asks."""
    task = (await yard.tenant.tasks.CreateTask(typed(payload={"n": number}))).task
    (assignment,) = (await yard.claim(runner)).assignments
    output = common_pb2.Payload(raw=json.dumps({f"k{number}": 1}).encode())
    result = task_pb2.TaskResult(output=output)
    await yard.report(runner, started(assignment), succeeded(assignment, result=result))
    ended = await yard.task(task.name)
    return task.spec.priority, assignment.config.raw.decode(), ended.status.phase


async def test_a_type_that_was_made_again_is_not_taken_for_the_one_before(tenant: Caller, yard: Yard) -> None:
    runner, _ = await yard.hello()
    for number in (1, 2):
        await remake(tenant, number)
        expected = (number, str(number), task_pb2.TASK_PHASE_SUCCEEDED)
        assert await run_one(yard, runner, number) == expected


async def test_another_replica_takes_the_type_that_was_made_again_within_its_bound(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    async for replica in run_taskdb(taskdb.url, housekeeping=False):
        there = await make_yard(replica, await replica.caller(api_keys.SCHEDULER), await replica.caller())
        runner, _ = await there.hello()
        await remake(tenant, 1)
        assert await run_one(there, runner, 1) == (1, "1", task_pb2.TASK_PHASE_SUCCEEDED)
        await remake(tenant, 2)
        began, ran = time.monotonic(), None
        while ran != (2, "2", task_pb2.TASK_PHASE_SUCCEEDED):
            assert time.monotonic() < began + 10 * TTL.total_seconds(), ran
            with contextlib.suppress(errors.PayloadSchemaViolation):
                ran = await run_one(there, runner, 2)


async def test_cached_type_expires(tenant: Caller, taskdb: RunningTaskDb) -> None:
    """As in a replica that receives no notifications."""
    types = TypeCache(taskdb.pool, timedelta(0))
    revision = ("default", "plan", 1)
    seen = []
    for number in (1, 2):
        await remake(tenant, number)
        rules = await types.find("default", "plan")
        assert rules is not None and rules.definition.priority == number
        assert await types.find("default", "plan") is rules, "what was compiled is used again"
        config = (await types.configs([revision]))[revision]
        assert config is not None and config.raw == b"%d" % number
        seen += [rules.identity, (await types.result_schemas([revision]))[revision]]
    assert len(set(seen)) == 4


async def test_a_paused_type_is_accepted_and_not_claimed(tenant: Caller, yard: Yard) -> None:
    made = await register(tenant, execution=COMMAND)
    await update(tenant, made.name, "queue_paused", queue_paused=True)
    await tenant.tasks.CreateTask(typed())
    [other] = await yard.create()
    runner, _ = await yard.hello()
    taken = (await yard.claim(runner)).assignments
    assert [assignment.lease.task for assignment in taken] == [other]
    await update(tenant, made.name, "queue_paused")
    assert len((await yard.claim(runner)).assignments) == 1


@pytest.mark.seed("S0.44")
async def test_the_pattern_of_runner_ids_is_part_of_the_placement(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await register(tenant, execution=COMMAND, runner_id_pattern=r"^worker-\d{3}-kind$")
    await tenant.tasks.CreateTask(typed())
    [(definition,)] = await taskdb.rows("SELECT definition FROM placement_classes")
    assert rb"^worker-\d{3}-kind$" in bytes(definition)


async def test_a_change_of_a_type_does_not_get_into_tasks_that_change_something_else(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    made = await register(tenant, execution=COMMAND)
    task = (await tenant.tasks.CreateTask(typed())).task
    await taskdb.start(task.name)
    await update(tenant, made.name, "max_attempt_timeout", max_attempt_timeout=seconds(60))
    change = task_service_pb2.UpdateTaskRequest(update_mask=FieldMask(paths=["metadata.labels"]))
    change.task.name = task.name
    change.task.metadata.labels["a"] = "b"
    changed = (await tenant.tasks.UpdateTask(change)).task
    assert changed.metadata.labels == {"a": "b"} and not changed.spec.HasField("attempt_timeout")
