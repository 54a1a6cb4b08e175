"""Expiry of leases and sessions, and deadlines. The tests let time pass by changing stored times."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, make_yard
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard.v1 import common_pb2, lease_pb2, session_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages

NO_GRACE = timedelta(0)


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def leadership(quiet: RunningTaskDb) -> Leadership:
    leadership = Leadership(quiet.pool, NO_GRACE)
    assert await leadership.acquire()
    return leadership


@pytest.fixture
def expiry(quiet: RunningTaskDb) -> ExpirySweep:
    return ExpirySweep(quiet.pool, LeasePages(quiet.pool, quiet.taskdb._after_commit, page=2))


async def age(taskdb: RunningTaskDb, table: str, column: str) -> None:
    """Set a time column to the past."""
    async with taskdb.pool.transaction() as tx:
        await tx.execute(f"UPDATE {table} SET {column} = now() - interval '1 second'")


async def hold(
    yard: Yard, count: int = 1, **spec: object
) -> tuple[list[str], Runner, list[lease_pb2.Assignment]]:
    """Make tasks that a runner has started."""
    names = await yard.create(count, **spec)
    runner, _ = await yard.hello()
    assignments = list((await yard.claim(runner)).assignments)
    await yard.report(runner, *(started(a) for a in assignments))
    return names, runner, assignments


async def phases(yard: Yard, names: list[str]) -> list[int]:
    return [(await yard.task(name)).status.phase for name in names]


async def test_a_lease_that_expires_before_the_start_requeues_the_task(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    names = await yard.create(3)
    runner, _ = await yard.hello()
    assert len((await yard.claim(runner)).assignments) == 3
    await expiry.run(leadership)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_SCHEDULED] * 3
    await age(quiet, "leases", "expire_time")
    await expiry.run(leadership)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_PENDING] * 3
    # The tasks were not started, so neither an attempt nor a runner loss is counted.
    task = await yard.task(names[0])
    assert (task.status.attempt, task.status.runner_loss_count) == (0, 0)
    # The session is alive; its next renewal reports that the leases are lost.
    verdicts = (await yard.renew(runner)).verdicts
    assert {verdict.action for verdict in verdicts} == {lease_pb2.LEASE_ACTION_ABORT}
    assert len((await yard.claim(runner)).assignments) == 3


@pytest.mark.seed("S2.101-102")
async def test_a_missed_heartbeat_is_logged_before_the_runner_is_dead(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    async def words() -> list[str]:
        rows = await quiet.rows(
            "SELECT event FROM changes WHERE resource_kind = 2 AND event IN (43, 44) ORDER BY id"
        )
        return [ChangeEvent(row[0]).word for row in rows]

    runner, _ = await yard.hello(lease_seconds=30)
    await expiry.run(leadership)
    assert await words() == []
    await quiet.execute(
        "UPDATE sessions SET heartbeat_time = now() - interval '16 s', expire_time = now() + interval '14 s'"
    )
    for _ in range(2):
        await expiry.run(leadership)
        assert await words() == ["runner.heartbeat_missed"]
    # It is alive; the next miss is another one.
    await yard.renew(runner)
    await age(quiet, "sessions", "heartbeat_time")
    await age(quiet, "sessions", "expire_time")
    await expiry.run(leadership)
    assert await words() == ["runner.heartbeat_missed"] * 2 + ["runner.marked_dead"]


@pytest.mark.seed("S0.86")
async def test_started_tasks_of_an_expired_session_are_redistributed_and_late_outcomes_accepted(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    names, runner, assignments = await hold(yard, 3)
    await age(quiet, "sessions", "expire_time")
    await expiry.run(leadership)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_REDISTRIBUTING] * 3
    words = {row[0] for row in await quiet.rows("SELECT event FROM changes WHERE resource_kind = 2")}
    assert ChangeEvent.RUNNER_MARKED_DEAD in words
    assert (await yard.renew(runner)).lost
    # A late outcome is accepted until the next claim, and removes the task from the queue.
    (result,) = await yard.report(runner, succeeded(assignments[0]))
    assert result.phase == task_pb2.TASK_PHASE_SUCCEEDED
    other, _ = await yard.hello("runner-2")
    claimed = (await yard.claim(other)).assignments
    assert sorted(a.lease.task for a in claimed) == sorted(names[1:])
    (stale,) = await yard.report(runner, succeeded(assignments[1]))
    assert "STALE_GENERATION" in str(stale.error)
    assert (await yard.task(names[0])).status.runner_loss_count == 0


async def test_large_tasks_of_a_lost_runner_are_handed_out_in_several_answers(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    payload = common_pb2.Payload(raw=b"x" * 1_000_000, content_type="application/octet-stream")
    names = await yard.create(6, payload=payload)
    runner, _ = await yard.hello()
    while found := (await yard.claim(runner)).assignments:
        await yard.report(runner, *(started(one) for one in found))
    await age(quiet, "sessions", "expire_time")
    await expiry.run(leadership)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_REDISTRIBUTING] * 6
    other, _ = await yard.hello("runner-2")
    taken: list[str] = []
    while found := (await yard.claim(other)).assignments:
        taken += [one.lease.task for one in found]
    assert sorted(taken) == sorted(names)


async def test_a_runner_that_reconnects_keeps_the_tasks_that_were_not_claimed(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    _, runner, assignments = await hold(yard, 2)
    await age(quiet, "sessions", "expire_time")
    await expiry.run(leadership)
    other, _ = await yard.hello("runner-2")
    (claimed,) = (await yard.claim(other, 1)).assignments
    _, opened = await yard.hello(runner, held=[a.lease for a in assignments])
    (verdict,) = opened.verdicts
    assert (verdict.lease.task, verdict.reason) == (claimed.lease.task, "STALE_GENERATION")
    kept = next(a for a in assignments if a.lease.task != claimed.lease.task)
    assert (await yard.task(kept.lease.task)).status.phase == task_pb2.TASK_PHASE_RUNNING
    assert not (await yard.claim(other)).assignments
    (result,) = await yard.report(runner, succeeded(kept))
    assert result.phase == task_pb2.TASK_PHASE_SUCCEEDED


async def test_no_lease_is_expired_during_the_grace_period_of_a_new_leader(
    yard: Yard, quiet: RunningTaskDb, expiry: ExpirySweep
) -> None:
    names, _, _ = await hold(yard)
    await age(quiet, "sessions", "expire_time")
    fresh = Leadership(quiet.pool, timedelta(hours=1))
    assert await fresh.acquire()
    await expiry.run(fresh)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_RUNNING]
    # A renewal keeps the term; after an expiry a new term begins.
    assert await fresh.acquire()
    term = fresh.term
    await age(quiet, "coordinator_state", "expires_at")
    assert await fresh.acquire()
    assert term is not None and fresh.term is not None
    assert fresh.term.epoch == term.epoch + 1
    assert not fresh.may_reap


async def test_a_former_leader_writes_nothing(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    names, _, _ = await hold(yard)
    await age(quiet, "sessions", "expire_time")
    await age(quiet, "coordinator_state", "expires_at")
    other = Leadership(quiet.pool, NO_GRACE)
    assert await other.acquire()
    assert not await Leadership(quiet.pool, NO_GRACE).acquire()
    with pytest.raises(LeadershipLost):
        await expiry.run(leadership)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_RUNNING]
    await expiry.run(other)
    assert await phases(yard, names) == [task_pb2.TASK_PHASE_REDISTRIBUTING]


async def test_a_disconnect_redistributes_only_tasks_with_that_policy(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    prompt = await yard.create(on_runner_lost=task_pb2.RUNNER_LOST_POLICY_REDISTRIBUTE)
    forbid = await yard.create(
        on_runner_lost=task_pb2.RUNNER_LOST_POLICY_REDISTRIBUTE, overlap=task_pb2.OVERLAP_POLICY_FORBID
    )
    waits, runner, _ = await hold(yard)
    await yard.scheduler.sessions.CloseSession(
        session_service_pb2.CloseSessionRequest(
            runner_id=runner.id, session_epoch=runner.epoch, disconnected=True
        )
    )
    await expiry.run(leadership)
    running = task_pb2.TASK_PHASE_RUNNING
    assert await phases(yard, prompt + forbid + waits) == [running] * 3
    async with quiet.pool.transaction() as tx:
        await tx.execute("UPDATE sessions SET disconnect_time = now() - interval '11 seconds'")
    await expiry.run(leadership)
    assert await phases(yard, prompt + forbid + waits) == [
        task_pb2.TASK_PHASE_REDISTRIBUTING,
        running,
        running,
    ]


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        (task_pb2.RUNNER_LOST_POLICY_FAIL, task_pb2.TASK_PHASE_FAILED),
        (task_pb2.RUNNER_LOST_POLICY_HOLD, task_pb2.TASK_PHASE_PAUSED),
    ],
)
async def test_a_lost_runner_fails_or_pauses_its_tasks_by_their_policy(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep, policy: int, phase: int
) -> None:
    names, _, _ = await hold(yard, on_runner_lost=policy)
    await age(quiet, "sessions", "expire_time")
    await expiry.run(leadership)
    assert await phases(yard, names) == [phase]
    assert not await quiet.rows("SELECT FROM queue")


async def test_an_ignored_cancel_is_forced_and_the_holder_is_notified(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    (name,), runner, (assignment,) = await hold(yard)
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
    await expiry.run(leadership)
    assert await phases(yard, [name]) == [task_pb2.TASK_PHASE_RUNNING]
    await age(quiet, "leases", "action_deadline")
    await expiry.run(leadership)
    assert await phases(yard, [name]) == [task_pb2.TASK_PHASE_CANCELLED]
    (verdict,) = (await yard.renew(runner)).verdicts
    assert (verdict.lease, verdict.action) == (assignment.lease, lease_pb2.LEASE_ACTION_ABORT)
    (late,) = await yard.report(runner, succeeded(assignment))
    assert "TASK_TERMINAL" in str(late.error)


@pytest.mark.seed("S0.66", "S2.24")
async def test_a_run_past_its_deadline_times_out_without_a_report(
    yard: Yard, quiet: RunningTaskDb, leadership: Leadership, expiry: ExpirySweep
) -> None:
    from google.protobuf.duration_pb2 import Duration

    (name,), _, _ = await hold(yard, attempt_timeout=Duration(seconds=5))
    async with quiet.pool.transaction() as tx:
        await tx.execute(
            "UPDATE leases SET deadline_time = now(), schedule_time = now() - interval '2 hours', "
            "start_time = now() - interval '1 hour'"
        )
    await expiry.run(leadership)
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_TIMED_OUT
    assert task.status.error.code == "ATTEMPT_TIMEOUT"
    assert task.status.error.message
