"""Sweeps of timers and slots, and the repair of lane bounds."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import RunningTaskDb, make_yard
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.v1 import task_pb2
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.small_sweeps import SlotSweep
from taskyard_taskdb.sweep.timers import TimerSweep


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def leadership(quiet: RunningTaskDb) -> Leadership:
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    return leadership


@pytest.fixture
def timers(quiet: RunningTaskDb) -> TimerSweep:
    return TimerSweep(quiet.pool, quiet.taskdb._after_commit, page=2)


async def let_pass(taskdb: RunningTaskDb) -> None:
    """Make every timer due."""
    async with taskdb.pool.transaction() as tx:
        await tx.execute(
            "UPDATE tasks SET next_attempt_time = now() - interval '1 second' WHERE next_attempt_time > now()"
        )
        await tx.execute("UPDATE timers SET due_time = now() - interval '1 second'")


async def test_a_retry_becomes_claimable_after_its_backoff(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, timers: TimerSweep
) -> None:
    names = await yard.create(5)
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    await yard.report(runner, *(report for a in assignments for report in (started(a), failed(a))))
    wait = await timers.run(leadership)
    assert 0 < wait < math.inf
    assert not (await yard.claim(runner)).assignments
    await let_pass(quiet)
    await timers.run(leadership)
    again = (await yard.claim(runner)).assignments
    assert sorted(a.lease.task for a in again) == sorted(names)
    assert {a.attempt for a in again} == {2}
    assert not await quiet.rows("SELECT FROM timers")


async def test_queue_and_total_timeouts_end_waiting_tasks(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, timers: TimerSweep
) -> None:
    (queued,) = await yard.create(queue_timeout=Duration(nanos=1_000_000))
    (total,) = await yard.create(total_timeout=Duration(nanos=1_000_000))
    (plain,) = await yard.create()
    async with asyncio.timeout(5):
        while await quiet.rows("SELECT FROM timers"):
            await timers.run(leadership)
    assert (await yard.task(queued)).status.error.code == "QUEUE_TIMEOUT"
    assert (await yard.task(total)).status.error.code == "TOTAL_TIMEOUT"
    assert (await yard.task(plain)).status.phase == task_pb2.TASK_PHASE_PENDING
    runner, _ = await yard.hello()
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == [plain]


async def test_a_success_deletes_the_timers_of_its_task(yard: Yard, quiet: RunningTaskDb) -> None:
    await yard.create(total_timeout=Duration(seconds=1000), queue_timeout=Duration(seconds=1000))
    assert len(await quiet.rows("SELECT FROM timers")) == 2
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert 900 < assignment.total_timeout.seconds <= 1000
    await yard.report(runner, started(assignment), succeeded(assignment))
    assert not await quiet.rows("SELECT FROM timers")


async def test_a_freed_slot_goes_to_its_next_waiter(yard: Yard, quiet: RunningTaskDb) -> None:
    names = await yard.create(3, slot="deploy")
    runner, _ = await yard.hello()
    for name in names:
        (assignment,) = (await yard.claim(runner)).assignments
        assert assignment.lease.task == name
        await yard.report(runner, started(assignment), succeeded(assignment))
    assert not await quiet.rows("SELECT FROM slots")


async def test_a_slot_without_a_head_is_repaired(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership
) -> None:
    names = await yard.create(2, slot="deploy")
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    sweep = SlotSweep(quiet.pool, quiet.taskdb._after_commit)
    await sweep.run(leadership)
    assert await quiet.rows("SELECT head_task_id FROM slots") == [(names[0].rpartition("/")[2],)]
    await yard.report(runner, succeeded(assignment))
    # As if the promotion had been lost.
    async with quiet.pool.transaction() as tx:
        await tx.execute("DELETE FROM queue")
        await tx.execute("UPDATE slots SET head_task_id = NULL")
        await tx.execute("UPDATE tasks SET pending_reason = 4 WHERE end_time IS NULL")
    await sweep.run(leadership)
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == names[1:]


async def test_repair_bounds_finds_a_task_committed_below_the_bound_of_its_lane(
    yard: Yard, quiet: RunningTaskDb
) -> None:
    await yard.create(2)
    runner, _ = await yard.hello()
    (lane,) = await yard.lanes()
    assert len((await yard.claim(runner)).assignments) == 2
    (late,) = await yard.create()
    async with quiet.pool.transaction() as tx:
        # Committed late: its ready_time is well before what was popped.
        # The rows of claimed tasks still have phase PENDING; their phase is in the lease.
        await tx.execute("UPDATE tasks SET ready_time = ready_time - interval '1 minute' WHERE phase = 1")
        await tx.execute("UPDATE queue SET ready_time = ready_time - interval '1 minute'")
    from taskyard.v1 import lease_service_pb2

    lanes = [lease_service_pb2.LaneClaim(lane=lane.key)]
    assert not (await yard.claim(runner, lanes=lanes)).assignments
    assert await quiet.taskdb.housekeeping.repair_bounds() == 1
    assert [a.lease.task for a in (await yard.claim(runner, lanes=lanes)).assignments] == [late]


async def test_a_running_taskdb_fires_retry_timers_by_itself(
    taskdb: RunningTaskDb, tenant: object, scheduler: object
) -> None:
    running = await make_yard(taskdb, scheduler, tenant)  # type: ignore[arg-type]
    retry = {"backoff": {"initial": Duration(nanos=50_000_000), "jitter": 1}}
    (name,) = await running.create(retry=retry)
    runner, _ = await running.hello()
    (first,) = (await running.claim(runner)).assignments
    await running.report(runner, started(first), failed(first))
    async with asyncio.timeout(20):
        while not (again := (await running.claim(runner)).assignments):
            pass
    assert again[0].lease.task == name
