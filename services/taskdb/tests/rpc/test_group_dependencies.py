"""spec.after with groups: released when the group is complete, and never left waiting."""

from __future__ import annotations

import pytest

from services.taskdb.tests.child_calls import child
from services.taskdb.tests.child_calls import create as create_children
from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.test_children import claimed
from services.taskdb.tests.rpc.test_dependencies import (
    BLOCKED,
    CANCELLED,
    ENDED,
    NONE,
    NOT_SUCCEEDED,
    PENDING,
    QUEUED,
    after,
    batch,
    name,
    nothing_stored,
    state,
)
from services.taskdb.tests.rpc.test_dependencies import sweep as sweep_dependencies
from services.taskdb.tests.rpc.test_groups import COMPLETE, OPEN, act, get, group_name, no_job, retry, sweep
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard import errors
from taskyard.v1 import lease_service_pb2, task_pb2
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.doctor.repairs import RepairContext

Dependency = task_pb2.Dependency


@pytest.fixture
async def taskdb(quiet: RunningTaskDb) -> RunningTaskDb:
    """A taskdb whose sweeps run when the test says so."""
    return quiet


def after_group(*groups: str, when: int = 0) -> list[Dependency]:
    return [Dependency(group=group, when=when) for group in groups]  # type: ignore[arg-type]


async def settle(taskdb: RunningTaskDb) -> None:
    await sweep(taskdb)
    await sweep_dependencies(taskdb)


@pytest.mark.parametrize(
    ("when", "fails", "released"),
    [(0, False, True), (0, True, False), (ENDED, True, True), (NOT_SUCCEEDED, True, True),
     (NOT_SUCCEEDED, False, False)],
)  # fmt: skip
async def test_a_task_waits_for_the_completion_of_a_group(
    tenant: Caller, taskdb: RunningTaskDb, when: int, fails: bool, released: bool
) -> None:
    for task_id in ("a", "b"):
        await tenant.create(task_id=task_id, group="g")
    made = await tenant.create(task_id="join", after=after_group("g", when=when))
    assert (made.status.phase, made.status.pending_reason) == (PENDING, BLOCKED)
    assert [entry.group for entry in (await tenant.get(name("join"))).spec.after] == [group_name("g")]
    # To wait for a group closes it, so that nothing waits for ever.
    with pytest.raises(errors.GroupClosed):
        await tenant.create(task_id="late", group="g")
    await taskdb.succeed(name("a"))
    await settle(taskdb)
    assert await state(tenant, "join") == (PENDING, BLOCKED)
    await (taskdb.fail if fails else taskdb.succeed)(name("b"))
    await settle(taskdb)
    assert (await get(tenant, "g")).state == COMPLETE
    if released:
        assert await state(tenant, "join") == (PENDING, QUEUED)
    else:
        task = await tenant.get(name("join"))
        assert (task.status.phase, task.status.error.code) == (CANCELLED, "DEPENDENCY_FAILED")
        assert group_name("g") in task.status.error.message
    assert await taskdb.rows("SELECT count(*) FROM dependency_backlog") == [(0,)]


async def test_a_complete_group_is_judged_at_the_creation(tenant: Caller, taskdb: RunningTaskDb) -> None:
    for group in ("good", "bad"):
        await tenant.create(task_id=group, group=group)
        await act(tenant, "CloseGroup", group)
    await taskdb.succeed(name("good"))
    await taskdb.fail(name("bad"))
    await settle(taskdb)
    made = await tenant.create(task_id="ready", after=after_group("good"))
    assert made.status.pending_reason == QUEUED
    await tenant.create(task_id="lost", after=after_group("good", group_name("bad")))
    await settle(taskdb)
    assert await state(tenant, "lost") == (CANCELLED, NONE)


async def test_many_dependents_of_a_group_are_released_in_pages(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a", group="g")
    items = [new_task(task_id=f"d{n:03}", after=after_group("g")) for n in range(150)]
    await tenant.tasks.BatchCreateTasks(batch(items))
    await taskdb.succeed(name("a"))
    await settle(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM queue") == [(150,)]


async def test_an_atomic_batch_fans_out_and_in(tenant: Caller, taskdb: RunningTaskDb) -> None:
    items = [
        new_task(task_id="join", after=after_group("parts")),
        *(new_task(task_id=f"part{n}", group="parts", after=after("start")) for n in range(3)),
        new_task(task_id="start"),
    ]
    await tenant.tasks.BatchCreateTasks(batch(items))
    for task_id in ("start", "part0", "part1", "part2"):
        assert await state(tenant, task_id) == (PENDING, QUEUED)
        assert await state(tenant, "join") == (PENDING, BLOCKED)
        await taskdb.succeed(name(task_id))
        await settle(taskdb)
    assert await state(tenant, "join") == (PENDING, QUEUED)


async def test_a_cycle_through_groups_is_refused(tenant: Caller, taskdb: RunningTaskDb) -> None:
    with pytest.raises(errors.FieldInvalid, match="groups/g -> me -> groups/g"):
        await tenant.create(task_id="me", group="g", after=after_group("g"))
    items = [
        new_task(task_id="x", group="g", after=after_group("h")),
        new_task(task_id="y", group="h", after=after("z")),
        new_task(task_id="z", after=after_group("g")),
    ]
    with pytest.raises(errors.FieldInvalid, match="wait for each other"):
        await tenant.tasks.BatchCreateTasks(batch(items))
    assert await nothing_stored(taskdb)
    assert await taskdb.rows("SELECT (SELECT count(*) FROM groups) + (SELECT count(*) FROM tasks)") == [(0,)]


@pytest.mark.parametrize(
    ("entries", "field", "words"),
    [
        ([Dependency(group="a/b")], "task.spec.after[0].group", "id of a group"),
        ([Dependency(group="g", task="t")], "task.spec.after[0]", "both"),
        ([Dependency(group="g"), Dependency(group=group_name("g"))], "task.spec.after[1].group", "second"),
        ([Dependency(group="g", alias="x")], "task.spec.after[0].alias", "no result"),
    ],
)
async def test_bad_entries_name_their_field(
    tenant: Caller, entries: list[Dependency], field: str, words: str
) -> None:
    await tenant.create(task_id="a", group="g")
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.create(task_id="c", after=entries)
    assert refused.value.violations[0].field == field
    assert words in str(refused.value)
    assert (await get(tenant, "g")).state == OPEN


async def test_unknown_and_foreign_groups_are_not_found(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await taskdb.add_tenant("acme")
    for group in ("none", "tenants/acme/groups/x"):
        with pytest.raises(errors.NotFound) as refused:
            await tenant.create(task_id="b", after=after_group(group))
        assert refused.value.name == (group_name("none") if group == "none" else group)


async def test_a_cascading_retry_of_a_member_revives_what_waited_for_the_group(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a", group="g")
    await tenant.create(task_id="join", after=after_group("g"))
    await taskdb.fail(name("a"))
    await settle(taskdb)
    assert await state(tenant, "join") == (CANCELLED, NONE)
    with pytest.raises(errors.PhaseConflict, match=group_name("g")):
        await retry(tenant, "join")
    await retry(tenant, "a", cascade=True)
    await sweep_dependencies(taskdb)
    assert await state(tenant, "join") == (PENDING, BLOCKED)
    await taskdb.succeed(name("a"))
    await settle(taskdb)
    assert await state(tenant, "join") == (PENDING, QUEUED)


async def test_a_group_of_children_is_awaited_until_its_parent_ends(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    runner, parent = await claimed(yard)
    (first,) = await create_children(yard, runner.id, parent.lease, child("a"))
    group_id = (await yard.task(first)).metadata.group
    await tenant.create(task_id="join", after=after_group(group_id))
    (second,) = await create_children(yard, runner.id, parent.lease, child("b"))
    waits = child("c")
    waits.task.spec.after.add(task=name("join"))
    with pytest.raises(errors.GroupClosed, match="tasks wait for group"):
        await create_children(yard, runner.id, parent.lease, waits)
    for one in (first, second):
        await taskdb.succeed(one)
    await settle(taskdb)
    assert await state(tenant, "join") == (PENDING, BLOCKED)
    await yard.report(runner, started(parent), succeeded(parent))
    await settle(taskdb)
    assert await state(tenant, "join") == (PENDING, QUEUED)


async def test_the_doctor_releases_what_waits_for_a_complete_group(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    check = next(check for check in CHECKS if check.name == "dependencies")
    await tenant.create(task_id="a", group="g")
    await tenant.create(task_id="join", after=after_group("g"))
    await taskdb.succeed(name("a"))
    assert (await run_check(taskdb.pool, check)).count == 0
    await sweep(taskdb)
    assert (await run_check(taskdb.pool, check)).count == 0
    await taskdb.execute("DELETE FROM dependency_backlog")
    context = RepairContext(taskdb.pool, taskdb.taskdb.bus.publish, SYSTEM, no_job)
    assert (await run_check(taskdb.pool, check, context)).repaired == 1
    await sweep_dependencies(taskdb)
    assert await state(tenant, "join") == (PENDING, QUEUED)


async def test_explain_names_the_group(tenant: Caller, taskdb: RunningTaskDb, yard: Yard) -> None:
    await tenant.create(task_id="a", group="g")
    await tenant.create(task_id="join", after=after_group("g"))
    read = yard.scheduler.leases.ReadExplainFacts
    facts = await read(lease_service_pb2.ReadExplainFactsRequest(tenant="default", task_id="join"))
    assert [(one.task, one.phase) for one in facts.dependencies] == [(group_name("g"), PENDING)]
    await taskdb.fail(name("a"))
    await sweep(taskdb)
    spec = new_task(after=after_group("g")).task.spec
    facts = await read(lease_service_pb2.ReadExplainFactsRequest(tenant="default", spec=spec))
    failed = task_pb2.TASK_PHASE_FAILED
    assert [(one.task, one.phase) for one in facts.dependencies] == [(group_name("g"), failed)]


async def test_an_awaited_group_is_not_deleted(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", group="g")
    await tenant.create(task_id="join", after=after_group("g"))
    await taskdb.succeed(name("a"))
    with pytest.raises(errors.NotEmpty, match="wait for it"):
        await act(tenant, "DeleteGroup", "g")
    await settle(taskdb)
    await act(tenant, "DeleteGroup", "g")
    assert await state(tenant, "join") == (PENDING, QUEUED)
