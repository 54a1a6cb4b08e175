"""spec.after: creates that wait, outcomes that release them, and conditions that can no longer hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import grpc.aio
import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, new_task, run_taskdb
from services.taskdb.tests.yard import Yard, duration, started, succeeded
from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.dependency import backlog
from taskyard_taskdb.storage.doctor.checks import CHECKS, run_check
from taskyard_taskdb.storage.doctor.repairs import RepairContext
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.tenant.removal import TenantRemoval

Dependency = task_pb2.Dependency
PENDING, PAUSED = task_pb2.TASK_PHASE_PENDING, task_pb2.TASK_PHASE_PAUSED
CANCELLED, SUCCEEDED = task_pb2.TASK_PHASE_CANCELLED, task_pb2.TASK_PHASE_SUCCEEDED
NONE, QUEUED = task_pb2.PENDING_REASON_UNSPECIFIED, task_pb2.PENDING_REASON_QUEUED
DELAYED, BLOCKED = task_pb2.PENDING_REASON_DELAYED, task_pb2.PENDING_REASON_BLOCKED
SLOT_BUSY = task_pb2.PENDING_REASON_SLOT_BUSY
ENDED = task_pb2.DEPENDENCY_CONDITION_ENDED
NOT_SUCCEEDED = task_pb2.DEPENDENCY_CONDITION_NOT_SUCCEEDED


@pytest.fixture
async def taskdb(quiet: RunningTaskDb) -> RunningTaskDb:
    """A taskdb whose sweep runs when the test says so."""
    return quiet


def name(task_id: str) -> str:
    return f"tenants/default/tasks/{task_id}"


def after(*tasks: str, when: Any = 0) -> list[Dependency]:
    return [Dependency(task=task, when=when) for task in tasks]


async def state(caller: Caller, task_id: str) -> tuple[int, int]:
    status = (await caller.get(name(task_id))).status
    return status.phase, status.pending_reason


async def sweep(taskdb: RunningTaskDb) -> int:
    return (await taskdb.pool.run(backlog.advance)).count


def batch(items: Sequence[task_service_pb2.CreateTaskRequest]) -> task_service_pb2.BatchCreateTasksRequest:
    return task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=items, mode=common_pb2.BATCH_MODE_ATOMIC
    )


async def nothing_stored(taskdb: RunningTaskDb) -> bool:
    found = await taskdb.rows(
        "SELECT (SELECT count(*) FROM dependencies) + (SELECT count(*) FROM blocked_tasks) "
        "+ (SELECT count(*) FROM tasks WHERE has_dependents) + (SELECT count(*) FROM dependency_backlog)"
    )
    return found == [(0,)]


async def test_a_task_waits_until_all_of_its_prerequisites_have_succeeded(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    for task_id in ("a", "b"):
        await tenant.create(task_id=task_id)
    made = await tenant.create(task_id="c", after=after("a", name("b")))
    assert (made.status.phase, made.status.pending_reason) == (PENDING, BLOCKED)
    assert [entry.task for entry in (await tenant.get(name("c"))).spec.after] == [name("a"), name("b")]
    await taskdb.succeed(name("a"))
    assert await state(tenant, "c") == (PENDING, BLOCKED)
    await taskdb.succeed(name("b"))
    assert await state(tenant, "c") == (PENDING, QUEUED)
    assert await taskdb.rows("SELECT count(*) FROM blocked_tasks") == [(0,)]
    assert await taskdb.rows("SELECT count(*) FROM dependencies WHERE open") == [(0,)]


async def test_a_plain_success_of_a_leased_prerequisite_releases_what_was_created_meanwhile(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="plain")
    runner, _ = await yard.hello(lease_seconds=300)
    assignments = (await yard.claim(runner)).assignments
    await tenant.create(task_id="b", after=after("a"))
    assert await taskdb.rows("SELECT task_id, plain FROM leases ORDER BY 1") == [
        ("a", False),
        ("plain", True),
    ]
    results = await yard.report(
        runner, *(report(one) for one in assignments for report in (started, succeeded))
    )
    assert {result.phase for result in results[1::2]} == {SUCCEEDED}
    assert await state(tenant, "b") == (PENDING, QUEUED)


async def test_a_prerequisite_that_is_claimed_later_is_not_decided_as_plain(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    runner, _ = await yard.hello(lease_seconds=300)
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.lease.task == name("a")
    await yard.report(runner, started(assignment), succeeded(assignment))
    (assignment,) = (await yard.claim(runner)).assignments
    assert assignment.lease.task == name("b")


@pytest.mark.parametrize(
    ("when", "ends", "released"),
    [(0, False, False), (ENDED, False, True), (ENDED, True, True), (NOT_SUCCEEDED, False, True),
     (NOT_SUCCEEDED, True, False)],
)  # fmt: skip
async def test_each_condition_holds_or_ends_the_task_at_once(
    tenant: Caller, taskdb: RunningTaskDb, when: int, ends: bool, released: bool
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a", when=when))
    await (taskdb.succeed if ends else taskdb.fail)(name("a"))
    task = await tenant.get(name("b"))
    if released:
        assert task.status.pending_reason == QUEUED
    else:
        assert task.status.phase == CANCELLED
        assert task.status.error.code == "DEPENDENCY_FAILED"
        assert name("a") in task.status.error.message


async def test_a_failure_cascades_through_the_sweep(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="t0")
    for n in range(1, 8):
        await tenant.create(task_id=f"t{n}", after=after(f"t{n - 1}"))
    await tenant.create(task_id="cleanup", after=after("t7", when=ENDED))
    await taskdb.fail(name("t0"))
    assert await state(tenant, "t1") == (CANCELLED, NONE)
    assert await state(tenant, "t2") == (PENDING, BLOCKED)
    assert await sweep(taskdb)
    assert {(await state(tenant, f"t{n}"))[0] for n in range(1, 8)} == {CANCELLED}
    assert await state(tenant, "cleanup") == (PENDING, QUEUED)
    assert "t6" in (await tenant.get(name("t7"))).status.error.message
    assert await sweep(taskdb) == 0


async def test_an_outcome_releases_a_page_and_the_sweep_the_rest(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await tenant.tasks.BatchCreateTasks(
        batch([new_task(task_id=f"d{n:03}", after=after("a")) for n in range(250)])
    )
    await taskdb.succeed(name("a"))
    assert await taskdb.rows("SELECT count(*) FROM queue") == [(100,)]
    await sweep(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM queue") == [(250,)]
    assert await taskdb.rows("SELECT count(*) FROM dependency_backlog") == [(0,)]


async def test_a_dependent_that_another_transaction_has_locked_is_left_to_the_sweep(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    async with taskdb.pool.transaction() as tx:
        await tx.execute("SELECT FROM tasks WHERE task_id = 'b' FOR UPDATE", prepare=False)
        await asyncio.wait_for(taskdb.succeed(name("a")), 30)
        assert await sweep(taskdb) == 0
    assert await state(tenant, "b") == (PENDING, BLOCKED)
    assert await sweep(taskdb) == 1
    assert await state(tenant, "b") == (PENDING, QUEUED)


async def test_prerequisites_that_have_ended_are_judged_at_the_creation(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    for task_id in ("good", "bad"):
        await tenant.create(task_id=task_id)
    await taskdb.succeed(name("good"))
    await taskdb.fail(name("bad"))
    made = await tenant.create(task_id="ready", after=after("good"))
    assert made.status.pending_reason == QUEUED
    await tenant.create(task_id="lost", after=[*after("good"), *after("bad")])
    await sweep(taskdb)
    assert (await tenant.get(name("lost"))).status.error.code == "DEPENDENCY_FAILED"


async def test_an_archived_prerequisite_is_judged_by_its_outcome(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    for task_id in ("good", "bad"):
        await tenant.create(task_id=task_id)
    await taskdb.succeed(name("good"))
    await taskdb.fail(name("bad"))
    await taskdb.execute(
        "WITH gone AS (DELETE FROM tasks RETURNING *) INSERT INTO tasks_archive SELECT * FROM gone"
    )
    made = await tenant.create(task_id="ready", after=after("good"))
    assert made.status.pending_reason == QUEUED
    await tenant.create(task_id="lost", after=after("bad"))
    await sweep(taskdb)
    assert (await state(tenant, "lost"))[0] == CANCELLED


@pytest.mark.covers("CreateTask", "NOT_FOUND")
async def test_unknown_and_foreign_prerequisites_are_not_found(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await taskdb.add_tenant("acme")
    for task in ("none", "tenants/acme/tasks/x"):
        with pytest.raises(errors.NotFound) as refused:
            await tenant.create(task_id="b", after=after(task))
        assert refused.value.name == (name("none") if task == "none" else task)
    assert await nothing_stored(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(0,)]


@pytest.mark.parametrize(
    ("entries", "field", "words"),
    [
        ([Dependency(task=f"t{n}") for n in range(1001)], "task.spec.after", "1001"),
        ([Dependency()], "task.spec.after[0].task", "id of a task"),
        ([Dependency(task="a"), Dependency(task=name("a"))], "task.spec.after[1].task", "second time"),
        ([Dependency(task="a", alias="../x")], "task.spec.after[0].alias", "../x"),
        ([Dependency(task="a", alias="x"), Dependency(task="b", alias="x")], "task.spec.after[1].alias", "x"),
        ([Dependency(task="a", when=9)], "task.spec.after[0].when", "9"),  # type: ignore[arg-type]
    ],
)
async def test_bad_dependencies_name_their_field(
    tenant: Caller, taskdb: RunningTaskDb, entries: list[Dependency], field: str, words: str
) -> None:
    await tenant.create(task_id="a")
    with pytest.raises(errors.FieldInvalid) as refused:
        await tenant.create(task_id="c", after=entries)
    assert refused.value.violations[0].field == field
    assert words in str(refused.value)
    assert await nothing_stored(taskdb)


async def test_an_external_task_has_no_dependencies(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a")
    with pytest.raises(errors.FieldInvalid, match="external"):
        await tenant.create(task_id="b", external=True, after=after("a"))
    await tenant.create(task_id="work", external=True)
    await tenant.create(task_id="c", after=after("work"))
    for phase in (task_pb2.TASK_PHASE_RUNNING, SUCCEEDED):
        await tenant.tasks.ReportTaskStatus(
            task_service_pb2.ReportTaskStatusRequest(name=name("work"), phase=phase)
        )
    assert await state(tenant, "c") == (PENDING, QUEUED)


async def test_an_atomic_batch_names_its_own_items_in_any_order(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    items = [
        new_task(task_id="join", after=after("left", "right")),
        new_task(task_id="left", after=after("start")),
        new_task(task_id="right", after=after("start")),
        new_task(task_id="start"),
    ]
    response = await tenant.tasks.BatchCreateTasks(batch(items))
    assert response.failed_count == 0
    for task_id, then in (("start", "left"), ("left", None), ("right", "join")):
        await taskdb.succeed(name(task_id))
        if then:
            assert await state(tenant, then) == (PENDING, QUEUED)


async def test_a_cycle_is_refused_by_name_and_nothing_is_stored(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    items = [
        new_task(task_id="free"),
        new_task(task_id="x", after=after("z", "free")),
        new_task(task_id="y", after=after("x")),
        new_task(task_id="z", after=after("y")),
    ]
    with pytest.raises(errors.FieldInvalid, match="x -> z -> y -> x") as refused:
        await tenant.tasks.BatchCreateTasks(batch(items))
    assert refused.value.violations[0].field == "requests[1].task.spec.after"
    with pytest.raises(errors.FieldInvalid, match="me -> me"):
        await tenant.create(task_id="me", after=after("me"))
    assert await nothing_stored(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(0,)]


async def test_total_timeout_counts_from_creation_and_queue_timeout_from_readiness(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(
        task_id="b", after=after("a"), total_timeout=duration(600), queue_timeout=duration(60)
    )
    kinds = "SELECT kind FROM timers WHERE task_id = 'b' ORDER BY 1"
    assert await taskdb.rows(kinds) == [(3,)]
    await taskdb.succeed(name("a"))
    assert await taskdb.rows(kinds) == [(2,), (3,)]
    rows = await taskdb.rows(
        "SELECT d.due_time - t.ready_time, t.total_deadline - t.create_time, t.ready_time > t.create_time "
        "FROM timers d JOIN tasks t USING (tenant_id, task_id) WHERE d.kind = 2"
    )
    assert rows == [(timedelta(seconds=60), timedelta(seconds=600), True)]


async def test_not_before_and_a_slot_count_once_the_prerequisites_have_ended(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    later = (await tenant.get(name("a"))).metadata.create_time
    later.seconds += 3600
    await tenant.create(task_id="later", after=after("a"), not_before=later)
    await tenant.create(task_id="waits", after=after("a"), slot="s")
    await tenant.create(task_id="head", slot="s")
    assert await state(tenant, "head") == (PENDING, QUEUED)
    await taskdb.succeed(name("a"))
    assert await state(tenant, "later") == (PENDING, DELAYED)
    assert await state(tenant, "waits") == (PENDING, SLOT_BUSY)
    await taskdb.succeed(name("head"))
    assert await state(tenant, "waits") == (PENDING, QUEUED)


async def test_a_task_that_replaces_its_own_prerequisite_ends(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a", slot="s")
    await tenant.create(task_id="b", slot="s", admission=task_pb2.ADMISSION_POLICY_REPLACE, after=after("a"))
    await sweep(taskdb)
    assert await state(tenant, "a") == (CANCELLED, NONE)
    assert await state(tenant, "b") == (CANCELLED, NONE)


async def act(caller: Caller, rpc: str, task_id: str, **fields: Any) -> Any:
    request = getattr(task_service_pb2, f"{rpc}Request")(name=name(task_id), **fields)
    return await getattr(caller.tasks, rpc)(request)


async def test_pause_resume_edit_and_cancel_of_a_blocked_task(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a")
    for task_id in ("b", "c", "d"):
        await tenant.create(task_id=task_id, after=after("a"))
    await act(tenant, "PauseTask", "b")
    await act(tenant, "ResumeTask", "b")
    assert await state(tenant, "b") == (PENDING, BLOCKED)
    task = task_pb2.Task(name=name("b"), spec=task_pb2.TaskSpec(priority=77))
    await tenant.tasks.UpdateTask(task_service_pb2.UpdateTaskRequest(task=task))
    assert await state(tenant, "b") == (PENDING, BLOCKED)
    task = task_pb2.Task(name=name("b"), spec=task_pb2.TaskSpec(after=after("c")))
    with pytest.raises(errors.FieldImmutable):
        await tenant.tasks.UpdateTask(task_service_pb2.UpdateTaskRequest(task=task))
    await act(tenant, "PauseTask", "c")
    await act(tenant, "CancelTask", "d")
    await taskdb.succeed(name("a"))
    assert await state(tenant, "c") == (PAUSED, NONE)
    assert await state(tenant, "d") == (CANCELLED, NONE)
    await act(tenant, "ResumeTask", "c")
    assert await state(tenant, "c") == (PENDING, QUEUED)
    assert await taskdb.rows("SELECT count(*) FROM blocked_tasks") == [(0,)]


@pytest.mark.covers("RetryTask", "PHASE_CONFLICT")
async def test_a_retry_judges_the_prerequisites_anew(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    await taskdb.fail(name("a"))
    with pytest.raises(errors.PhaseConflict, match="cascade") as refused:
        await act(tenant, "RetryTask", "b")
    assert name("a") in str(refused.value)
    await act(tenant, "RetryTask", "a")
    await act(tenant, "RetryTask", "b")
    assert await state(tenant, "b") == (PENDING, BLOCKED)
    await taskdb.succeed(name("a"))
    assert await state(tenant, "b") == (PENDING, QUEUED)


async def test_a_cascading_retry_revives_what_ended_because_of_the_task(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    for task_id in ("a", "other"):
        await tenant.create(task_id=task_id)
    await tenant.create(task_id="b", after=after("a"))
    await tenant.create(task_id="c", after=after("b"))
    await tenant.create(task_id="both", after=after("a", "other"))
    await tenant.create(task_id="cancelled", after=after("a"))
    await act(tenant, "CancelTask", "cancelled")
    await taskdb.fail(name("a"))
    await taskdb.fail(name("other"))
    await sweep(taskdb)
    assert {(await state(tenant, one))[0] for one in ("b", "c", "both")} == {CANCELLED}
    await act(tenant, "RetryTask", "a", cascade=True)
    await sweep(taskdb)
    assert [await state(tenant, one) for one in ("b", "c")] == [(PENDING, BLOCKED)] * 2
    assert [(await state(tenant, one))[0] for one in ("both", "cancelled")] == [CANCELLED] * 2
    await taskdb.succeed(name("a"))
    await taskdb.succeed(name("b"))
    assert await state(tenant, "c") == (PENDING, QUEUED)


async def test_a_cascading_retry_revives_a_task_that_was_created_after_the_failure(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await taskdb.fail(name("a"))
    await tenant.create(task_id="b", after=after("a"))
    await sweep(taskdb)
    assert await state(tenant, "b") == (CANCELLED, NONE)
    await act(tenant, "RetryTask", "a", cascade=True)
    await sweep(taskdb)
    assert await state(tenant, "b") == (PENDING, BLOCKED)


async def test_a_refused_retry_changes_no_dependencies(tenant: Caller, taskdb: RunningTaskDb) -> None:
    for task_id in ("a", "b"):
        await tenant.create(task_id=task_id)
    await tenant.create(task_id="c", after=after("a", "b", when=ENDED))
    await taskdb.fail(name("a"))
    await taskdb.succeed(name("b"))
    await taskdb.succeed(name("c"))
    await act(tenant, "RetryTask", "a")
    request = task_service_pb2.BatchRetryTasksRequest(parent="tenants/default", names=[name("c")])
    (result,) = (await tenant.tasks.BatchRetryTasks(request)).results
    assert result.status.code
    assert await taskdb.rows("SELECT count(*) FROM blocked_tasks") == [(0,)]
    assert await taskdb.rows("SELECT count(*) FROM dependencies WHERE open") == [(0,)]


async def test_a_retry_waits_for_a_task_that_took_the_id_of_a_deleted_one(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    await taskdb.fail(name("a"))
    await act(tenant, "DeleteTask", "a")
    await tenant.create(task_id="a")
    await act(tenant, "RetryTask", "b")
    assert await state(tenant, "b") == (PENDING, BLOCKED)
    await taskdb.succeed(name("a"))
    assert await state(tenant, "b") == (PENDING, QUEUED)


async def test_deleting_a_task_removes_its_dependencies(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    await taskdb.fail(name("a"))
    await act(tenant, "DeleteTask", "a")
    await act(tenant, "DeleteTask", "b")
    assert await nothing_stored(taskdb)


async def test_creates_and_outcomes_that_race_lose_no_wake_up(
    tenant: Caller, taskdb: RunningTaskDb, scheduler: Caller
) -> None:
    """Dependents are created while their prerequisite is claimed, started and ends as a plain success."""
    yard = await make_yard(taskdb, scheduler, tenant)
    runner, _ = await yard.hello(lease_seconds=300)
    for round_ in range(20):
        await tenant.create(task_id=f"a{round_}")

        async def run() -> None:
            for assignment in (await yard.claim(runner)).assignments:
                await yard.report(runner, started(assignment), succeeded(assignment))

        creates = [tenant.create(task_id=f"d{round_}-{n}", after=after(f"a{round_}")) for n in range(5)]
        await asyncio.gather(run(), *creates)
        await run()
        await sweep(taskdb)
        assert await taskdb.rows("SELECT count(*) FROM blocked_tasks") == [(0,)]
    assert await taskdb.rows("SELECT count(*) FROM tasks WHERE pending_reason = 6") == [(0,)]


async def test_the_leader_works_off_a_cascade_by_itself(database_url: str) -> None:
    async for running in run_taskdb(database_url):
        caller = await running.caller(api_keys.TENANT)
        await caller.create(task_id="t0")
        for n in range(1, 5):
            await caller.create(task_id=f"t{n}", after=after(f"t{n - 1}"))
        await act(caller, "CancelTask", "t0")
        deadline = asyncio.get_running_loop().time() + 60
        while (await state(caller, "t4"))[0] != CANCELLED:
            assert asyncio.get_running_loop().time() < deadline, "the cascade did not end"
            await asyncio.sleep(0.05)


async def test_the_audit_trail_names_the_prerequisite_and_watches_see_the_release(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    for task_id in ("a", "x"):
        await tenant.create(task_id=task_id)
    await tenant.create(task_id="b", after=after("a"))
    await tenant.create(task_id="y", after=after("x"))
    await taskdb.succeed(name("a"))
    await taskdb.fail(name("x"))
    found = await taskdb.rows(
        "SELECT resource_id, event, pending_reason, error_code, details ->> 'prerequisite' FROM change_log "
        "WHERE resource_id IN ('b', 'y') ORDER BY resource_id, version"
    )
    assert found == [
        ("b", 1, BLOCKED, None, None),
        ("b", 24, QUEUED, None, None),
        ("y", 1, BLOCKED, None, None),
        ("y", 12, 0, "DEPENDENCY_FAILED", name("x")),
    ]


async def test_doctor_finds_and_repairs_dependents_whose_prerequisite_has_ended(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    check = next(one for one in CHECKS if one.name == "dependencies")
    for task_id in ("a", "x", "live"):
        await tenant.create(task_id=task_id)
    await tenant.create(task_id="b", after=after("a"))
    await tenant.create(task_id="y", after=after("x"))
    await tenant.create(task_id="counts", after=after("live"))
    await tenant.create(task_id="row", after=after("live"))
    assert (await run_check(taskdb.pool, check)).count == 0
    # An outcome that released nobody, a wrong count, a lost row, and a row of a task that does not wait.
    await taskdb.execute("UPDATE tasks SET has_dependents = NULL WHERE task_id IN ('a', 'x')")
    await taskdb.succeed(name("a"))
    await taskdb.fail(name("x"))
    await taskdb.execute("UPDATE blocked_tasks SET open_count = 7 WHERE task_id = 'counts'")
    await taskdb.execute("DELETE FROM blocked_tasks WHERE task_id = 'row'")
    await taskdb.execute("INSERT INTO blocked_tasks VALUES (1, NULL, 'default', 'live', NULL)")
    context = RepairContext(taskdb.pool, lambda _: None, SYSTEM, no_job)
    finding = await run_check(taskdb.pool, check, context)
    assert (finding.count, finding.repaired, finding.remaining) == (5, 5, 0)
    await sweep(taskdb)
    assert await state(tenant, "b") == (PENDING, QUEUED)
    assert (await tenant.get(name("y"))).status.error.code == "DEPENDENCY_FAILED"
    await taskdb.succeed(name("live"))
    assert [await state(tenant, one) for one in ("counts", "row")] == [(PENDING, QUEUED)] * 2


async def no_job(job: str) -> None:
    """No job runs here."""


async def test_archiving_a_task_keeps_no_dependencies_and_its_outcome_decides(
    tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await tenant.create(task_id="a")
    await tenant.create(task_id="b", after=after("a"))
    await taskdb.succeed(name("a"))
    await taskdb.succeed(name("b"))

    async def archive_all(tx: Tx) -> int:
        found, _ = await archive.find_ended(tx, ("", ""), 100, timedelta(microseconds=1))
        return await archive.move(tx, found)

    assert await taskdb.pool.run(archive_all) == 2
    assert await nothing_stored(taskdb)
    made = await tenant.create(task_id="c", after=after("b"))
    assert made.status.pending_reason == QUEUED


async def test_deleting_a_tenant_removes_its_dependencies(taskdb: RunningTaskDb, admin: Caller) -> None:
    await taskdb.add_tenant("acme", suspended=False)
    await admin.create(parent="tenants/acme", task_id="a")
    await admin.create(parent="tenants/acme", task_id="b", after=after("a"))
    removal = TenantRemoval(taskdb.pool)
    await taskdb.execute(
        "UPDATE tenants SET suspended = true, update_time = '2000-01-01' WHERE tenant_id = 'acme'"
    )
    await removal.empty("acme", lambda _: None)
    assert await nothing_stored(taskdb)
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(0,)]


async def test_results_of_prerequisites_come_with_the_assignment_bounded_in_bytes(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    runner, _ = await yard.hello(lease_seconds=300)
    for task_id, size in (("small", 3), ("large", 600_000), ("larger", 600_000), ("unnamed", 3)):
        await tenant.create(task_id=task_id)
        (assignment,) = (await yard.claim(runner)).assignments
        assert not assignment.inputs
        output = common_pb2.Payload(raw=b'"' + b"x" * size + b'"', content_type="application/json")
        result = task_pb2.TaskResult(output=output)
        await yard.report(runner, started(assignment), succeeded(assignment, result=result))
    entries = [Dependency(task=one, alias=one) for one in ("small", "large", "larger")]
    await tenant.create(task_id="reader", after=[*entries, Dependency(task="unnamed")])
    (assignment,) = (await yard.claim(runner)).assignments
    assert [(one.alias, len(one.result.output.raw), one.omitted) for one in assignment.inputs] == [
        ("small", 5, False),
        ("large", 600_002, False),
        ("larger", 0, True),
    ]
    assert {(one.phase, one.task) for one in assignment.inputs} == {
        (SUCCEEDED, name(one)) for one in ("small", "large", "larger")
    }


async def test_a_plain_task_costs_no_statement_and_no_row_for_dependencies(
    tenant: Caller, taskdb: RunningTaskDb, yard: Yard
) -> None:
    runner, _ = await yard.hello(lease_seconds=300)
    await tenant.create(task_id="plain")
    seen: list[str] = []
    fetch, execute = Tx.fetch, Tx.execute

    async def spy_fetch(self: Tx, sql: str, *args: Any, **more: Any) -> Any:
        seen.append(sql)
        return await fetch(self, sql, *args, **more)

    async def spy_execute(self: Tx, sql: str, *args: Any, **more: Any) -> Any:
        seen.append(sql)
        return await execute(self, sql, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tx, "fetch", spy_fetch)
        patch.setattr(Tx, "execute", spy_execute)
        await tenant.create(task_id="other")
        for assignment in (await yard.claim(runner)).assignments:
            await yard.report(runner, started(assignment), succeeded(assignment))
    words = ("dependencies", "blocked_tasks", "dependency_backlog", "SET has_dependents", "SET blocked")
    assert seen and not [sql for sql in seen if any(word in sql for word in words)]
    assert await taskdb.rows("SELECT count(*) FROM tasks WHERE blocked IS NOT NULL") == [(0,)]
    assert await nothing_stored(taskdb)


async def test_the_dependents_of_a_task_are_listed_by_a_filter(tenant: Caller) -> None:
    for task_id, prerequisites in {"a": (), "b": (), "c": ("a",), "d": ("a", "b"), "e": ("d",)}.items():
        await tenant.create(task_id=task_id, after=after(*prerequisites))

    async def found(text: str) -> list[str]:
        request = task_service_pb2.ListTasksRequest(
            parent="tenants/default", filter=text, order_by="metadata.create_time", count_total=True
        )
        page = await tenant.tasks.ListTasks(request)
        assert page.total_size == len(page.tasks)
        return [task.metadata.id for task in page.tasks]

    assert await found(f'spec.after = "{name("a")}"') == ["c", "d"]
    assert await found(f'spec.after = "{name("b")}" AND status.phase = PENDING') == ["d"]
    assert await found(f'spec.after = "{name("e")}"') == []
    assert await found('spec.after = "tenants/acme/tasks/a"') == []
    assert await found(f'spec.after != "{name("a")}"') == ["a", "b", "e"]
    assert await found("spec.after:*") == ["c", "d", "e"]
    with pytest.raises(grpc.aio.AioRpcError, match=r"spec\.after"):
        request = task_service_pb2.WatchTasksRequest(
            parent="tenants/default", filter=f'spec.after = "{name("a")}"'
        )
        await anext(aiter(tenant.tasks.WatchTasks(request)))


async def test_a_watch_shows_released_and_failed_dependents(tenant: Caller, taskdb: RunningTaskDb) -> None:
    for task_id in ("a", "x"):
        await tenant.create(task_id=task_id)
    await tenant.create(task_id="b", after=after("a"))
    await tenant.create(task_id="y", after=after("x"))
    call = tenant.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent="tenants/default"))
    await call.read()
    await taskdb.succeed(name("a"))
    await taskdb.fail(name("x"))
    seen: dict[str, tuple[int, int]] = {}
    async with asyncio.timeout(60):
        while not {"b", "y"} <= seen.keys():
            for event in (await call.read()).events:
                status = event.task.status
                seen[event.task.metadata.id] = (status.phase, status.pending_reason)
    call.cancel()
    assert (seen["b"], seen["y"]) == ((PENDING, QUEUED), (CANCELLED, NONE))
