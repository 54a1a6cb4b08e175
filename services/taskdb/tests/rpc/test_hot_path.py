"""The hot path writes the same rows in large and small batches, and no index prevents HOT updates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.v1 import common_pb2, lease_pb2, runner_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.storage.change_log import append as change_log
from taskyard_taskdb.storage.create import new_rows
from tests.harness.logged_changes import LOGGED

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]
COUNT = change_log.COPY_FROM + 10


def varied(make_task: MakeTask, prefix: str) -> task_service_pb2.BatchCreateTasksRequest:
    """Tasks with every column that a create fills, in all of its states."""
    later = Timestamp()
    later.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
    items = []
    for n in range(COUNT):
        spec: dict[str, Any] = {"priority": n % 3}
        if n % 5 == 0:
            spec |= {"slot": f"{prefix}-{n % 2}", "admission": task_pb2.ADMISSION_POLICY_QUEUE}
        if n % 7 == 0:
            spec["not_before"] = later
        if n % 11 == 0:
            spec["entity"] = task_pb2.EntityRef(type="order", id=f"{prefix}-{n}")
        request = make_task(
            task_id=f"{prefix}{n:03}", request_id=f"{prefix}{n}" if n % 13 == 0 else "", **spec
        )
        if n % 3 == 0:
            request.task.metadata.labels["n"] = str(n)
        items.append(request)
    return task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=items, mode=common_pb2.BATCH_MODE_PER_ITEM
    )


TABLES = {
    "tasks": """to_jsonb(t) - ARRAY['uid', 'task_id', 'slot', 'live_slot', 'entity_id', 'create_time',
        'update_time', 'ready_time', 'next_attempt_time', 'held_time', 'spec', 'policy', 'class_id']
        || jsonb_build_object('ready', ready_time = create_time, 'held', held_time = create_time,
        'uid', uid IS NULL) FROM tasks t WHERE task_id""",
    "queue": """to_jsonb(q) - ARRAY['task_id', 'ready_time', 'class_id'] || jsonb_build_object('ready',
        (SELECT ready_time FROM tasks t WHERE t.task_id = q.task_id) = q.ready_time)
        FROM queue q WHERE task_id""",
    "changes": """to_jsonb(c) - ARRAY['id', 'time', 'resource_id', 'next_attempt_time', 'request_id']
        || jsonb_build_object('waits', next_attempt_time IS NOT NULL, 'asked', request_id IS NOT NULL)
        FROM changes c WHERE resource_id""",
}


@pytest.mark.parametrize("table", TABLES)
async def test_a_batch_that_is_copied_in_is_stored_as_a_small_one_is(
    taskdb: RunningTaskDb, tenant: Any, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    key = "resource_id" if table == "changes" else "task_id"
    stored = []
    for prefix, threshold in (("small", COUNT + 1), ("large", 1)):
        monkeypatch.setattr(new_rows, "COPY_FROM", threshold)
        monkeypatch.setattr(change_log, "COPY_FROM", threshold)
        response = await tenant.tasks.BatchCreateTasks(varied(make_task, prefix))
        assert response.failed_count == 0
        query = f"SELECT right({key}, 3), {TABLES[table]} LIKE '{prefix}%%' ORDER BY 1"
        stored.append(await taskdb.rows(query))
    assert stored[0] and stored[0] == stored[1]


async def test_the_order_of_a_copied_batch_is_kept(yard: Yard, tenant: Any, make_task: MakeTask) -> None:
    items = [make_task(task_id=f"t{COUNT - n:03}") for n in range(COUNT)]
    request = task_service_pb2.BatchCreateTasksRequest(parent="tenants/default", requests=items)
    await tenant.tasks.BatchCreateTasks(request)
    runner, _ = await yard.hello()
    claimed = (await yard.claim(runner, COUNT)).assignments
    assert [one.lease.task.rsplit("/", 1)[1] for one in claimed] == [item.task_id for item in items]


async def test_one_taken_id_fails_no_other_task_of_a_copied_batch(tenant: Any, make_task: MakeTask) -> None:
    await tenant.create(task_id="t7")
    items = [make_task(task_id=f"t{n}") for n in range(COUNT)]
    request = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=items, mode=common_pb2.BATCH_MODE_PER_ITEM
    )
    response = await tenant.tasks.BatchCreateTasks(request)
    assert [n for n, result in enumerate(response.results) if result.HasField("error")] == [7]


async def test_batched_successes_are_recorded_like_single_ones(yard: Yard, taskdb: RunningTaskDb) -> None:
    await yard.create(COUNT)
    runner, _ = await yard.hello()
    claimed = (await yard.claim(runner, COUNT)).assignments
    reports: list[lease_pb2.RunReport] = []
    for assignment in claimed:
        reports += [started(assignment), succeeded(assignment, exit_code=0)]
    await yard.report(runner, *reports)
    rows = await taskdb.rows(
        "SELECT array_agg((event, version, generation, attempt, phase, previous_phase, actor_id, runner_id, "
        f"exit_code)::text ORDER BY id) FROM {LOGGED} WHERE resource_kind = 1 GROUP BY resource_id"
    )
    assert len(rows) == COUNT and len({tuple(change[1:]) for (change,) in rows}) == 1, rows[:2]
    (run,) = await taskdb.rows(
        "SELECT DISTINCT generation, attempt, state, exit_code, runner_id FROM ended_runs"
    )
    assert run == (1, 1, 3, 0, "runner-1")
    assert await taskdb.rows("SELECT FROM runs") == []


@pytest.mark.seed("S0.42-43")
async def test_a_runners_successes_and_failures_are_counted_once(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await yard.create(4)
    runner, _ = await yard.hello()
    plain, detailed, broken, again = (await yard.claim(runner, 4)).assignments
    report = succeeded(detailed)
    report.details.update({"key": "value"})
    for _ in range(2):
        await yard.report(runner, started(plain), succeeded(plain))
        await yard.report(runner, started(detailed), report)
        await yard.report(runner, started(broken), failed(broken, permanent=True))
        await yard.report(runner, started(again), failed(again))
    counts = await taskdb.rows("SELECT completed_count, failed_count FROM runner_counts")
    assert counts == [(2, 2)]
    shown = await admin.runners.GetRunner(runner_service_pb2.GetRunnerRequest(name=f"runners/{runner.id}"))
    assert (shown.runner.completed_count, shown.runner.failed_count) == (2, 2)


async def test_no_index_prevents_hot_updates_of_an_outcome(taskdb: RunningTaskDb) -> None:
    rows = await taskdb.rows(
        "SELECT DISTINCT a.attname::text FROM pg_depend d JOIN pg_class i ON i.oid = d.objid "
        "JOIN pg_am m ON m.oid = i.relam "
        "JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
        "WHERE d.refobjid = 'tasks'::regclass AND i.relkind = 'i' AND m.amname <> 'brin'"
    )
    indexed = {name for (name,) in rows}
    changed = {"phase", "pending_reason", "version", "generation", "attempt", "update_time", "schedule_time"}
    changed |= {"start_time", "end_time", "last_runner_id", "exit_code", "run_lease_id"}
    assert {"tenant_id", "create_time", "held_time"} <= indexed and not indexed & changed


async def test_a_task_that_heads_its_slot_at_once_is_in_no_index_of_waiters(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    """Or its outcome would have to leave that index, and write every other one anew."""
    head, waiter = await yard.create(2, slot="press", admission=task_pb2.ADMISSION_POLICY_QUEUE)
    indexed = "SELECT task_id FROM tasks WHERE live_slot IS NOT NULL"
    assert await taskdb.rows(indexed) == [(waiter.rpartition("/")[2],)]
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    assert claimed.lease.task == head
    await yard.report(runner, started(claimed), succeeded(claimed))
    assert await taskdb.rows(indexed) == []
    assert await taskdb.rows("SELECT head_task_id FROM slots") == [(waiter.rpartition("/")[2],)]


@pytest.mark.parametrize("order", ["metadata.create_time", "status.end_time", "status.end_time desc"])
async def test_lists_by_phase_and_by_end_miss_nothing(yard: Yard, tenant: Any, order: str) -> None:
    names = await yard.create(6)
    runner, _ = await yard.hello()
    claimed = (await yard.claim(runner, 5)).assignments
    for n, assignment in enumerate(claimed):
        outcome = failed(assignment, permanent=True) if n % 2 else succeeded(assignment)
        await yard.report(runner, started(assignment), outcome)
    expected = names[:5] if order != "status.end_time desc" else names[4::-1]
    for chosen, wanted in (
        ("", expected),
        ("status.phase = FAILED", [n for n in expected if n in names[1:5:2]]),
    ):
        found, token = [], ""
        while True:
            request = task_service_pb2.ListTasksRequest(
                parent="tenants/default", filter=chosen, order_by=order, page_size=2, page_token=token
            )
            page = await tenant.tasks.ListTasks(request)
            found += [one.name for one in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert found == (wanted if order != "metadata.create_time" or chosen else names), chosen
