"""The registry of entities, and types whose tasks must name one that exists."""

from __future__ import annotations

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.type_calls import COMMAND, PARENT, register, typed
from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard.v1 import entity_service_pb2 as pb

PLANNERS = f"{PARENT}/entityTypes/planner"


def planner(entity_id: str) -> task_pb2.EntityRef:
    return task_pb2.EntityRef(type="planner", id=entity_id)


async def add(caller: Caller, *ids: str) -> int:
    request = pb.RegisterEntitiesRequest(parent=PARENT, entities=map(planner, ids))
    return int((await caller.entities.RegisterEntities(request)).created_count)


async def listed(caller: Caller, size: int = 0) -> list[str]:
    names: list[str] = []
    request = pb.ListEntitiesRequest(parent=PLANNERS, page_size=size)
    while True:
        page = await caller.entities.ListEntities(request)
        names += [entity.name.rpartition("/")[2] for entity in page.entities]
        if not page.next_page_token:
            return names
        request.page_token = page.next_page_token


async def test_entities_are_registered_once_listed_and_deleted(tenant: Caller) -> None:
    assert await add(tenant, "b", "a", "c", "a") == 3
    assert await add(tenant, "a", "d") == 1
    assert await listed(tenant) == await listed(tenant, size=1) == ["a", "b", "c", "d"]
    await tenant.entities.DeleteEntity(pb.DeleteEntityRequest(name=f"{PLANNERS}/entities/b"))
    assert await listed(tenant) == ["a", "c", "d"]


@pytest.mark.covers("DeleteEntity", "NOT_FOUND")
async def test_a_missing_entity_is_not_found_unless_that_is_allowed(tenant: Caller) -> None:
    request = pb.DeleteEntityRequest(name=f"{PLANNERS}/entities/b")
    with pytest.raises(errors.NotFound, match="entities/b"):
        await tenant.entities.DeleteEntity(request)
    request.allow_missing = True
    await tenant.entities.DeleteEntity(request)


@pytest.mark.seed("S1.26", "S1.31")
async def test_a_task_must_name_an_entity_that_exists(tenant: Caller) -> None:
    await register(tenant, execution=COMMAND, entity_types=["planner"], entities_must_exist=True)
    await add(tenant, "p1")
    assert (await tenant.tasks.CreateTask(typed(entity=planner("p1")))).task.name
    with pytest.raises(errors.NotFound, match="entityTypes/planner/entities/p2"):
        await tenant.tasks.CreateTask(typed(entity=planner("p2")))
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=PARENT,
        mode=common_pb2.BATCH_MODE_PER_ITEM,
        requests=[typed(entity=planner(name)) for name in ("p1", "p2")],
    )
    made = await tenant.tasks.BatchCreateTasks(batch)
    assert [result.WhichOneof("result") for result in made.results] == ["created", "error"]
    with pytest.raises(errors.FieldInvalid, match="entity"):
        await tenant.tasks.CreateTask(typed(entity=planner("no id\0")))
    await tenant.entities.DeleteEntity(pb.DeleteEntityRequest(name=f"{PLANNERS}/entities/p1"))
    with pytest.raises(errors.NotFound):
        await tenant.tasks.CreateTask(typed(entity=planner("p1")))


async def test_types_that_do_not_demand_it_accept_any_entity(tenant: Caller) -> None:
    await register(tenant, execution=COMMAND, entity_types=["planner"])
    assert (await tenant.tasks.CreateTask(typed(entity=planner("unknown")))).task.name


@pytest.mark.covers("RegisterEntities", "NOT_FOUND")
async def test_entities_of_another_tenant_are_not_found(taskdb: RunningTaskDb, tenant: Caller) -> None:
    await taskdb.add_tenant("other")
    await add(tenant, "p1")
    other = await taskdb.caller(tenant_id="other")
    with pytest.raises(errors.NotFound):
        await listed(other)
    with pytest.raises(errors.NotFound):
        await add(other, "p2")
    with pytest.raises(errors.NotFound):
        await other.entities.DeleteEntity(pb.DeleteEntityRequest(name=f"{PLANNERS}/entities/p1"))


@pytest.mark.covers("RegisterEntities", "FIELD_INVALID")
@pytest.mark.covers("ListEntities", "PAGE_TOKEN_INVALID")
async def test_malformed_requests_are_refused(tenant: Caller) -> None:
    with pytest.raises(errors.FieldInvalid):
        await add(tenant, *map(str, range(1001)))
    with pytest.raises(errors.FieldInvalid):
        await add(tenant, "no id")
    with pytest.raises(errors.PageTokenInvalid):
        await tenant.entities.ListEntities(pb.ListEntitiesRequest(parent=PLANNERS, page_token="x"))
