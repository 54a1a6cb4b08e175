"""TaskTypeService, and what registered types do to the tasks that take them."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2, task_type_pb2, task_type_service_pb2
from taskyard_taskdb.rpc import payload_schema
from taskyard_taskdb.storage import keys

Service = task_type_service_pb2
TaskType = task_type_pb2.TaskType
PARENT = "tenants/default"
COMMAND = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))

QUESTION = {
    "type": "object",
    "required": ["user_question", "instruction"],
    "properties": {"user_question": {"type": "string", "pattern": "^(a+)+$"}},
}


async def register(
    caller: Caller, type_id: str = "plan", parent: str = PARENT, request_id: str = "", **fields: Any
) -> TaskType:
    """A new type."""
    if isinstance(fields.get("payload_schema"), dict):
        fields["payload_schema"] = json.dumps(fields["payload_schema"]).encode()
    request = Service.CreateTaskTypeRequest(
        parent=parent, task_type_id=type_id, task_type=TaskType(**fields), request_id=request_id
    )
    made: TaskType = (await caller.task_types.CreateTaskType(request)).task_type
    return made


async def update(
    caller: Caller, name: str, *paths: str, allow_missing: bool = False, **fields: Any
) -> TaskType:
    """The type after a change of these paths."""
    request = Service.UpdateTaskTypeRequest(
        task_type=TaskType(name=name, **fields),
        update_mask=FieldMask(paths=paths),
        allow_missing=allow_missing,
    )
    changed: TaskType = (await caller.task_types.UpdateTaskType(request)).task_type
    return changed


async def get(caller: Caller, name: str) -> TaskType:
    found: TaskType = (await caller.task_types.GetTaskType(Service.GetTaskTypeRequest(name=name))).task_type
    return found


def typed(task_type: str = "plan", payload: Any = None, task_id: str = "", **spec: Any) -> Any:
    """A request for a task that leaves everything to its type."""
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task_id=task_id)
    request.task.spec.MergeFrom(task_pb2.TaskSpec(task_type=task_type, **spec))
    if payload is not None:
        request.task.spec.payload.json.CopyFrom(json_format.ParseDict(payload, Struct()))
    return request


def seconds(count: int) -> Duration:
    return Duration(seconds=count)


@pytest.mark.seed("S2.16-25", "S0.7-8", "S0.11")
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


@pytest.mark.covers("CreateTaskType", "ALREADY_EXISTS")
@pytest.mark.covers("CreateTaskType", "NOT_FOUND")
@pytest.mark.seed("S2.26")
async def test_an_id_is_taken_once_per_tenant_and_a_repeat_finds_its_type(
    admin: Caller, tenant: Caller
) -> None:
    made = await register(tenant, request_id="r1")
    assert await register(tenant, request_id="r1") == made
    with pytest.raises(errors.AlreadyExists):
        await register(tenant)
    with pytest.raises(errors.AlreadyExists):
        await register(tenant, request_id="r1", description="another")
    assert (await register(admin, parent="tenants/system")).revision == 1
    with pytest.raises(errors.NotFound):
        await register(admin, parent="tenants/nobody")


@pytest.mark.covers("CreateTaskType", "FIELD_INVALID")
@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("task_type.payload_schema", {"payload_schema": b"{"}),
        ("task_type.payload_schema", {"payload_schema": b"3"}),
        ("task_type.payload_schema", {"payload_schema": b'{"type": "wrong"}'}),
        ("task_type.payload_schema", {"payload_schema": b'{"pattern": "("}'}),
        ("task_type.payload_schema", {"payload_schema": b'{"pattern": "(?=a)b"}'}),
        ("task_type.payload_schema", {"payload_schema": b'{"pattern": "(a{1000}){1000}"}'}),
        ("task_type.payload_schema", {"payload_schema": b'{"$ref": "http://127.0.0.1/x"}'}),
        ("task_type.result_schema", {"result_schema": b'{"minimum": "a"}'}),
        ("task_type.task_id_pattern", {"task_id_pattern": "("}),
        ("task_type.task_id_pattern", {"task_id_pattern": "(?=a)"}),
        ("task_type.runner_id_pattern", {"runner_id_pattern": "((a{100}){100}){100}"}),
        (
            "task_type.min_attempt_timeout",
            {"min_attempt_timeout": seconds(9), "max_attempt_timeout": seconds(8)},
        ),
        ("task_type.attempt_timeout", {"attempt_timeout": seconds(9), "max_attempt_timeout": seconds(8)}),
        ("task_type.attempt_timeout", {"attempt_timeout": seconds(1), "min_attempt_timeout": seconds(8)}),
        ("task_type.min_priority", {"min_priority": 9, "max_priority": 8}),
        ("task_type.priority", {"priority": 9, "max_priority": 8}),
        ("task_type.max_steps", {"max_steps": 9, "max_max_steps": 8}),
        ("task_type.priority", {"priority": 1001}),
        ("task_type.max_steps", {"max_steps": 1001}),
        ("task_type.description", {"description": "a\0b"}),
        ("task_type.config.raw", {"config": common_pb2.Payload(raw=b"{")}),
        ("task_type.callback", {"callback": task_pb2.Callback(url="http://127.0.0.1/x")}),
    ],
)
async def test_types_that_contradict_themselves_are_refused_with_the_field(
    tenant: Caller, field: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        await register(tenant, **fields)
    assert refused.value.violations[0].field.startswith(field), refused.value
    assert (
        await tenant.task_types.ListTaskTypes(Service.ListTaskTypesRequest(parent=PARENT))
    ).task_types == []


def test_schemas_whose_references_multiply_are_refused_at_once() -> None:
    defs = {
        f"x{n}": {"allOf": [{"$ref": f"#/$defs/x{n + 1}"}, {"$ref": f"#/$defs/x{n + 1}"}]} for n in range(30)
    }
    schema = {"$ref": "#/$defs/x0", "$defs": {**defs, "x30": {"type": "object"}}}
    with pytest.raises(errors.FieldInvalid, match="expand"):
        payload_schema.compile_schema(json.dumps(schema).encode(), "f")
    with pytest.raises(errors.FieldInvalid, match="deeper"):
        payload_schema.compile_schema(b'{"items":' * 200 + b"{}" + b"}" * 200, "f")
    tree = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}
    found = payload_schema.compile_schema(json.dumps(tree).encode(), "f")
    assert found.findings([["a"], ["b", []]], "f") == () and found.findings([[1]], "f")


@pytest.mark.seed("S1.32-34", "S0.75")
@pytest.mark.covers("CreateTask", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("BatchCreateTasks", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("UpdateTask", "PAYLOAD_SCHEMA_VIOLATION")
async def test_payloads_are_checked_against_the_schema(tenant: Caller) -> None:
    await register(tenant, execution=COMMAND, payload_schema=QUESTION)
    good = {"user_question": "aaa", "instruction": "x"}
    task = (await tenant.tasks.CreateTask(typed(payload=good))).task
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await tenant.tasks.CreateTask(typed(payload={"user_question": "a" * 5000 + "b"}))
    assert {v.field for v in refused.value.violations} == {
        "task.spec.payload.json.user_question",
        "task.spec.payload.json.instruction",
    }
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.CreateTask(typed())
    raw = typed()
    raw.task.spec.payload.raw = b'{"user_question": 1, "instruction": 2}'
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await tenant.tasks.CreateTask(raw)
    assert refused.value.violations[0].field == "task.spec.payload.raw.user_question"
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=PARENT,
        requests=[typed(payload=good), typed(payload={})],
        mode=common_pb2.BATCH_MODE_PER_ITEM,
    )
    response = await tenant.tasks.BatchCreateTasks(batch)
    error = from_status(response.results[1].error)
    assert isinstance(error, errors.PayloadSchemaViolation) and response.failed_count == 1
    assert error.violations[0].field.startswith("requests[1].task.spec.payload.json")
    change = task_service_pb2.UpdateTaskRequest(update_mask=FieldMask(paths=["spec.payload"]))
    change.task.name = task.name
    change.task.spec.payload.raw = b"{}"
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.UpdateTask(change)


@pytest.mark.covers("ValidatePayload", "NOT_FOUND")
async def test_a_payload_is_validated_without_a_task(tenant: Caller) -> None:
    made = await register(tenant, payload_schema=QUESTION)

    async def validate(raw: bytes, name: str = made.name) -> Any:
        return await tenant.task_types.ValidatePayload(
            Service.ValidatePayloadRequest(name=name, payload=common_pb2.Payload(raw=raw))
        )

    assert (await validate(b'{"user_question": "a", "instruction": ""}')).valid
    answer = await validate(b'{"user_question": "a"}')
    assert not answer.valid and answer.violations[0].field == "payload.raw.instruction"
    with pytest.raises(errors.FieldInvalid):
        await validate(b"{")
    with pytest.raises(errors.NotFound):
        await validate(b"{}", f"{PARENT}/taskTypes/none")


@pytest.mark.seed("S0.25", "S0.76-78", "S2.126", "S2.129", "S1.4", "S1.20", "S1.31", "S1.62")
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


@pytest.mark.seed("S1.3")
async def test_ids_are_made_in_the_form_that_the_pattern_asks_for(tenant: Caller) -> None:
    await register(tenant, "hex", execution=COMMAND, task_id_pattern="^[0-9a-f]{32}$")
    await register(tenant, "own", execution=COMMAND, task_id_pattern="^job-[0-9]+$")
    assert len((await tenant.tasks.CreateTask(typed("hex"))).task.metadata.id) == 32
    with pytest.raises(errors.FieldInvalid, match="must be given"):
        await tenant.tasks.CreateTask(typed("own"))
    assert (await tenant.tasks.CreateTask(typed("own", task_id="job-7"))).task.metadata.id == "job-7"


@pytest.mark.seed("S1.6", "S1.27", "S1.30", "S2.128")
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
    first = (await yard.pop(runner, 1)).assignments[0]
    document = json_format.ParseDict({"n": 2}, Struct())
    changed = await update(tenant, made.name, "config", config=common_pb2.Payload(json=document))
    assert (changed.revision, changed.resource_version) == (2, 2)
    second = (await yard.pop(runner, 1)).assignments[0]
    assert json.loads(first.config.raw) == {"n": 1} and json.loads(second.config.raw) == {"n": 2}
    for assignment, revision in ((first, 1), (second, 2)):
        await yard.report(runner, started(assignment), succeeded(assignment))
        runs = await tenant.tasks.ListTaskRuns(
            task_service_pb2.ListTaskRunsRequest(parent=assignment.lease.task)
        )
        assert runs.runs[0].task_type_revision == revision


async def test_a_paused_type_is_accepted_and_not_claimed(tenant: Caller, yard: Yard) -> None:
    made = await register(tenant, execution=COMMAND)
    await update(tenant, made.name, "queue_paused", queue_paused=True)
    await tenant.tasks.CreateTask(typed())
    [other] = await yard.create()
    runner, _ = await yard.hello()
    taken = (await yard.pop(runner)).assignments
    assert [assignment.lease.task for assignment in taken] == [other]
    await update(tenant, made.name, "queue_paused")
    assert len((await yard.pop(runner)).assignments) == 1


@pytest.mark.seed("S0.44", "S0.80")
async def test_the_pattern_of_runner_ids_is_part_of_the_placement(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await register(tenant, execution=COMMAND, runner_id_pattern=r"^worker-\d{3}-kind$")
    await tenant.tasks.CreateTask(typed())
    [(definition,)] = await taskdb.rows("SELECT definition FROM placement_classes")
    assert rb"^worker-\d{3}-kind$" in bytes(definition)


@pytest.mark.covers("UpdateTaskType", "NOT_FOUND")
@pytest.mark.covers("UpdateTaskType", "FIELD_INVALID")
@pytest.mark.covers("UpdateTaskType", "FIELD_IMMUTABLE")
@pytest.mark.covers("UpdateTaskType", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("DeleteTaskType", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("DeleteTaskType", "NOT_FOUND")
@pytest.mark.covers("GetTaskType", "NOT_FOUND")
async def test_changes_are_guarded_and_a_registry_may_declare_its_types(tenant: Caller) -> None:
    name = f"{PARENT}/taskTypes/plan"
    for call in (
        get(tenant, name),
        update(tenant, name, "priority", priority=1),
        tenant.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=name)),
    ):
        with pytest.raises(errors.NotFound):
            await call
    made = await update(tenant, name, priority=1, allow_missing=True, execution=COMMAND)
    again = await update(tenant, name, priority=1, allow_missing=True, execution=COMMAND)
    assert again == made and made.revision == 1, "what changes nothing is no revision"
    changed = await update(tenant, name, "priority", priority=2, resource_version=1)
    assert (changed.revision, changed.priority, changed.execution) == (2, 2, COMMAND)
    with pytest.raises(errors.ResourceVersionMismatch):
        await update(tenant, name, "priority", priority=3, resource_version=1)
    with pytest.raises(errors.FieldImmutable):
        await update(tenant, name, "revision")
    with pytest.raises(errors.FieldInvalid):
        await update(tenant, name, "colour")
    with pytest.raises(errors.FieldInvalid):
        await update(tenant, name, "max_priority", max_priority=1)
    with pytest.raises(errors.ResourceVersionMismatch):
        await tenant.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=name, resource_version=1))


@pytest.mark.seed("S2.32")
@pytest.mark.covers("DeleteTaskType", "NOT_EMPTY")
async def test_a_type_in_use_is_not_deleted(admin: Caller, tenant: Caller, taskdb: RunningTaskDb) -> None:
    mine = await register(tenant, execution=COMMAND)
    shared = await register(admin, "shared", "tenants/system", execution=COMMAND)
    tasks = [(await tenant.tasks.CreateTask(typed(name))).task for name in ("plan", "shared")]
    for caller, made in ((tenant, mine), (admin, shared)):
        with pytest.raises(errors.NotEmpty):
            await caller.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=made.name))
    for task in tasks:
        await taskdb.succeed(task.name)
    for caller, made in ((tenant, mine), (admin, shared)):
        await caller.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=made.name))
    assert (await tenant.get(tasks[0].name)).status.task_type_name == mine.name
    assert await taskdb.rows("SELECT * FROM task_type_revisions") == []


@pytest.mark.covers("ListTaskTypes", "FILTER_INVALID")
@pytest.mark.covers("ListTaskTypes", "PAGE_TOKEN_INVALID")
async def test_lists_are_by_id_filtered_and_without_schemas(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await taskdb.add_tenant("other")
    await register(admin, "zeta", "tenants/other")
    for number in range(4):
        await register(tenant, f"t{number}", payload_schema={}, disabled=number == 2)

    async def ids(caller: Caller, parent: str, **fields: Any) -> list[str]:
        found: list[str] = []
        while True:
            page = await caller.task_types.ListTaskTypes(
                Service.ListTaskTypesRequest(parent=parent, **fields)
            )
            found += [made.name.rpartition("/")[2] for made in page.task_types]
            assert not any(made.payload_schema for made in page.task_types)
            fields["page_token"] = page.next_page_token
            if not page.next_page_token:
                return found

    assert await ids(tenant, PARENT, page_size=3) == ["t0", "t1", "t2", "t3"]
    assert await ids(tenant, "tenants/-") == ["t0", "t1", "t2", "t3"]
    assert await ids(admin, "tenants/-", page_size=2) == ["t0", "t1", "t2", "t3", "zeta"]
    assert await ids(tenant, PARENT, filter='disabled = true OR id = "t0"') == ["t0", "t2"]
    with pytest.raises(errors.NotFound):
        await ids(tenant, "tenants/other")
    with pytest.raises(errors.FilterInvalid):
        await ids(tenant, PARENT, filter="colour = red")
    with pytest.raises(errors.PageTokenInvalid):
        await ids(tenant, PARENT, page_token="x")


async def test_foreign_types_do_not_exist_and_shared_ones_are_the_administrators(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    shared = await register(admin, parent="tenants/system")
    for call in (
        get(tenant, shared.name),
        update(tenant, shared.name, "priority", priority=1),
        register(tenant, "mine", "tenants/system"),
        tenant.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=shared.name)),
    ):
        with pytest.raises(errors.NotFound):
            await call
    reader = await taskdb.caller(keys.TENANT, "default", read_only=True)
    with pytest.raises(errors.PermissionDenied):
        await register(reader)


async def test_changes_of_types_are_in_the_audit(tenant: Caller, taskdb: RunningTaskDb) -> None:
    made = await register(tenant)
    await update(tenant, made.name, "priority", priority=1)
    await tenant.task_types.DeleteTaskType(Service.DeleteTaskTypeRequest(name=made.name))
    rows = await taskdb.rows(
        "SELECT event, version, tenant_id, resource_id, actor_id <> '' FROM changes "
        "WHERE resource_kind = 4 ORDER BY id"
    )
    assert rows == [(70 + n, n + 1, "default", "plan", True) for n in range(3)]


@pytest.mark.seed("S2.17-18", "S2.20", "S2.22-24", "S2.26")
@pytest.mark.parametrize(
    "values",
    [
        "('nobody', 't', '')",
        "('default', NULL, '')",
        "('default', '', '')",
        "('default', '" + "x" * 129 + "', '')",
        "('default', 't', NULL)",
        "('default', 'taken', '')",
    ],
)
async def test_database_refuses_types_that_break_the_rules(database_url: str, values: str) -> None:
    with psycopg.connect(database_url) as connection:
        insert = "INSERT INTO task_types (tenant_id, task_type, definition) VALUES "
        connection.execute(insert + "('default', 'taken', '')")
        with pytest.raises(psycopg.IntegrityError):
            connection.execute(insert + values)


@pytest.mark.seed("S2.22-24")
@pytest.mark.parametrize(
    "change",
    ["max_retries = -1", "attempt_timeout = '0'", "checkpoint_interval = '-1 s'", "retention = '-1 s'"],
)
async def test_database_refuses_numbers_out_of_range(database_url: str, change: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO task_types (tenant_id, task_type, definition) VALUES ('default', 't', '')"
        )
        with pytest.raises(psycopg.IntegrityError):
            connection.execute(f"UPDATE task_types SET {change}")


@pytest.mark.seed("S2.2", "S2.17")
async def test_types_end_with_their_tenant(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO tenants (tenant_id, display_name, tier) VALUES ('a', 'A', 1)")
        connection.execute("INSERT INTO task_types (tenant_id, task_type, definition) VALUES ('a', 't', '')")
        connection.execute("DELETE FROM tenants WHERE tenant_id = 'a'")
        assert connection.execute("SELECT count(*) FROM task_types").fetchone() == (0,)
