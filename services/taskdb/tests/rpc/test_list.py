"""ListTasks, GetTask, BatchGetTasks, ListTaskRuns and CheckFence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.storage.read import listing, tasks

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]


async def listed(caller: Any, filter_text: str = "", **fields: Any) -> Any:
    """A page."""
    fields.setdefault("parent", "tenants/default")
    return await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(filter=filter_text, **fields))


def ids(response: Any) -> list[str]:
    """The ids of a page."""
    return [task.metadata.id for task in response.tasks]


@pytest.fixture
async def population(taskdb: Any, tenant: Any, make_task: MakeTask) -> Any:
    """Tasks in many states, created in the order of their ids."""
    parent = await tenant.create(task_id="a-queued", task_type="web", labels={"team": "red", "tier": "1"})
    child = make_task(task_id="b-child", task_type="web", priority=99, labels={"team": "blue"})
    child.task.metadata.parent_task = parent.name
    await tenant.tasks.CreateTask(child)
    entity = task_pb2.EntityRef(type="planner", id="p1")
    await tenant.create(task_id="c-slot", entity=entity, task_type="batch_100", labels={"team": "50%_x"})
    await tenant.create(task_id="d-running", labels={"team": "red", "empty": ""})
    await taskdb.start("tenants/default/tasks/d-running")
    await tenant.create(task_id="e-scheduled")
    await taskdb.claim("tenants/default/tasks/e-scheduled", "r2")
    await tenant.create(task_id="f-failed", task_type="web")
    await taskdb.fail("tenants/default/tasks/f-failed", "EXIT_NONZERO")
    await tenant.create(task_id="g-done")
    await taskdb.succeed("tenants/default/tasks/g-done")
    await tenant.create(task_id="h-paused")
    await tenant.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name="tenants/default/tasks/h-paused"))
    await tenant.create(
        task_id="i-external", external=True, entity=task_pb2.EntityRef(type="planner", id="p1"), slot=""
    )
    await tenant.create(task_id="j-external", external=True, slot="other", labels={"team": "red"})
    await taskdb.add_tenant("acme")
    return taskdb


FILTERS = [
    "status.phase = PENDING",
    "status.phase = TASK_PHASE_RUNNING OR status.phase = SCHEDULED",
    "status.phase != PENDING",
    "status.phase = LIVE",
    "status.phase = TERMINAL AND NOT status.phase = FAILED",
    "NOT status.phase = LIVE",
    'spec.task_type = "web"',
    'spec.task_type = "batch_100"',
    'spec.task_type = "batch_*"',
    'spec.task_type = "b_tch*"',
    'metadata.labels.team = "50%*"',
    'metadata.labels.team = "%*"',
    'spec.task_type != "web"',
    "spec.task_type:*",
    'spec.slot = "planner.p1"',
    'spec.slot != "planner.p1"',
    '-spec.slot = "planner.p1"',
    'spec.slot = "planner.*"',
    "spec.slot:*",
    'spec.slot = ""',
    'spec.slot = "planner.p1" AND status.phase = LIVE',
    'spec.slot = "planner.p1" OR spec.slot = "other"',
    'NOT (spec.slot = "planner.p1" OR metadata.labels.team = red)',
    "spec.entity.type = planner AND spec.entity.id = p1",
    "spec.priority > 10",
    "spec.priority <= 10 AND status.attempt = 0",
    'status.runner = "r2"',
    'status.runner = "runners/r1"',
    'NOT status.runner = "r1"',
    "status.runner:*",
    "status.retry_count = 0",
    "status.error.code = EXIT_NONZERO",
    "status.error.code != EXIT_NONZERO",
    "status.start_time:*",
    'status.end_time > "2020-01-01T00:00:00Z"',
    'NOT status.end_time > "2020-01-01T00:00:00Z"',
    'metadata.create_time > "2020-01-01T00:00:00Z"',
    'metadata.update_time < "2020-01-01T00:00:00Z"',
    'metadata.parent_task = "tenants/default/tasks/a-queued"',
    'NOT metadata.parent_task = "tenants/default/tasks/a-queued"',
    'metadata.parent_task != "tenants/acme/tasks/a-queued"',
    "metadata.labels.team = red",
    'metadata.labels.team = "r*"',
    "metadata.labels.team != red",
    "NOT metadata.labels.team = red",
    "metadata.labels:tier",
    "NOT metadata.labels:team",
    "metadata.labels:empty",
    'metadata.labels.empty = ""',
    'metadata.labels.empty != ""',
    'metadata.labels.team = ""',
    'metadata.labels.empty = "*"',
    'id = "a*"',
    'id = "a*" OR id = "b-child" AND status.phase = PENDING',
    '(id = "a*" OR status.phase = FAILED) AND spec.task_type = web',
]


async def test_sql_and_evaluation_of_every_filter_agree(population: Any, tenant: Any) -> None:
    async with population.pool.reading() as tx:
        keys = await tasks.scan_keys(tx, "default", None, 100)
        records = list((await tasks.read_many(tx, keys)).values())
    assert len(records) == 10
    seen: set[str] = set()
    for text in FILTERS:
        condition = filters.parse(text)
        expected = [r.task_id for r in records if condition.matches(tasks.filter_fields(r))]
        page = await listed(tenant, text, order_by="metadata.create_time", count_total=True)
        assert ids(page) == expected, text
        assert page.total_size == len(expected), text
        seen.update(expected)
    assert seen == {record.task_id for record in records}


@pytest.mark.parametrize("phase", ["", " AND status.phase = LIVE"])
async def test_a_slot_finds_external_tasks_in_the_order_of_the_others(
    population: Any, tenant: Any, phase: str
) -> None:
    await tenant.create(task_id="k-slot", slot="planner.p1")
    await tenant.create(task_id="l-external", external=True, slot="planner.p1")
    wanted = ["l-external", "k-slot", "i-external", "c-slot"]
    found: list[str] = []
    token = ""
    while not found or token:
        page = await listed(tenant, f'spec.slot = "planner.p1"{phase}', page_size=1, page_token=token)
        assert all(task.spec.slot == "planner.p1" for task in page.tasks)
        found += ids(page)
        token = page.next_page_token
    assert found == wanted


async def test_the_slot_of_an_external_task_is_no_label_and_outlives_a_change_of_labels(tenant: Any) -> None:
    made = await tenant.create(task_id="a", external=True, slot="s", labels={"team": "red"})
    assert dict(made.metadata.labels) == {"team": "red"}
    made.metadata.labels["team"] = "blue"
    change = task_service_pb2.UpdateTaskRequest(task=made, update_mask=FieldMask(paths=["metadata.labels"]))
    changed = (await tenant.tasks.UpdateTask(change)).task
    page = await listed(tenant, 'spec.slot = "s" AND metadata.labels.team = blue')
    assert ids(page) == ["a"]
    for task in (changed, page.tasks[0]):
        assert dict(task.metadata.labels) == {"team": "blue"}


async def test_default_order_is_newest_first_in_pages_without_gaps(population: Any, tenant: Any) -> None:
    expected = sorted(ids(await listed(tenant)), reverse=True)
    assert ids(await listed(tenant)) == expected
    for order, wanted in (("", expected), ("metadata.create_time", expected[::-1])):
        for size in (1, 3, 10):
            found, token = [], ""
            while True:
                page = await listed(tenant, order_by=order, page_size=size, page_token=token)
                found += ids(page)
                token = page.next_page_token
                if not token:
                    break
            assert found == wanted


async def test_ended_tasks_in_the_order_of_their_end(population: Any, tenant: Any, admin: Any) -> None:
    assert ids(await listed(tenant, order_by="status.end_time")) == ["f-failed", "g-done"]
    assert ids(await listed(tenant, order_by="status.end_time desc")) == ["g-done", "f-failed"]
    first = await listed(admin, parent="tenants/-", order_by="status.end_time desc", page_size=1)
    second = await listed(
        admin,
        parent="tenants/-",
        order_by="status.end_time desc",
        page_size=1,
        page_token=first.next_page_token,
    )
    assert ids(first) + ids(second) == ["g-done", "f-failed"]


async def test_all_tenants_are_those_the_caller_sees(population: Any, tenant: Any, admin: Any) -> None:
    await admin.create(parent="tenants/acme", task_id="z-acme")
    assert "z-acme" in ids(await listed(admin, parent="tenants/-"))
    assert "z-acme" not in ids(await listed(tenant, parent="tenants/-"))
    found, token = [], ""
    while True:
        page = await listed(admin, parent="tenants/-", page_size=2, page_token=token)
        found += ids(page)
        token = page.next_page_token
        if not token:
            break
    assert len(found) == len(set(found)) == 11
    with pytest.raises(errors.NotFound):
        await listed(tenant, parent="tenants/acme")


async def test_basic_view_leaves_out_payloads(tenant: Any) -> None:
    await tenant.create(payload=common_pb2.Payload(raw=b"{}"))
    assert not (await listed(tenant)).tasks[0].spec.HasField("payload")
    full = await listed(tenant, view=task_service_pb2.TASK_VIEW_FULL)
    assert full.tasks[0].spec.payload.raw == b"{}"
    name = await listed(tenant, view=task_service_pb2.TASK_VIEW_NAME)
    assert not name.tasks[0].HasField("spec")


@pytest.mark.parametrize("order", ["metadata.create_time", "metadata.create_time desc"])
async def test_filter_without_an_index_gives_short_pages_and_misses_nothing(
    population: Any, tenant: Any, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(listing, "SCAN_LIMIT", 2)
    # As if there were too many live tasks to look each of them up.
    monkeypatch.setattr(listing, "FEW", 0)
    for text in ("spec.priority > 10", "status.attempt = 0", "status.phase = RUNNING", "status.phase = LIVE"):
        found, token, pages = [], "", 0
        while True:
            page = await listed(tenant, text, order_by=order, page_token=token)
            found += ids(page)
            token = page.next_page_token
            pages += 1
            if not token:
                break
        monkeypatch.setattr(listing, "SCAN_LIMIT", 1000)
        assert found == ids(await listed(tenant, text, order_by=order)), text
        monkeypatch.setattr(listing, "SCAN_LIMIT", 2)
        assert pages > 1
    # A value of an indexed field leads to its tasks at once.
    assert len(ids(await listed(tenant, "spec.task_type = web", order_by=order))) == 3


@pytest.mark.covers("ListTasks", "FILTER_INVALID")
@pytest.mark.covers("ListTasks", "ORDER_BY_INVALID")
@pytest.mark.covers("ListTasks", "PAGE_TOKEN_INVALID")
async def test_bad_queries_are_refused(population: Any, tenant: Any) -> None:
    for text in ("spec.payload = 1", "status.phase = NOWHERE", "id =", "x" * 4097):
        with pytest.raises((errors.FilterInvalid, errors.FieldInvalid)):
            await listed(tenant, text)
    with pytest.raises(errors.FilterInvalid):
        await listed(tenant, "spec.payload = 1")
    with pytest.raises(errors.OrderByInvalid):
        await listed(tenant, order_by="spec.priority")
    with pytest.raises(errors.FieldInvalid):
        await listed(tenant, page_size=-1)
    token = (await listed(tenant, page_size=1)).next_page_token
    with pytest.raises(errors.PageTokenInvalid):
        await listed(tenant, page_size=1, page_token="damaged")
    with pytest.raises(errors.PageTokenInvalid):
        await listed(tenant, "status.phase = LIVE", page_size=1, page_token=token)


async def test_resume_token_of_a_list_leads_on_into_a_watch(taskdb: Any, tenant: Any) -> None:
    await tenant.create(task_id="before")
    page = await listed(tenant)
    await tenant.create(task_id="after")
    request = task_service_pb2.WatchTasksRequest(parent="tenants/default", resume_token=page.resume_token)
    seen: list[str] = []
    call = tenant.tasks.WatchTasks(request)
    async for response in call:
        seen += [event.task.metadata.id for event in response.events]
        if "after" in seen:
            break
    call.cancel()
    # The watch may repeat tasks of the list, but misses no change.
    assert seen in (["after"], ["before", "after"])


# --- by name


@pytest.mark.covers("GetTask", "NOT_FOUND")
async def test_missing_and_foreign_tasks_are_not_found(taskdb: Any, tenant: Any, admin: Any) -> None:
    await taskdb.add_tenant("acme")
    foreign = await admin.create(parent="tenants/acme")
    for name in ("tenants/default/tasks/none", foreign.name):
        with pytest.raises(errors.NotFound):
            await tenant.get(name)
    with pytest.raises(errors.FieldInvalid):
        await tenant.get("tenants/default/tasks/..")


@pytest.mark.covers("BatchGetTasks", "NOT_FOUND")
async def test_batch_get_keeps_the_order_of_the_names(taskdb: Any, tenant: Any) -> None:
    made = [(await tenant.create()).name for _ in range(3)]
    names = [made[2], "tenants/default/tasks/none", made[0], made[2]]
    request = task_service_pb2.BatchGetTasksRequest(parent="tenants/default", names=names)
    with pytest.raises(errors.NotFound) as refused:
        await tenant.tasks.BatchGetTasks(request)
    assert refused.value.name == names[1]
    request.allow_missing = True
    response = await tenant.tasks.BatchGetTasks(request)
    assert [task.name for task in response.tasks] == [made[2], made[0], made[2]]
    request.names.extend(names * 250)
    with pytest.raises(errors.BatchTooLarge):
        await tenant.tasks.BatchGetTasks(request)


# --- runs and fences


@pytest.mark.covers("ListTaskRuns", "NOT_FOUND")
@pytest.mark.covers("ListTaskRuns", "PAGE_TOKEN_INVALID")
async def test_runs_are_listed_newest_first_with_the_current_one(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    for _ in range(2):
        await taskdb.fail(task.name)
        await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=task.name))
    await taskdb.start(task.name)

    async def runs(**fields: Any) -> Any:
        fields.setdefault("parent", task.name)
        return await tenant.tasks.ListTaskRuns(task_service_pb2.ListTaskRunsRequest(**fields))

    everything = await runs()
    assert [run.generation for run in everything.runs] == [3, 2, 1]
    assert [run.state for run in everything.runs] == [
        task_pb2.RUN_STATE_RUNNING,
        task_pb2.RUN_STATE_FAILED,
        task_pb2.RUN_STATE_FAILED,
    ]
    assert everything.runs[0].name == f"{task.name}/runs/3"
    assert everything.runs[1].error.code == "EXIT_NONZERO"
    first = await runs(page_size=2)
    second = await runs(page_size=2, page_token=first.next_page_token)
    assert [run.generation for run in second.runs] == [1] and not second.next_page_token
    with pytest.raises(errors.NotFound):
        await runs(parent="tenants/default/tasks/none")
    with pytest.raises(errors.PageTokenInvalid):
        await runs(page_token="damaged")


@pytest.mark.covers("CheckFence", "NOT_FOUND")
async def test_fence_holds_while_its_lease_does(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    state = await taskdb.start(task.name)

    async def check(token: str, name: str = task.name) -> Any:
        request = task_service_pb2.CheckFenceRequest(name=name, fencing_token=token)
        return await tenant.tasks.CheckFence(request)

    token = f"{state.generation}.{state.lease.lease_id}"
    held = await check(token)
    assert held.current and timedelta(0) < held.lease_ttl.ToTimedelta() <= timedelta(minutes=1)
    assert not (await check(f"{state.generation}.{state.lease.lease_id + 1}")).current
    assert not (await check(f"0.{state.lease.lease_id}")).current
    await taskdb.rows("UPDATE leases SET expire_time = now() - interval '1 second' RETURNING 1")
    assert not (await check(token)).current
    with pytest.raises(errors.NotFound):
        await check(token, "tenants/default/tasks/none")


async def test_a_label_with_an_empty_value_is_present(tenant: Any) -> None:
    await tenant.create(task_id="with", labels={"a": ""})
    await tenant.create(task_id="without")
    assert ids(await listed(tenant, "metadata.labels:a")) == ["with"]
    assert ids(await listed(tenant, 'metadata.labels.a = ""')) == ["with"]
    assert ids(await listed(tenant, "NOT metadata.labels:a")) == ["without"]
    assert ids(await listed(tenant, 'metadata.labels.a != ""')) == ["without"]
