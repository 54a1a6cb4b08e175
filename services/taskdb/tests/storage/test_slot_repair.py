"""Repair of slots that SQL has damaged: at no time can two tasks of one slot be claimed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard
from services.taskdb.tests.doctoring import finding, run_doctor, task_id
from services.taskdb.tests.yard import Assignment, Runner, Yard, started, succeeded
from taskyard_taskdb.domain.event import LeaseExpired
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.small_sweeps import SlotSweep
from tests.harness.invariants import assert_invariants

GHOST = "UPDATE slots SET head_task_id = 'ghost'"
NO_HEAD = "UPDATE slots SET head_task_id = NULL"
WAITER = "UPDATE slots SET head_task_id = (SELECT task_id FROM tasks WHERE pending_reason = 4)"
NO_ROW = "DELETE FROM slots"


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def admin(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller(api_keys.ADMIN)


@pytest.fixture
async def runner(yard: Yard) -> Runner:
    return (await yard.hello())[0]


async def sweep(quiet: RunningTaskDb) -> None:
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    await SlotSweep(quiet.pool, quiet.taskdb._after_commit).run(leadership)


async def claimed(yard: Yard, runner: Runner) -> list[Assignment]:
    """Let the runner claim and start tasks; returns the assignments."""
    found = list((await yard.claim(runner)).assignments)
    if found:
        await yard.report(runner, *(started(assignment) for assignment in found))
    return found


async def expect_one_after_the_other(yard: Yard, runner: Runner, names: list[str], *held: Assignment) -> None:
    """Assert that the tasks of the slot run in their order, each after the former has ended."""
    ran: list[str] = []
    running = list(held)
    while len(ran) < len(names):
        running += await claimed(yard, runner)
        (assignment,) = running
        assert await claimed(yard, runner) == []
        ran.append(assignment.lease.task)
        await yard.report(runner, succeeded(running.pop()))
    assert ran == names


@pytest.mark.parametrize("damage", [NO_HEAD, GHOST, WAITER, NO_ROW])
async def test_the_sweep_keeps_the_queued_holder_of_a_slot(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, damage: str
) -> None:
    names = await yard.create(2, slot="one")
    await quiet.execute(damage)
    await sweep(quiet)
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names)


@pytest.mark.parametrize("damage", [NO_HEAD, GHOST, WAITER, NO_ROW])
async def test_the_sweep_keeps_the_running_holder_of_a_slot(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, damage: str
) -> None:
    names = await yard.create(2, slot="one")
    (held,) = await claimed(yard, runner)
    await quiet.execute(damage)
    await sweep(quiet)
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names, held)


@pytest.mark.parametrize("damage", [NO_HEAD, GHOST, WAITER, NO_ROW])
async def test_the_doctor_replaces_a_wrong_head_by_the_holder(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller, damage: str
) -> None:
    names = await yard.create(2, slot="one")
    await quiet.execute(damage)
    answer = await run_doctor(admin, repair=True)
    found = finding(answer, "holder-without-slot")
    assert (found.count, found.repaired_count, answer.healthy) == (1, 1, True)
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names)


async def test_a_head_that_is_leased_for_another_slot_holds_only_its_own(
    yard: Yard, quiet: RunningTaskDb, runner: Runner
) -> None:
    await yard.create(slot="other")
    (other,) = await claimed(yard, runner)
    names = await yard.create(2, slot="one")
    foreign = task_id(other.lease.task)
    await quiet.execute("UPDATE slots SET head_task_id = %s WHERE slot = 'one'", foreign)
    await sweep(quiet)
    assert_invariants(quiet.url)
    (assignment,) = await claimed(yard, runner)
    assert assignment.lease.task == names[0]


async def test_housekeeping_promotes_no_task_while_the_slot_has_a_holder(
    taskdb: RunningTaskDb, tenant: Caller, scheduler: Caller
) -> None:
    yard = await make_yard(taskdb, scheduler, tenant)
    names = await yard.create(2, slot="one")
    runner, _ = await yard.hello()
    (held,) = await claimed(yard, runner)
    await taskdb.execute(NO_HEAD)
    taskdb.taskdb.housekeeping.sweeper.wake("slots")
    async with asyncio.timeout(20):
        while not await taskdb.rows("SELECT FROM slots WHERE head_task_id IS NOT NULL"):
            pass
    assert_invariants(taskdb.url)
    await expect_one_after_the_other(yard, runner, names, held)


PROMOTE = "UPDATE tasks SET pending_reason = 1, ready_time = now(), version = version + 1 WHERE task_id = %s"
ENQUEUE = (
    "INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id) "
    "SELECT class_id, ready_time, priority, tenant_id, task_id FROM tasks WHERE task_id = %s"
)
LOG = (
    "INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, pending_reason, "
    "tenant_id, resource_id) VALUES (now(), 2, 24, 3, 1, 1, 1, 'default', %s)"
)


async def promote_too(quiet: RunningTaskDb, name: str) -> None:
    """Let a waiter be claimable as well, as a bug could."""
    for sql in (PROMOTE, ENQUEUE, LOG):
        await quiet.execute(sql, task_id(name))


async def test_the_second_of_two_queued_holders_is_requeued_as_a_waiter(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller
) -> None:
    names = await yard.create(2, slot="one")
    await promote_too(quiet, names[1])
    answer = await run_doctor(admin, "holder-without-slot", repair=True)
    assert answer.healthy and answer.findings[0].repaired_count == 1
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names)


async def test_a_running_holder_keeps_its_slot_from_a_queued_one_that_heads_it(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller
) -> None:
    names = await yard.create(2, slot="one")
    (held,) = await claimed(yard, runner)
    await promote_too(quiet, names[1])
    await quiet.execute("UPDATE slots SET head_task_id = %s", task_id(names[1]))
    assert (await run_doctor(admin, "holder-without-slot", repair=True)).healthy
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names, held)


async def test_a_holder_with_an_expired_lease_waits_behind_a_running_one(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller
) -> None:
    names = await yard.create(2, slot="one")
    (held,) = await claimed(yard, runner)
    await promote_too(quiet, names[1])
    (lost,) = await claimed(yard, runner)
    await quiet.execute(
        "UPDATE leases SET expire_time = now() - interval '1 s' WHERE task_id = %s",
        task_id(names[1]),
    )
    await quiet.apply(names[1], lambda task, now: LeaseExpired(generation=task.generation))
    assert (await run_doctor(admin, "holder-without-slot", repair=True)).healthy
    assert_invariants(quiet.url)
    assert await claimed(yard, runner) == []
    # Its run ended with the lease.
    (refused,) = await yard.report(runner, succeeded(lost))
    assert refused.HasField("error")
    await expect_one_after_the_other(yard, runner, names, held)


async def test_two_running_holders_stay_a_finding_until_one_has_ended(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller
) -> None:
    names = await yard.create(3, slot="one")
    (first,) = await claimed(yard, runner)
    await promote_too(quiet, names[1])
    (second,) = await claimed(yard, runner)
    for _ in range(2):
        answer = await run_doctor(admin, repair=True)
        found = finding(answer, "holder-without-slot")
        assert not answer.healthy and (found.count, found.repaired_count) == (1, 0)
    # The third is promoted by the end of the first, and goes back behind the second.
    await yard.report(runner, succeeded(first))
    assert (await run_doctor(admin, repair=True)).healthy
    assert_invariants(quiet.url)
    await expect_one_after_the_other(yard, runner, names[1:], second)


async def test_a_finding_that_cannot_be_repaired_does_not_block_others(
    yard: Yard, quiet: RunningTaskDb, runner: Runner, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "PAGE", 1)
    for slot in ("a", "c", "e"):
        names = await yard.create(2, slot=slot)
        await claimed(yard, runner)
        await promote_too(quiet, names[1])
    await claimed(yard, runner)
    for slot in ("b", "d", "f"):
        await yard.create(2, slot=slot)
        await quiet.execute("UPDATE slots SET head_task_id = NULL WHERE slot = %s", slot)
    (found,) = (await run_doctor(admin, "holder-without-slot", repair=True)).findings
    assert (found.count, found.repaired_count) == (6, 3)
    heads = await quiet.rows("SELECT slot FROM slots WHERE head_task_id IS NOT NULL ORDER BY slot")
    assert heads == [(slot,) for slot in "abcdef"]
