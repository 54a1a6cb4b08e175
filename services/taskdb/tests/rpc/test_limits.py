"""spec.limits: tasks that wait for named limits, and what admits them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.limit_calls import (
    PARENT,
    create_limit,
    delete_limit,
    get_limit,
    limit_name,
    rate,
    sweep,
    update_limit,
    uses,
)
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors
from taskyard.v1 import common_pb2, limit_pb2, limit_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant.removal import TenantRemoval

QUEUED, LIMITED = task_pb2.PENDING_REASON_QUEUED, task_pb2.PENDING_REASON_LIMITED
SLOT_BUSY, BACKOFF = task_pb2.PENDING_REASON_SLOT_BUSY, task_pb2.PENDING_REASON_BACKOFF
DELAYED, BLOCKED = task_pb2.PENDING_REASON_DELAYED, task_pb2.PENDING_REASON_BLOCKED


@pytest.fixture
async def taskdb(quiet: RunningTaskDb) -> RunningTaskDb:
    """A taskdb whose sweep runs when the test says so."""
    return quiet


def name(task_id: str) -> str:
    return f"{PARENT}/tasks/{task_id}"


async def reasons(caller: Caller, *task_ids: str) -> list[int]:
    return [(await caller.get(name(task_id))).status.pending_reason for task_id in task_ids]


async def submit(caller: Caller, *task_ids: str, limits: list[str]) -> list[int]:
    made = [await caller.create(task_id=task_id, limits=uses(*limits)) for task_id in task_ids]
    return [task.status.pending_reason for task in made]


async def recount(taskdb: RunningTaskDb) -> bool:
    """Whether what is counted is what tasks hold, of limits and of keys."""
    totals = await taskdb.rows(
        "SELECT l.limit_id FROM limits l WHERE l.held <> ("
        "SELECT coalesce(sum(u.units), 0) FROM task_limits u JOIN tasks t USING (tenant_id, task_id) "
        "WHERE u.limit_id = l.limit_id AND u.held AND t.limited)"
    )
    keys = await taskdb.rows(
        "SELECT limit_id, key, sum(units) FROM task_limits WHERE held GROUP BY 1, 2 "
        "EXCEPT SELECT limit_id, key, held FROM limit_keys"
    )
    more = await taskdb.rows(
        "SELECT limit_id, key, held FROM limit_keys "
        "EXCEPT SELECT limit_id, key, sum(units) FROM task_limits WHERE held GROUP BY 1, 2"
    )
    return not (totals or keys or more)


async def test_a_task_waits_until_its_limit_has_room(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=2)
    assert await submit(tenant, "a", "b", "c", limits=["api"]) == [QUEUED, QUEUED, LIMITED]
    assert await taskdb.rows("SELECT task_id FROM queue ORDER BY 1") == [("a",), ("b",)]
    found = await get_limit(tenant, "api")
    assert (found.running_units, found.waiting_count) == (2, 1)
    await taskdb.succeed(name("a"))
    assert await reasons(tenant, "b", "c") == [QUEUED, QUEUED]
    await taskdb.succeed(name("b"))
    await taskdb.fail(name("c"))
    assert (await get_limit(tenant, "api")).running_units == 0
    assert await taskdb.rows("SELECT count(*) FROM limit_keys") == [(0,)]


async def test_the_answer_of_a_create_is_what_is_stored(tenant: Caller) -> None:
    await create_limit(tenant, "api", max_running=1)
    for task_id in ("a", "b"):
        made = await tenant.create(task_id=task_id, limits=uses("api:k"))
        found = await tenant.get(made.name)
        assert made.metadata.resource_version == found.metadata.resource_version
        assert made.status.ready_time == found.status.ready_time
        assert made.status.pending_reason == found.status.pending_reason
        assert list(found.spec.limits) == [task_pb2.LimitUse(limit=limit_name("api"), key="k", units=1)]


async def test_a_plain_success_of_a_runner_admits_the_next(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", "b", limits=["api"])
    runner, _ = await yard.hello(lease_seconds=300)
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.lease.task == name("a")
    assert not (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.lease.task == name("b")
    assert await recount(taskdb)


async def test_totals_and_keys_are_bounded_together(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=3, max_running_per_key=2)
    assert await submit(tenant, "a1", "a2", "a3", limits=["api:a"]) == [QUEUED, QUEUED, LIMITED]
    assert await submit(tenant, "b1", "b2", limits=["api:b"]) == [QUEUED, LIMITED]
    await taskdb.succeed(name("a1"))
    # Key b was served last.
    assert await reasons(tenant, "a3", "b2") == [QUEUED, LIMITED]
    await submit(tenant, "a4", limits=["api:a"])
    await taskdb.succeed(name("a2"))
    assert await reasons(tenant, "a4", "b2") == [LIMITED, QUEUED]
    assert await recount(taskdb)


async def test_keys_take_turns_and_tasks_of_a_key_their_order(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "first", limits=["api:z"])
    for number in range(3):
        await submit(tenant, f"a{number}", limits=["api:a"])
    await submit(tenant, "b0", limits=["api:b"])
    await submit(tenant, "c0", limits=["api:c"])
    order = []
    running = "first"
    for _ in range(5):
        await taskdb.succeed(name(running))
        ((running,),) = await taskdb.rows("SELECT task_id FROM queue")
        order.append(running)
    assert order == ["a0", "b0", "c0", "a1", "a2"]


async def test_several_limits_are_taken_together_or_not_at_all(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "x", max_running=1)
    await create_limit(tenant, "y", max_running=1)
    assert await submit(tenant, "y1", limits=["y"]) == [QUEUED]
    assert await submit(tenant, "both", limits=["x", "y"]) == [LIMITED]
    # A task that waits for y holds nothing of x.
    assert await submit(tenant, "x1", limits=["x"]) == [QUEUED]
    await taskdb.succeed(name("y1"))
    await sweep(taskdb)
    assert await reasons(tenant, "both") == [LIMITED]
    assert (await get_limit(tenant, "y")).running_units == 0
    await taskdb.succeed(name("x1"))
    await sweep(taskdb)
    assert await reasons(tenant, "both") == [QUEUED]
    assert [(await get_limit(tenant, one)).running_units for one in "xy"] == [1, 1]
    assert await recount(taskdb)


async def test_units_count_and_a_large_task_is_not_overtaken(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "gpu", max_running=4)
    assert await submit(tenant, "a", limits=["gpu::3"]) == [QUEUED]
    assert await submit(tenant, "large", limits=["gpu::4"]) == [LIMITED]
    assert await submit(tenant, "small", limits=["gpu"]) == [LIMITED]
    await taskdb.succeed(name("a"))
    assert await reasons(tenant, "large", "small") == [QUEUED, LIMITED]
    await taskdb.succeed(name("large"))
    assert await reasons(tenant, "small") == [QUEUED]


async def test_a_raised_limit_admits_what_waits(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", "b", "c", limits=["api"])
    changed = await update_limit(tenant, "api", max_running=2)
    assert (changed.max_running, changed.resource_version) == (2, 2)
    await sweep(taskdb)
    assert await reasons(tenant, "b", "c") == [QUEUED, LIMITED]
    await update_limit(tenant, "api", max_running=1)
    await sweep(taskdb)
    await taskdb.succeed(name("a"))
    assert await reasons(tenant, "b", "c") == [QUEUED, LIMITED]
    assert (await get_limit(tenant, "api")).running_units == 1


async def test_a_task_wider_than_a_lowered_limit_is_admitted_alone(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=4)
    await submit(tenant, "a", "b", limits=["api::3"])
    await update_limit(tenant, "api", max_running=2)
    await sweep(taskdb)
    assert await reasons(tenant, "b") == [LIMITED]
    await taskdb.succeed(name("a"))
    assert await reasons(tenant, "b") == [QUEUED]


async def test_deleting_a_limit_admits_what_waits_and_keeps_the_count_of_a_successor(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", "b", limits=["api"])
    await delete_limit(tenant, "api")
    with pytest.raises(errors.NotFound):
        await get_limit(tenant, "api")
    with pytest.raises(errors.NotFound, match="limits/api"):
        await submit(tenant, "c", limits=["api"])
    await sweep(taskdb)
    assert await reasons(tenant, "b") == [QUEUED]
    await create_limit(tenant, "api", max_running=2)
    # a was counted before, b was admitted while there was no limit.
    assert (await get_limit(tenant, "api")).running_units == 1
    await taskdb.succeed(name("a"))
    await taskdb.succeed(name("b"))
    assert (await get_limit(tenant, "api")).running_units == 0
    await delete_limit(tenant, "api")
    await sweep(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM limits") == [(0,)]


async def test_a_limit_that_is_gone_holds_nothing_back(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", limits=["api"])
    await tenant.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=name("a")))
    await delete_limit(tenant, "api")
    await sweep(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM limits") == [(0,)]
    await tenant.tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=name("a")))
    assert await reasons(tenant, "a") == [QUEUED]
    await taskdb.succeed(name("a"))


async def test_pause_cancel_and_retry_give_units_back_and_ask_for_them_again(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", "b", "c", limits=["api"])
    await tenant.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=name("a")))
    assert await reasons(tenant, "b") == [QUEUED]
    await tenant.tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=name("a")))
    await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name("b")))
    # a came back behind c.
    assert await reasons(tenant, "a", "c") == [LIMITED, QUEUED]
    await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name("a")))
    assert (await get_limit(tenant, "api")).waiting_count == 0
    await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name("a")))
    assert await reasons(tenant, "a") == [LIMITED]
    await taskdb.succeed(name("c"))
    assert await reasons(tenant, "a") == [QUEUED]
    assert await recount(taskdb)


async def test_a_failure_gives_units_back_for_the_time_of_its_backoff(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", "b", limits=["api"])
    runner, _ = await yard.hello(lease_seconds=300)
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), failed(assignment))
    assert await reasons(tenant, "a", "b") == [BACKOFF, QUEUED]
    assert await recount(taskdb)


async def test_a_delay_a_prerequisite_and_a_slot_come_before_the_limits(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=1)
    later = datetime.now(UTC) + timedelta(hours=1)
    made = await tenant.create(task_id="delayed", limits=uses("api"), not_before=later)
    assert made.status.pending_reason == DELAYED
    await tenant.create(task_id="p")
    made = await tenant.create(task_id="blocked", limits=uses("api"), after=[task_pb2.Dependency(task="p")])
    assert made.status.pending_reason == BLOCKED
    made = await tenant.create(task_id="head", slot="s", limits=uses("api"))
    assert made.status.pending_reason == QUEUED
    await tenant.create(task_id="waits", slot="s", limits=uses("api"))
    await taskdb.succeed(name("p"))
    assert await reasons(tenant, "delayed", "blocked", "waits") == [DELAYED, LIMITED, SLOT_BUSY]
    await taskdb.succeed(name("head"))
    # The waiter of the slot heads it now, and waits for the limit that the other one was admitted by.
    assert await reasons(tenant, "blocked", "waits") == [QUEUED, LIMITED]
    assert await taskdb.rows("SELECT head_task_id FROM slots") == [("waits",)]
    await taskdb.succeed(name("blocked"))
    assert await reasons(tenant, "waits") == [QUEUED]
    await taskdb.succeed(name("waits"))
    assert await taskdb.rows("SELECT count(*) FROM slots") == [(0,)]


async def test_a_slot_that_a_task_without_limits_leaves_is_taken_by_one_with_limits(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await tenant.create(task_id="plain", slot="s")
    await tenant.create(task_id="waits", slot="s", limits=uses("api"))
    runner, _ = await yard.hello(lease_seconds=300)
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    assert await reasons(tenant, "waits") == [LIMITED]
    await sweep(taskdb)
    assert await reasons(tenant, "waits") == [QUEUED]
    assert await sweep(taskdb) == 0


async def test_a_batch_is_admitted_up_to_the_limit(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=300, max_running_per_key=30)
    items = [new_task(task_id=f"t{n:04}", limits=uses(f"api:k{n % 20:02}")) for n in range(1000)]
    request = task_service_pb2.BatchCreateTasksRequest(
        parent=PARENT, requests=items, mode=common_pb2.BATCH_MODE_ATOMIC
    )
    await tenant.tasks.BatchCreateTasks(request)
    await sweep(taskdb)
    assert (await get_limit(tenant, "api")).running_units == 300
    assert await taskdb.rows("SELECT min(held), max(held) FROM limit_keys") == [(15, 15)]
    assert await recount(taskdb)


async def test_the_answers_of_a_batch_are_what_is_stored(tenant: Caller) -> None:
    await create_limit(tenant, "api", max_running=1)
    items = [new_task(task_id=f"limited-{n}", limits=uses("api")) for n in range(3)]
    request = task_service_pb2.BatchCreateTasksRequest(parent=PARENT, requests=items)
    view = task_service_pb2.TASK_VIEW_NAME
    for result in (await tenant.tasks.BatchCreateTasks(request)).results:
        wanted = task_service_pb2.GetTaskRequest(name=result.created.task.name, view=view)
        assert (await tenant.tasks.GetTask(wanted)).task == result.created.task


async def test_starts_open_again_by_time(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", starts=rate(2, 3600))
    assert await submit(tenant, "a", "b", "c", limits=["api"]) == [QUEUED, QUEUED, LIMITED]
    await taskdb.succeed(name("a"))
    await taskdb.succeed(name("b"))
    assert await sweep(taskdb) == 0
    assert await reasons(tenant, "c") == [LIMITED]
    ((open_time,),) = await taskdb.rows("SELECT try_time FROM limits")
    assert timedelta(minutes=59) < open_time - datetime.now(UTC) < timedelta(minutes=61)
    hour = "interval '1 hour 1 second'"
    await taskdb.execute(f"UPDATE limit_starts SET time = time - {hour}, entry_time = entry_time - {hour}")
    await taskdb.execute("UPDATE limits SET try_time = now()")
    await sweep(taskdb)
    assert await reasons(tenant, "c") == [QUEUED]
    # What counts no longer is removed.
    assert await taskdb.rows("SELECT sum(units) FROM limit_starts") == [(1,)]


async def test_starts_of_a_key_leave_other_keys_alone(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", starts_per_key=rate(1, 3600))
    assert await submit(tenant, "a", "b", limits=["api:x"]) == [QUEUED, LIMITED]
    assert await submit(tenant, "c", limits=["api:y"]) == [QUEUED]


@pytest.mark.parametrize(
    ("entries", "field", "problem"),
    [
        (uses(*(f"l{n}" for n in range(9))), "task.spec.limits", "at most 8"),
        (uses("api", "api"), "task.spec.limits[1].limit", "a second time"),
        (uses("api::6"), "task.spec.limits[0].units", "5 at most"),
        ([task_pb2.LimitUse(limit="api", units=-1)], "task.spec.limits[0].units", "-1"),
        ([task_pb2.LimitUse(limit="api", key="a b")], "task.spec.limits[0].key", "a b"),
        ([task_pb2.LimitUse(limit="a/b")], "task.spec.limits[0].limit", "a/b"),
    ],
)
async def test_a_bad_use_is_refused_by_its_field(
    tenant: Caller, taskdb: RunningTaskDb, entries: list[task_pb2.LimitUse], field: str, problem: str
) -> None:
    await create_limit(tenant, "api", max_running=9, max_running_per_key=5)
    with pytest.raises(errors.InvalidArgument) as raised:
        await tenant.create(limits=entries)
    assert [one.field for one in raised.value.violations] == [field]
    assert problem in raised.value.violations[0].description
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(0,)]


async def test_unknown_and_foreign_limits_are_not_found(tenant: Caller, taskdb: RunningTaskDb) -> None:
    for limit in ("none", "tenants/other/limits/api"):
        with pytest.raises(errors.NotFound, match="limit"):
            await tenant.create(limits=[task_pb2.LimitUse(limit=limit)])
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(0,)]


async def test_a_limit_that_bounds_nothing_is_refused(tenant: Caller) -> None:
    with pytest.raises(errors.InvalidArgument, match="bounds nothing"):
        await create_limit(tenant, "api")
    await create_limit(tenant, "api", max_running=1)
    with pytest.raises(errors.AlreadyExists):
        await create_limit(tenant, "api", max_running=1)
    with pytest.raises(errors.InvalidArgument, match="bounds nothing"):
        await update_limit(tenant, "api", max_running=0)
    with pytest.raises(errors.ResourceVersionMismatch):
        request = limit_service_pb2.DeleteLimitRequest(name=limit_name("api"), resource_version=7)
        await tenant.limits.DeleteLimit(request)


async def test_limits_are_listed_and_audited(tenant: Caller) -> None:
    for limit_id in ("b", "a", "c"):
        await create_limit(tenant, limit_id, max_running=1, description=limit_id)
    await update_limit(tenant, "b", max_running=2)
    await delete_limit(tenant, "c")
    listed: list[limit_pb2.Limit] = []
    token = ""
    while True:
        request = limit_service_pb2.ListLimitsRequest(parent=PARENT, page_size=1, page_token=token)
        page = await tenant.limits.ListLimits(request)
        listed.extend(page.limits)
        token = page.next_page_token
        if not token:
            break
    assert [(one.name, one.max_running) for one in listed] == [(limit_name("a"), 1), (limit_name("b"), 2)]
    found = await tenant.tasks.ListAuditEvents(
        task_service_pb2.ListAuditEventsRequest(parent=PARENT, filter='event_type = "limit.*"')
    )
    words = {(event.event_type, event.resource) for event in found.audit_events}
    assert ("limit.updated", limit_name("b")) in words
    assert ("limit.deleted", limit_name("c")) in words
    assert ("limit.created", limit_name("a")) in words


async def test_a_watch_shows_a_task_that_waits_for_a_limit_and_its_admission(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=1)
    await submit(tenant, "a", limits=["api"])
    call = tenant.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent=PARENT))
    seen: list[tuple[str, int]] = []
    async with asyncio.timeout(60):
        await call.read()
        await submit(tenant, "b", limits=["api"])
        await taskdb.succeed(name("a"))
        while len(seen) < 2:
            events = [one for one in (await call.read()).events if one.task.metadata.id == "b"]
            seen += [(event.event_type, event.task.status.pending_reason) for event in events]
    call.cancel()
    assert seen == [("task.created", LIMITED), ("task.queued", QUEUED)]


async def test_doctor_recounts_limits_and_repairs_tasks_that_wait_wrongly(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await create_limit(tenant, "api", max_running=3, max_running_per_key=2)
    await submit(tenant, "a", "b", "waits", limits=["api:k"])
    checks = [next(one for one in CHECKS if one.name == name) for name in ("limited-tasks", "limits")]
    for check in checks:
        assert (await run_check(taskdb.pool, check)).count == 0
    context = RepairContext(taskdb.pool, lambda _: None, SYSTEM, no_job)
    for damage in (
        "UPDATE limits SET held = 3",
        "UPDATE limit_keys SET held = 1",
        "DELETE FROM limit_keys",
        "INSERT INTO limit_keys VALUES (1, 'default', 'api', 'nobody')",
    ):
        await taskdb.execute(damage)
        recounted = await run_check(taskdb.pool, checks[1], context)
        assert (recounted.count, recounted.repaired, recounted.remaining) == (1, 1, 0), damage
        assert (await get_limit(tenant, "api")).running_units == 2
        assert await recount(taskdb), damage
    await taskdb.execute("UPDATE task_limits SET wait_time = NULL WHERE task_id = 'waits'")
    await taskdb.execute("UPDATE task_limits SET wait_time = now() WHERE task_id = 'a'")
    repaired = await run_check(taskdb.pool, checks[0], context)
    assert (repaired.count, repaired.remaining) == (2, 0)
    await taskdb.succeed(name("a"))
    await sweep(taskdb)
    assert await reasons(tenant, "waits") == [QUEUED]
    assert await recount(taskdb)


async def no_job(job: str) -> None:
    """No job runs here."""


async def test_tasks_without_limits_cost_no_statement(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_limit(tenant, "api", max_running=1)
    seen: list[str] = []
    for method in ("fetch", "fetch_row", "execute"):
        original = getattr(Tx, method)

        async def record(self: Tx, sql: str, *args: Any, original: Any = original, **options: Any) -> Any:
            seen.append(sql)
            return await original(self, sql, *args, **options)

        monkeypatch.setattr(Tx, method, record)
    await tenant.create(task_id="plain")
    await tenant.create(task_id="slot", slot="s")
    runner, _ = await yard.hello(lease_seconds=300)
    for assignment in (await yard.claim(runner)).assignments:
        await yard.report(runner, started(assignment), succeeded(assignment))
    await tenant.create(task_id="fails")
    await taskdb.fail(name("fails"))
    words = ("task_limits", "limit_keys", "limit_starts", "FROM limits", "UPDATE limits", "SET limited")
    assert seen and not [sql for sql in seen if any(word in sql for word in words)]


async def test_limits_of_a_task_go_with_it(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create_limit(tenant, "api", max_running=5)
    await submit(tenant, "archived", "deleted", limits=["api"])
    for task_id in ("archived", "deleted"):
        await taskdb.succeed(name(task_id))
    await tenant.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name("deleted")))
    async with taskdb.pool.reading() as tx:
        found, _ = await archive.find_ended(tx, ("", ""), 10, timedelta(microseconds=1))
    assert await taskdb.pool.run(lambda tx: archive.move(tx, found)) == 1
    assert await taskdb.rows("SELECT count(*) FROM task_limits") == [(0,)]


async def test_a_tenant_is_deleted_with_its_limits(
    tenant: Caller, taskdb: RunningTaskDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard_taskdb.storage.tenant.removal.TTL", timedelta(0))
    await create_limit(tenant, "api", max_running=1, starts=rate(5, 60))
    await submit(tenant, "a", "b", limits=["api:k"])
    await TenantRemoval(taskdb.pool).empty("default", lambda _: None)
    for table in ("limits", "limit_keys", "limit_starts", "task_limits"):
        assert await taskdb.rows(f"SELECT count(*) FROM {table}") == [(0,)]
