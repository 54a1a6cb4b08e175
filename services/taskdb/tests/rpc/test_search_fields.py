"""Fields that a task type extracts from payloads: filterable, invisible otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.type_calls import COMMAND, PARENT, register, typed
from services.taskdb.tests.yard import Yard
from taskyard import errors
from taskyard.v1 import task_service_pb2


async def found(caller: Caller, condition: str) -> list[str]:
    """The ids of the tasks that match."""
    request = task_service_pb2.ListTasksRequest(parent=PARENT, filter=condition)
    return sorted(task.metadata.id for task in (await caller.tasks.ListTasks(request)).tasks)


async def create(caller: Caller, task_id: str, payload: Any) -> None:
    await caller.tasks.CreateTask(typed("problem", payload, task_id))


@pytest.mark.seed("S0.3", "S0.27", "S0.95")
async def test_tasks_are_found_by_the_fields_that_their_type_declares(tenant: Caller) -> None:
    await register(
        tenant, "problem", execution=COMMAND, search_fields=["problem_id", "agent.name", "n", "ok"]
    )
    await create(tenant, "a", {"problem_id": "k8s-1", "agent": {"name": "x"}, "n": 3, "ok": True})
    await create(tenant, "b", {"problem_id": "k8s-2", "agent": "text", "n": 2.5, "secret": "k8s-1"})
    await create(tenant, "c", {"problem_id": "y" * 257})
    raw = typed("problem", task_id="d")
    raw.task.spec.payload.raw = json.dumps({"problem_id": "k8s-1"}).encode()
    await tenant.tasks.CreateTask(raw)
    assert await found(tenant, 'payload.problem_id = "k8s-1"') == ["a", "d"]
    assert await found(tenant, 'payload.problem_id = "k8s-*"') == ["a", "b", "d"]
    assert await found(tenant, 'payload.agent.name = "x"') == ["a"]
    assert await found(tenant, 'payload.n = "3" AND payload.ok = "true"') == ["a"]
    assert await found(tenant, 'payload.n = "2.5"') == ["b"]
    assert await found(tenant, "payload:problem_id") == ["a", "b", "d"]
    assert await found(tenant, 'payload.secret = "k8s-1"') == []
    with pytest.raises(errors.FilterInvalid, match=r"payload\.n can not be compared by <"):
        await found(tenant, 'payload.n < "4"')


async def test_extracted_values_are_no_labels_and_follow_the_payload(tenant: Caller, yard: Yard) -> None:
    await register(tenant, "problem", execution=COMMAND, search_fields=["problem_id"])
    request = typed("problem", {"problem_id": "one"}, "a")
    request.task.metadata.labels["team"] = "x"
    made = (await tenant.tasks.CreateTask(request)).task
    assert dict(made.metadata.labels) == {"team": "x"}
    made.spec.payload.json["problem_id"] = "two"
    made.metadata.labels["team"] = "y"
    change = task_service_pb2.UpdateTaskRequest(
        task=made, update_mask=FieldMask(paths=["spec.payload", "metadata.labels"])
    )
    assert dict((await tenant.tasks.UpdateTask(change)).task.metadata.labels) == {"team": "y"}
    assert await found(tenant, 'payload.problem_id = "two" AND metadata.labels.team = "y"') == ["a"]
    assert await found(tenant, 'payload.problem_id = "one"') == []
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert dict(assignment.labels) == {"team": "y"}


async def test_a_type_without_search_fields_stores_nothing_more(
    taskdb: RunningTaskDb, tenant: Caller
) -> None:
    await register(tenant, "problem", execution=COMMAND)
    await create(tenant, "a", {"problem_id": "k8s-1"})
    assert await taskdb.rows("SELECT labels FROM tasks") == [(None,)]
    assert await found(tenant, 'payload.problem_id = "k8s-1"') == []


@pytest.mark.seed("S0.91")
@pytest.mark.covers("DeleteTask", "DELETION_PROTECTED")
async def test_protected_tasks_are_neither_deleted_nor_expire(taskdb: RunningTaskDb, tenant: Caller) -> None:
    await register(tenant, "problem", execution=COMMAND, deletion_protection=True)
    made = (await tenant.tasks.CreateTask(typed("problem"))).task
    assert made.spec.HasField("retention") and not made.spec.retention.ToSeconds()
    await taskdb.succeed(made.name)
    assert not (await tenant.get(made.name)).metadata.HasField("expire_time")
    with pytest.raises(errors.DeletionProtected, match="deletion_protection"):
        await tenant.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=made.name))
    assert (await tenant.get(made.name)).metadata.id
    brief = typed("problem")
    brief.task.spec.retention.FromSeconds(60)
    with pytest.raises(errors.FieldInvalid, match="protects its tasks from deletion"):
        await tenant.tasks.CreateTask(brief)


@pytest.mark.seed("S4.6", "S4.8")
async def test_slot_and_timeout_are_demanded_where_the_type_says_so(tenant: Caller) -> None:
    await register(tenant, "lane", execution=COMMAND, slot_required=True, attempt_timeout_required=True)
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.CreateTask(typed("lane"))
    fields = {violation.field for violation in refused.value.violations}
    assert fields == {"task.spec.slot", "task.spec.attempt_timeout"}
    request = typed("lane", slot="s")
    request.task.spec.attempt_timeout.FromSeconds(5)
    assert (await tenant.tasks.CreateTask(request)).task.spec.slot == "s"
