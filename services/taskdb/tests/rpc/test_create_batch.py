"""BatchCreateTasks: all or none, or each on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]
BatchRequest = task_service_pb2.BatchCreateTasksRequest

ATOMIC = common_pb2.BATCH_MODE_ATOMIC
PER_ITEM = common_pb2.BATCH_MODE_PER_ITEM


def batch(*items: task_service_pb2.CreateTaskRequest, **fields: Any) -> BatchRequest:
    """A batch of these items."""
    return BatchRequest(parent="tenants/default", requests=items, **fields)


async def ids(taskdb: Any) -> set[str]:
    """The tasks that exist."""
    return {row[0] for row in await taskdb.rows("SELECT task_id FROM tasks")}


@pytest.mark.seed("S1.60")
async def test_results_are_in_the_order_of_the_requests(tenant: Any, make_task: MakeTask) -> None:
    response = await tenant.tasks.BatchCreateTasks(batch(*(make_task(task_id=f"t{n}") for n in range(20))))
    assert [result.created.task.metadata.id for result in response.results] == [f"t{n}" for n in range(20)]
    assert response.failed_count == 0
    assert not response.results[0].created.task.HasField("spec")


async def test_per_item_fails_only_what_is_wrong(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await tenant.create(task_id="taken", request_id="used")
    request = batch(
        make_task(task_id="a"),
        make_task(task_id="taken"),
        make_task(task_id="bad", priority=2000),
        make_task(task_id="other", request_id="used"),
        make_task("tenants/acme", task_id="foreign"),
        make_task(task_id="z"),
        make_task(task_id="z"),
        mode=PER_ITEM,
    )
    response = await tenant.tasks.BatchCreateTasks(request)
    found = [
        "" if result.HasField("created") else from_status(result.error).reason for result in response.results
    ]
    assert found == [
        "",
        "ALREADY_EXISTS",
        "FIELD_INVALID",
        "REQUEST_ID_REUSED",
        "FIELD_INVALID",
        "",
        "ALREADY_EXISTS",
    ]
    assert response.failed_count == 5
    invalid = from_status(response.results[2].error)
    assert isinstance(invalid, errors.InvalidArgument)
    assert invalid.violations[0].field == "requests[2].task.spec.priority"
    assert await ids(taskdb) == {"taken", "a", "z"}


@pytest.mark.covers("BatchCreateTasks", "FIELD_INVALID")
@pytest.mark.covers("BatchCreateTasks", "ALREADY_EXISTS")
@pytest.mark.covers("BatchCreateTasks", "REQUEST_ID_REUSED")
@pytest.mark.covers("BatchCreateTasks", "TASK_TYPE_UNKNOWN")
@pytest.mark.covers("BatchCreateTasks", "TOO_LARGE")
@pytest.mark.seed("S1.60")
async def test_one_bad_item_fails_an_atomic_batch_and_is_named(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await tenant.create(task_id="taken", request_id="used")
    large = common_pb2.Payload(raw=b"x" * (1024 * 1024 + 1), content_type="text/plain")
    untyped = make_task(task_type="nowhere")
    untyped.task.spec.ClearField("execution")
    bad = {
        "FIELD_INVALID": make_task(priority=2000),
        "ALREADY_EXISTS": make_task(task_id="taken"),
        "REQUEST_ID_REUSED": make_task(request_id="used"),
        "TASK_TYPE_UNKNOWN": untyped,
        "TOO_LARGE": make_task(payload=large),
    }
    for reason, item in bad.items():
        with pytest.raises(errors.TaskyardError) as refused:
            await tenant.tasks.BatchCreateTasks(batch(make_task(), item, make_task(slot="s"), mode=ATOMIC))
        assert refused.value.reason == reason
        assert refused.value.extra["index"] == "1"
    assert await ids(taskdb) == {"taken"}
    assert await taskdb.rows("SELECT * FROM slots") == []
    assert await taskdb.rows("SELECT count(*) FROM changes") == [(1,)]


async def test_two_items_with_one_id_fail_an_atomic_batch(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.BatchCreateTasks(batch(make_task(task_id="a"), make_task(task_id="a")))
    assert refused.value.extra["index"] == "1"
    assert await ids(taskdb) == set()


@pytest.mark.covers("BatchCreateTasks", "BATCH_TOO_LARGE")
async def test_thousand_and_one_items_are_too_many(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    with pytest.raises(errors.BatchTooLarge):
        await tenant.tasks.BatchCreateTasks(batch(*(make_task() for _ in range(1001))))
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.BatchCreateTasks(batch())
    assert await ids(taskdb) == set()


@pytest.mark.covers("BatchCreateTasks", "NOT_FOUND")
async def test_foreign_parent_is_not_found(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await taskdb.add_tenant("acme")
    with pytest.raises(errors.NotFound):
        await tenant.tasks.BatchCreateTasks(
            BatchRequest(parent="tenants/acme", requests=[make_task("tenants/acme")])
        )


@pytest.mark.covers("BatchCreateTasks", "TENANT_SUSPENDED")
async def test_suspended_tenant_may_not_submit_a_batch(taskdb: Any, admin: Any, make_task: MakeTask) -> None:
    await taskdb.add_tenant("acme", suspended=True)
    with pytest.raises(errors.TenantSuspended):
        await admin.tasks.BatchCreateTasks(BatchRequest(parent="tenants/acme", requests=[make_task("")]))


@pytest.mark.covers("BatchCreateTasks", "PLACEMENT_CLASS_LIMIT")
async def test_class_limit_fails_the_item_that_reaches_it(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await tenant.create()
    await taskdb.rows(
        "INSERT INTO placement_classes (tenant_id, class_id, definition) "
        "SELECT 'default', n, '' FROM generate_series(1, 999) n RETURNING 1"
    )
    items = (make_task(task_id="known"), make_task(task_id="new", task_type="new"))
    response = await tenant.tasks.BatchCreateTasks(batch(*items, mode=PER_ITEM))
    assert from_status(response.results[1].error).reason == "PLACEMENT_CLASS_LIMIT"
    assert "known" in await ids(taskdb)
    with pytest.raises(errors.PlacementClassLimit):
        await tenant.tasks.BatchCreateTasks(batch(make_task(), make_task(task_type="new")))


async def test_atomic_batch_repeated_with_its_request_id_finds_its_tasks(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    request = batch(*(make_task(priority=n) for n in range(5)), request_id="b")
    first = await tenant.tasks.BatchCreateTasks(request)
    again = await tenant.tasks.BatchCreateTasks(request)
    names = [result.created.task.name for result in first.results]
    assert [result.created.task.name for result in again.results] == names
    assert again.results[0].created.outcome == task_service_pb2.CREATE_OUTCOME_REPLAYED
    changed = batch(*(make_task(priority=n) for n in range(4)), request_id="b")
    with pytest.raises(errors.RequestIdReused):
        await tenant.tasks.BatchCreateTasks(changed)
    assert len(await ids(taskdb)) == 5


async def test_batch_request_id_needs_the_atomic_mode(tenant: Any, make_task: MakeTask) -> None:
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.tasks.BatchCreateTasks(batch(make_task(), mode=PER_ITEM, request_id="b"))
    assert refused.value.violations[0].field == "request_id"


@pytest.mark.seed("S1.43-45")
async def test_tasks_of_one_slot_queue_in_the_order_of_the_batch(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    items = [make_task(task_id=f"t{n}", slot="s") for n in range(3)]
    items.append(make_task(task_id="dropped", slot="s", admission=task_pb2.ADMISSION_POLICY_DROP_IF_RUNNING))
    response = await tenant.tasks.BatchCreateTasks(batch(*items))
    assert response.results[3].created.outcome == task_service_pb2.CREATE_OUTCOME_DROPPED
    assert response.results[3].created.task.metadata.id == "t0"
    assert await taskdb.rows("SELECT task_id FROM queue") == [("t0",)]
    await taskdb.succeed("tenants/default/tasks/t0")
    assert await taskdb.rows("SELECT task_id FROM queue") == [("t1",)]


async def test_validate_only_items_store_nothing(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await tenant.create(task_id="taken")
    items = [make_task(task_id="new"), make_task(task_id="taken"), make_task(task_id="made")]
    for item in items[:2]:
        item.validate_only = True
    response = await tenant.tasks.BatchCreateTasks(batch(*items, mode=PER_ITEM))
    assert [result.WhichOneof("result") for result in response.results] == ["created", "error", "created"]
    assert await ids(taskdb) == {"taken", "made"}
    with pytest.raises(errors.AlreadyExists) as refused:
        await tenant.tasks.BatchCreateTasks(batch(*items[:2], mode=ATOMIC))
    assert refused.value.extra["index"] == "1"
    with pytest.raises(errors.FieldInvalid) as mixed:
        await tenant.tasks.BatchCreateTasks(batch(*items, mode=ATOMIC))
    assert mixed.value.violations[0].field == "requests[2].validate_only"
    assert await ids(taskdb) == {"taken", "made"}


@pytest.mark.parametrize("mode", [ATOMIC, PER_ITEM])
async def test_equal_items_that_are_only_checked_store_nothing(
    taskdb: Any, tenant: Any, make_task: MakeTask, mode: Any
) -> None:
    items = [make_task(priority=7) for _ in range(3)]
    for item in items:
        item.validate_only = True
    response = await tenant.tasks.BatchCreateTasks(batch(*items, mode=mode))
    assert [result.WhichOneof("result") for result in response.results] == ["created"] * 3
    assert await ids(taskdb) == set()


async def test_a_reused_request_id_leaves_nothing_of_an_atomic_batch(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await tenant.tasks.CreateTask(make_task(request_id="used", priority=1))
    items = [make_task(request_id="fresh", priority=2), make_task(request_id="used", priority=3)]
    with pytest.raises(errors.RequestIdReused):
        await tenant.tasks.BatchCreateTasks(batch(*items))
    assert len(await ids(taskdb)) == 1
    made = await tenant.tasks.CreateTask(items[0])
    assert made.outcome == task_service_pb2.CREATE_OUTCOME_CREATED
    assert len(await ids(taskdb)) == 2


async def test_equal_items_become_tasks_of_their_own(tenant: Any, make_task: MakeTask) -> None:
    items = [make_task(priority=7), make_task(priority=8), make_task(priority=7), make_task(priority=7)]
    response = await tenant.tasks.BatchCreateTasks(batch(*items))
    names = [result.created.task.name for result in response.results]
    assert len(set(names)) == 4 and names == sorted(names)
    stored = [await tenant.tasks.GetTask(task_service_pb2.GetTaskRequest(name=name)) for name in names]
    assert [task.task.spec.priority for task in stored] == [7, 8, 7, 7]
    assert [task.task.metadata.uid for task in stored] == [name.rsplit("/", 1)[1] for name in names]


async def test_equal_items_with_a_request_id_are_one_task(tenant: Any, make_task: MakeTask) -> None:
    items = [make_task(request_id="one"), make_task(request_id="two"), make_task(request_id="one")]
    response = await tenant.tasks.BatchCreateTasks(batch(*items, mode=PER_ITEM))
    first, other, again = (result.created for result in response.results)
    assert again.task.name == first.task.name != other.task.name
    assert again.outcome == task_service_pb2.CREATE_OUTCOME_REPLAYED


@pytest.mark.parametrize("length", [1, 7, 8, 36, 130, 256])
async def test_answer_names_the_task_as_a_single_create_does(
    tenant: Any, make_task: MakeTask, length: int
) -> None:
    view = task_service_pb2.TASK_VIEW_NAME
    request = make_task(task_id="s" * length)
    request.view = view
    single = await tenant.tasks.CreateTask(request)
    item = make_task(task_id="b" * length)
    (result,) = (await tenant.tasks.BatchCreateTasks(batch(item, view=view))).results
    uid = result.created.task.metadata.uid
    assert uid != single.task.metadata.uid
    found = await tenant.tasks.GetTask(
        task_service_pb2.GetTaskRequest(name=result.created.task.name, view=view)
    )
    assert found.task == result.created.task
    single.task.name, single.task.metadata.id = result.created.task.name, "b" * length
    single.task.metadata.uid = uid
    assert result.created == single
