"""TaskTypeService: types are made, changed, listed and deleted, and bad ones refused."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.type_calls import (
    COMMAND,
    PARENT,
    get,
    register,
    seconds,
    typed,
    update,
)
from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_type_pb2, task_type_service_pb2
from taskyard_taskdb.storage.tenant import api_keys

Service = task_type_service_pb2
TaskType = task_type_pb2.TaskType


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
    reader = await taskdb.caller(api_keys.TENANT, "default", read_only=True)
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


@pytest.mark.seed("S2.17-18", "S2.26")
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


async def test_a_validated_type_is_neither_created_nor_changed(tenant: Caller, taskdb: RunningTaskDb) -> None:
    tables = "SELECT (SELECT array_agg(t.*)::text FROM task_types t), (SELECT count(*) FROM changes)"
    wanted = TaskType(name=f"{PARENT}/taskTypes/encode", description="one")
    request = Service.UpdateTaskTypeRequest(task_type=wanted, allow_missing=True, validate_only=True)
    before = await taskdb.rows(tables)
    assert (await tenant.task_types.UpdateTaskType(request)).task_type.description == "one"
    assert await taskdb.rows(tables) == before
    request.task_type.payload_schema = b'{"type": "wrong"}'
    with pytest.raises(errors.FieldInvalid):
        await tenant.task_types.UpdateTaskType(request)
