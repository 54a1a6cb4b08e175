"""Groups: made by their first task, counted, closed, cancelled, waited for, and complete once."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from typing import Any

import pytest

from services.taskdb.tests.child_calls import child
from services.taskdb.tests.child_calls import create as create_children
from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.test_children import claimed
from services.taskdb.tests.yard import Yard, duration, failed, started, succeeded
from taskyard import errors
from taskyard.v1 import common_pb2, group_pb2, group_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.group import counts, groups
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant.removal import TenantRemoval
from taskyard_taskdb.sweep.groups import GroupSweep
from taskyard_taskdb.watch import hub

S = group_service_pb2
OPEN, CLOSED = group_pb2.GROUP_STATE_OPEN, group_pb2.GROUP_STATE_CLOSED
COMPLETE = group_pb2.GROUP_STATE_COMPLETE


class Leads:
    """A leadership that this test holds, or loses after a number of transactions."""

    def __init__(self, lost_after: float = math.inf) -> None:
        self.left = lost_after

    async def check(self, tx: Tx) -> None:
        self.left -= 1
        if self.left < 0:
            raise LeadershipLost("another replica leads")


@pytest.fixture
async def taskdb(quiet: RunningTaskDb) -> RunningTaskDb:
    """A taskdb whose sweep runs when the test says so."""
    return quiet


def name(task_id: str) -> str:
    return f"tenants/default/tasks/{task_id}"


def group_name(group_id: str) -> str:
    return f"tenants/default/groups/{group_id}"


async def sweep(taskdb: RunningTaskDb, page: int = 10_000) -> None:
    leads: Any = Leads()
    await GroupSweep(taskdb.pool, taskdb.taskdb.bus.publish, page).run(leads)


async def get(caller: Caller, group_id: str) -> group_pb2.Group:
    found: group_pb2.Group = (
        await caller.groups.GetGroup(S.GetGroupRequest(name=group_name(group_id)))
    ).group
    return found


def figures(group: group_pb2.Group) -> tuple[int, int, int, int, int]:
    return (
        group.state,
        group.live_count,
        group.succeeded_count,
        group.not_succeeded_count,
        group.completion_count,
    )


async def act(caller: Caller, rpc: str, group_id: str, **fields: Any) -> Any:
    request = getattr(S, f"{rpc}Request")(name=group_name(group_id), **fields)
    return await getattr(caller.groups, rpc)(request)


async def retry(caller: Caller, task_id: str, **fields: Any) -> None:
    await caller.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name(task_id), **fields))


async def completions(taskdb: RunningTaskDb) -> int:
    return int((await taskdb.rows("SELECT count(*) FROM changes WHERE event = 123"))[0][0])


async def test_the_first_task_makes_a_group_that_counts(tenant: Caller, taskdb: RunningTaskDb) -> None:
    made = await tenant.create(task_id="a", group="g")
    assert made.metadata.group == "g"
    for task_id in ("b", "c"):
        await tenant.create(task_id=task_id, group="g")
    # Also before the leader has added anything.
    assert figures(await get(tenant, "g")) == (OPEN, 3, 0, 0, 0)
    await taskdb.succeed(name("a"))
    await taskdb.fail(name("b"))
    for _ in range(2):
        assert figures(await get(tenant, "g")) == (OPEN, 1, 1, 1, 0)
        await sweep(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM group_deltas") == [(0,)]
    assert (await tenant.get(name("c"))).metadata.group == "g"
    listed = await tenant.tasks.ListTasks(
        task_service_pb2.ListTasksRequest(parent="tenants/default", filter='metadata.group = "g"')
    )
    assert len(listed.tasks) == 3


async def test_a_task_without_a_group_writes_nothing_about_groups(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await tenant.create(task_id="plain")
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert await taskdb.rows("SELECT plain FROM leases") == [(True,)]
    await yard.report(runner, started(assignment), succeeded(assignment))
    stored = "SELECT (SELECT count(*) FROM groups), (SELECT is_called FROM group_deltas_id_seq)"
    assert await taskdb.rows(stored) == [(0, False)]


async def test_outcomes_that_arrive_together_leave_one_row_per_group(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await tenant.tasks.BatchCreateTasks(
        task_service_pb2.BatchCreateTasksRequest(
            parent="tenants/default",
            requests=[new_task(group=f"g{n % 2}") for n in range(20)],
            mode=common_pb2.BATCH_MODE_ATOMIC,
        )
    )
    assert await taskdb.rows("SELECT group_id, live FROM group_deltas ORDER BY 1") == [("g0", 10), ("g1", 10)]
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    await yard.report(runner, *(report(one) for one in assignments for report in (started, succeeded)))
    rows = await taskdb.rows("SELECT group_id, live, succeeded FROM group_deltas WHERE live < 0 ORDER BY 1")
    assert rows == [("g0", -10, 10), ("g1", -10, 10)]


@pytest.mark.covers("CreateTask", "GROUP_CLOSED")
async def test_a_closed_group_takes_no_more_tasks_and_becomes_complete(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a", group="g")
    closed = (await act(tenant, "CloseGroup", "g")).group
    assert closed.state == CLOSED and closed.HasField("close_time")
    with pytest.raises(errors.GroupClosed, match="name another in") as refused:
        await tenant.create(task_id="b", group="g")
    assert refused.value.subject == group_name("g")
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(1,)]
    await sweep(taskdb)
    assert (await get(tenant, "g")).state == CLOSED
    await taskdb.succeed(name("a"))
    await sweep(taskdb)
    group = await get(tenant, "g")
    assert figures(group) == (COMPLETE, 0, 1, 0, 1) and group.HasField("complete_time")
    await act(tenant, "CloseGroup", "g")
    await sweep(taskdb)
    assert await completions(taskdb) == 1


@pytest.mark.covers("BatchCreateTasks", "GROUP_CLOSED")
async def test_a_refused_task_of_a_batch_leaves_no_group(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await act(tenant, "CloseGroup", "g")
    items = [new_task(task_id="x", group="new"), new_task(task_id="y", group="g")]
    with pytest.raises(errors.GroupClosed) as refused:
        await tenant.tasks.BatchCreateTasks(
            task_service_pb2.BatchCreateTasksRequest(
                parent="tenants/default", requests=items, mode=common_pb2.BATCH_MODE_ATOMIC
            )
        )
    assert refused.value.extra["index"] == "1"
    with pytest.raises(errors.NotFound):
        await get(tenant, "new")


@pytest.mark.parametrize("group_id", ["a/b", "..", "x" * 266])
async def test_a_bad_group_names_its_field(tenant: Caller, group_id: str) -> None:
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.create(group=group_id)
    assert refused.value.violations[0].field == "task.metadata.group"


async def test_a_group_is_not_complete_while_a_delta_is_left(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await taskdb.succeed(name("a"))
    await tenant.create(task_id="b", group="g")
    await act(tenant, "CloseGroup", "g")
    # After two pages no task is counted as live, but the third adds one.
    pages = [await taskdb.pool.run(lambda tx: counts.fold(tx, 1)) for _ in range(3)]
    assert not any(page.completed for page in pages)
    await taskdb.succeed(name("b"))
    assert len((await taskdb.pool.run(lambda tx: counts.fold(tx, 1))).completed) == 1


async def test_a_leader_that_lost_its_office_completes_nothing(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await act(tenant, "CloseGroup", "g")
    await taskdb.succeed(name("a"))
    # The first transaction looks for tasks to cancel, the second one adds up.
    for transactions in (0, 1):
        leads: Any = Leads(transactions)
        with pytest.raises(LeadershipLost):
            await GroupSweep(taskdb.pool, lambda notice: None).run(leads)
        assert await completions(taskdb) == 0
    await asyncio.gather(*(sweep(taskdb) for _ in range(4)))
    assert await completions(taskdb) == 1


async def test_closing_waits_for_a_task_that_is_joining(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    async with taskdb.pool.transaction() as tx:
        # What the creation of a second task holds until it commits.
        await tx.execute("SELECT FROM groups WHERE group_id = 'g' FOR KEY SHARE", prepare=False)
        await asyncio.wait_for(tenant.create(task_id="b", group="g"), 30)
        await asyncio.wait_for(sweep(taskdb), 30)
        closing = asyncio.create_task(act(tenant, "CloseGroup", "g"))
        done, _ = await asyncio.wait({closing}, timeout=0.3)
        assert not done
    await asyncio.wait_for(closing, 30)
    assert figures(await get(tenant, "g")) == (CLOSED, 2, 0, 0, 0)


async def test_a_retry_of_a_member_opens_the_counts_and_the_group_completes_again(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a", group="g")
    await tenant.create(task_id="b", group="g")
    await act(tenant, "CloseGroup", "g")
    await taskdb.succeed(name("a"))
    await taskdb.fail(name("b"))
    await sweep(taskdb)
    assert figures(await get(tenant, "g")) == (COMPLETE, 0, 1, 1, 1)
    await retry(tenant, "b")
    assert figures(await get(tenant, "g")) == (CLOSED, 1, 1, 0, 1)
    await sweep(taskdb)
    assert figures(await get(tenant, "g")) == (CLOSED, 1, 1, 0, 1)
    await taskdb.succeed(name("b"))
    await sweep(taskdb)
    assert figures(await get(tenant, "g")) == (COMPLETE, 0, 2, 0, 2)
    # A retry and its outcome between two sweeps are a completion of their own as well.
    await taskdb.execute("UPDATE tasks SET phase = 13, error_code = 'X', error = '' WHERE task_id = 'b'")
    await taskdb.execute("UPDATE groups SET not_succeeded_count = 1, succeeded_count = 1")
    await retry(tenant, "b")
    await taskdb.succeed(name("b"))
    await sweep(taskdb)
    assert figures(await get(tenant, "g")) == (COMPLETE, 0, 2, 0, 3)
    assert await completions(taskdb) == 3


async def test_cancel_ends_all_live_tasks_page_by_page(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "CANCEL_PAGE", 3)
    for n in range(8):
        await tenant.create(task_id=f"t{n}", group="g")
    await tenant.create(task_id="other", group="h")
    await taskdb.succeed(name("t0"))
    await taskdb.start(name("t1"))
    cancelled = (await act(tenant, "CancelGroup", "g", reason="enough")).group
    assert cancelled.state == CLOSED and cancelled.HasField("cancel_time")
    for _ in range(3):
        await sweep(taskdb)
    phases = dict(await taskdb.rows("SELECT task_id, phase FROM tasks"))
    assert {phases[f"t{n}"] for n in range(2, 8)} == {task_pb2.TASK_PHASE_CANCELLED}
    assert phases["t0"] == task_pb2.TASK_PHASE_SUCCEEDED
    assert phases["other"] == task_pb2.TASK_PHASE_PENDING
    running = await tenant.get(name("t1"))
    assert running.status.requested_action.action == task_pb2.TASK_ACTION_CANCEL
    assert running.status.requested_action.reason == "enough"
    group = await get(tenant, "g")
    assert (group.live_count, group.succeeded_count, group.not_succeeded_count) == (1, 1, 6)
    await taskdb.end(name("t1"))
    await sweep(taskdb)
    assert (await get(tenant, "g")).state == COMPLETE


async def test_wait_returns_when_the_group_is_complete(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    early = await act(tenant, "WaitGroup", "g", timeout=duration(0))
    assert not early.satisfied and early.group.live_count == 1
    waiting = asyncio.create_task(act(tenant, "WaitGroup", "g", timeout=duration(60)))
    await act(tenant, "CloseGroup", "g")
    await taskdb.succeed(name("a"))
    await sweep(taskdb)
    late = await asyncio.wait_for(waiting, 30)
    assert late.satisfied and late.group.state == COMPLETE


@pytest.mark.covers("CreateGroup", "ALREADY_EXISTS")
@pytest.mark.covers("DeleteGroup", "NOT_EMPTY")
async def test_groups_are_created_listed_and_deleted(tenant: Caller, taskdb: RunningTaskDb) -> None:
    request = S.CreateGroupRequest(parent="tenants/default", group_id="made", request_id="r")
    made = (await tenant.groups.CreateGroup(request)).group
    assert (await tenant.groups.CreateGroup(request)).group.uid == made.uid
    with pytest.raises(errors.AlreadyExists):
        await tenant.groups.CreateGroup(S.CreateGroupRequest(parent="tenants/default", group_id="made"))
    await tenant.create(task_id="a", group="g")
    await act(tenant, "CloseGroup", "made")
    await sweep(taskdb)
    assert figures(await get(tenant, "made")) == (COMPLETE, 0, 0, 0, 1)

    async def listed(filter: str = "", **fields: Any) -> list[str]:
        response = await tenant.groups.ListGroups(
            S.ListGroupsRequest(parent="tenants/default", filter=filter, **fields)
        )
        return [group.name.rpartition("/")[2] for group in response.groups]

    assert await listed() == ["g", "made"]
    assert await listed("state = COMPLETE") == ["made"]
    assert await listed('id = "g*"') == ["g"]
    assert await listed(page_size=1) == ["g"]
    with pytest.raises(errors.NotEmpty, match="1 live"):
        await act(tenant, "DeleteGroup", "g")
    await taskdb.succeed(name("a"))
    for group_id in ("g", "made"):
        await act(tenant, "DeleteGroup", group_id)
    with pytest.raises(errors.NotFound):
        await act(tenant, "DeleteGroup", "g")
    # The task stays; what its retry would add has no group to go to.
    assert (await tenant.get(name("a"))).metadata.group == "g"
    await sweep(taskdb)
    events = await tenant.tasks.ListAuditEvents(
        task_service_pb2.ListAuditEventsRequest(
            parent="tenants/default", filter=f'resource = "{group_name("made")}"'
        )
    )
    assert [event.event_type for event in events.audit_events] == [
        "group.deleted",
        "group.completed",
        "group.closed",
        "group.created",
    ]


async def test_the_children_of_a_run_form_a_group_that_closes_with_their_parent(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    runner, parent = await claimed(yard)
    parent_id = parent.lease.task.rpartition("/")[2]
    assert await taskdb.rows("SELECT plain FROM leases") == [(True,)]
    names = await create_children(
        yard, runner.id, parent.lease, child("a"), child("b"), child("c", group="own")
    )
    group_id = f"{parent_id}.children"
    group = await get(tenant, group_id)
    assert figures(group) == (OPEN, 2, 0, 0, 0) and group.parent_task == parent.lease.task
    assert (await yard.task(names[0])).metadata.group == group_id
    assert figures(await get(tenant, "own")) == (OPEN, 1, 0, 0, 0)
    for task in names[:2]:
        await taskdb.succeed(task)
    await sweep(taskdb)
    assert figures(await get(tenant, group_id)) == (OPEN, 0, 2, 0, 0)
    await yard.report(runner, started(parent), failed(parent, permanent=True))
    await sweep(taskdb)
    assert figures(await get(tenant, group_id)) == (COMPLETE, 0, 2, 0, 1)
    # A retry of the parent may create further children.
    await retry(tenant, parent_id)
    await sweep(taskdb)
    assert (await get(tenant, group_id)).state == OPEN
    claims = (await yard.claim(runner)).assignments
    (again,) = [one for one in claims if one.lease.task == parent.lease.task]
    await create_children(yard, runner.id, again.lease, child("d"))
    await yard.report(runner, started(again), succeeded(again))
    await sweep(taskdb)
    assert figures(await get(tenant, group_id))[:2] == (CLOSED, 1)


@pytest.mark.covers("GetGroup", "NOT_FOUND")
@pytest.mark.covers("CloseGroup", "NOT_FOUND")
@pytest.mark.covers("CancelGroup", "NOT_FOUND")
@pytest.mark.covers("WaitGroup", "NOT_FOUND")
@pytest.mark.covers("DeleteGroup", "NOT_FOUND")
async def test_groups_of_other_tenants_are_not_found(taskdb: RunningTaskDb, tenant: Caller) -> None:
    await taskdb.add_tenant("acme")
    await tenant.create(task_id="a", group="g")
    other = await taskdb.caller(tenant_id="acme")
    for rpc in ("GetGroup", "CloseGroup", "CancelGroup", "WaitGroup", "DeleteGroup"):
        with pytest.raises(errors.NotFound):
            await act(other, rpc, "g")


@pytest.mark.covers("CreateGroup", "NOT_FOUND")
@pytest.mark.covers("CreateGroup", "TENANT_SUSPENDED")
@pytest.mark.covers("CreateGroup", "FIELD_INVALID")
@pytest.mark.covers("ListGroups", "FILTER_INVALID")
@pytest.mark.covers("ListGroups", "PAGE_TOKEN_INVALID")
async def test_bad_requests_are_refused(taskdb: RunningTaskDb, tenant: Caller, admin: Caller) -> None:
    await taskdb.add_tenant("held", suspended=True)
    with pytest.raises(errors.NotFound):
        await admin.groups.CreateGroup(S.CreateGroupRequest(parent="tenants/nobody", group_id="g"))
    with pytest.raises(errors.TenantSuspended):
        await admin.groups.CreateGroup(S.CreateGroupRequest(parent="tenants/held", group_id="g"))
    callback = task_pb2.Callback(url="http://127.0.0.1/")
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.groups.CreateGroup(
            S.CreateGroupRequest(
                parent="tenants/default", group_id="g", group=group_pb2.Group(callback=callback)
            )
        )
    assert refused.value.violations[0].field == "group.callback.url"
    with pytest.raises(errors.FilterInvalid):
        await tenant.groups.ListGroups(S.ListGroupsRequest(parent="tenants/default", filter="color = red"))
    with pytest.raises(errors.PageTokenInvalid):
        await tenant.groups.ListGroups(S.ListGroupsRequest(parent="tenants/default", page_token="x"))
    assert await taskdb.rows("SELECT count(*) FROM groups") == [(0,)]


@pytest.mark.covers("WaitGroup", "STREAM_LIMIT")
async def test_a_wait_counts_as_a_stream(
    taskdb: RunningTaskDb, tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tenant.create(task_id="a", group="g")
    monkeypatch.setattr(hub, "STREAMS_PER_TENANT", 0)
    with pytest.raises(errors.StreamLimit):
        await act(tenant, "WaitGroup", "g", timeout=duration(1))


async def test_the_doctor_recounts_groups_and_repairs_them(tenant: Caller, taskdb: RunningTaskDb) -> None:
    check = next(check for check in CHECKS if check.name == "groups")
    for task_id in ("a", "b", "c"):
        await tenant.create(task_id=task_id, group="g")
    await act(tenant, "CloseGroup", "g")
    await taskdb.succeed(name("a"))
    assert (await run_check(taskdb.pool, check)).count == 0
    await sweep(taskdb)
    await taskdb.fail(name("b"))
    assert (await run_check(taskdb.pool, check)).count == 0
    await taskdb.execute("UPDATE groups SET live_count = 7")
    context = RepairContext(taskdb.pool, taskdb.taskdb.bus.publish, SYSTEM, no_job)
    found = await run_check(taskdb.pool, check, context)
    assert (found.count, found.repaired, found.examples) == (1, 1, (group_name("g"),))
    assert figures(await get(tenant, "g")) == (CLOSED, 1, 1, 1, 0)
    await taskdb.succeed(name("c"))
    await sweep(taskdb)
    assert figures(await get(tenant, "g")) == (COMPLETE, 0, 2, 1, 1)


async def test_the_doctor_closes_groups_whose_parent_has_ended(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    check = next(check for check in CHECKS if check.name == "groups")
    runner, parent = await claimed(yard)
    (only,) = await create_children(yard, runner.id, parent.lease, child("a"))
    assert (await run_check(taskdb.pool, check)).count == 0
    await yard.report(runner, started(parent), succeeded(parent))
    assert (await run_check(taskdb.pool, check)).count == 0
    await taskdb.execute("DELETE FROM group_deltas WHERE closes")
    context = RepairContext(taskdb.pool, taskdb.taskdb.bus.publish, SYSTEM, no_job)
    assert (await run_check(taskdb.pool, check, context)).repaired == 1
    await taskdb.succeed(only)
    await sweep(taskdb)
    group_id = (await yard.task(only)).metadata.group
    assert (await get(tenant, group_id)).state == COMPLETE


async def no_job(name: str) -> None:
    raise AssertionError("no job is needed")


async def test_a_removed_tenant_leaves_no_groups(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await TenantRemoval(taskdb.pool).empty("default", taskdb.taskdb.bus.publish)
    rows = await taskdb.rows("SELECT (SELECT count(*) FROM groups) + (SELECT count(*) FROM group_deltas)")
    assert rows == [(0,)]


async def test_archived_tasks_stay_counted_and_old_groups_go(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await act(tenant, "CloseGroup", "g")
    await taskdb.succeed(name("a"))
    await sweep(taskdb)
    month = timedelta(days=30)
    assert await taskdb.pool.run(lambda tx: groups.delete_old(tx, timedelta(0), 10)) == 0
    await taskdb.execute(
        "WITH gone AS (DELETE FROM tasks RETURNING *) INSERT INTO tasks_archive SELECT * FROM gone"
    )
    check = next(check for check in CHECKS if check.name == "groups")
    assert (await run_check(taskdb.pool, check)).count == 0
    assert (await tenant.get(name("a"))).metadata.group == "g"
    assert await taskdb.pool.run(lambda tx: groups.delete_old(tx, month, 10)) == 0
    assert figures(await get(tenant, "g")) == (COMPLETE, 0, 1, 0, 1)
    assert await taskdb.pool.run(lambda tx: groups.delete_old(tx, timedelta(0), 10)) == 1


async def test_a_watch_of_a_group_delivers_its_tasks(tenant: Caller, taskdb: RunningTaskDb) -> None:
    call = tenant.tasks.WatchTasks(
        task_service_pb2.WatchTasksRequest(parent="tenants/default", filter='metadata.group = "g"')
    )
    await asyncio.wait_for(call.read(), 30)
    await tenant.create(task_id="other")
    await tenant.create(task_id="mine", group="g")
    events: list[Any] = []
    while not events:
        events += (await asyncio.wait_for(call.read(), 30)).events
    call.cancel()
    assert {event.task.metadata.id for event in events} == {"mine"}
