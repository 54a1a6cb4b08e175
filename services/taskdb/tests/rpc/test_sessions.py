"""Sessions of runners through the internal API."""

from __future__ import annotations

import asyncio

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, run_taskdb
from services.taskdb.tests.yard import Yard, released, started, succeeded
from taskyard.errors import PermissionDenied, RunnerIdInUse, SessionSuperseded, Unauthenticated, Unavailable
from taskyard.v1 import (
    lease_pb2,
    lease_service_pb2,
    runner_pb2,
    session_service_pb2,
    task_pb2,
    task_service_pb2,
)
from taskyard_taskdb.storage.tenant import api_keys


@pytest.mark.covers("OpenSession", "RUNNER_ID_IN_USE")
async def test_a_second_agent_needs_takeover_and_then_supersedes(yard: Yard) -> None:
    first, opened = await yard.hello("r1")
    assert (opened.session_epoch, opened.runner.state) == (1, runner_pb2.RUNNER_STATE_HEALTHY)
    with pytest.raises(RunnerIdInUse):
        await yard.hello("r1")
    second, opened = await yard.hello("r1", takeover=True)
    assert opened.session_epoch == 2
    assert (await yard.renew(first)).lost
    assert not (await yard.renew(second)).lost


async def test_the_same_agent_reconnects_and_keeps_what_it_lists(yard: Yard, taskdb: RunningTaskDb) -> None:
    names = await yard.create(2)
    runner, _ = await yard.hello()
    kept, dropped = (await yard.claim(runner)).assignments
    await yard.report(runner, started(kept), started(dropped))
    _, opened = await yard.hello(runner, held=[kept.lease])
    assert not opened.verdicts
    assert (await yard.task(names[0])).status.phase == task_pb2.TASK_PHASE_RUNNING
    # A lease that the runner does not list is lost; a task with overlap ALLOW is claimable at once.
    lost = await yard.task(names[1])
    assert lost.status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING
    assert lost.status.runner_loss_count == 1
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.lease.generation) == (names[1], 2)
    (stale,) = await yard.report(runner, succeeded(dropped))
    assert "STALE_GENERATION" in str(stale.error)
    (run,) = await taskdb.rows("SELECT generation, state FROM ended_runs")
    assert run == (1, 7)


async def test_forbidden_overlap_keeps_an_unlisted_lease_until_its_expiry(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    (name,) = await yard.create(overlap=task_pb2.OVERLAP_POLICY_FORBID)
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    ((former,),) = await taskdb.rows("SELECT expire_time FROM sessions")
    await yard.hello(runner)
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_RUNNING
    assert await taskdb.rows("SELECT expire_time FROM leases") == [(former,)]
    assert not (await yard.claim(runner)).assignments


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_hello_with_two_generations_of_a_task_keeps_the_current_one(
    yard: Yard, taskdb: RunningTaskDb, newest_first: bool
) -> None:
    await yard.create(overlap=task_pb2.OVERLAP_POLICY_FORBID)
    runner, _ = await yard.hello()
    (former,) = (await yard.claim(runner)).assignments
    await yard.report(runner, released(former))
    (current,) = (await yard.claim(runner)).assignments
    assert current.lease.generation == 2
    await yard.report(runner, started(current))
    listed = [current.lease, former.lease] if newest_first else [former.lease, current.lease]
    runner, opened = await yard.hello(runner, held=listed)
    (verdict,) = opened.verdicts
    assert (verdict.lease.generation, verdict.reason) == (1, "STALE_GENERATION")
    assert not (await yard.claim(runner)).assignments
    assert await taskdb.rows("SELECT generation, session_epoch, expire_time IS NULL FROM leases") == [
        (2, opened.session_epoch, True)
    ]


async def test_a_start_after_a_hello_that_did_not_list_it_keeps_the_first_lease(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    """The lease cannot follow a session that was superseded: it keeps the expiry of its claim."""
    await yard.create(overlap=task_pb2.OVERLAP_POLICY_FORBID)
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    ((expiry,),) = await taskdb.rows("SELECT expire_time FROM leases")
    runner, _ = await yard.hello(runner)
    await yard.report(runner, started(assignment))
    assert await taskdb.rows("SELECT expire_time FROM leases") == [(expiry,)]
    assert not (await yard.claim(runner)).assignments
    # Listed in time, the lease goes on under the session of now.
    _, opened = await yard.hello(runner, held=[assignment.lease])
    assert not opened.verdicts


async def test_queue_row_of_a_late_release_has_no_lease_beside_it(yard: Yard, taskdb: RunningTaskDb) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await yard.hello(runner)
    assert await taskdb.rows("SELECT has_lease FROM queue") == [(True,)]
    await yard.report(runner, released(assignment))
    assert await taskdb.rows("SELECT has_lease FROM queue") == [(False,)]
    (again,) = (await yard.claim(runner)).assignments
    assert again.lease.generation == 2


async def test_held_leases_that_are_gone_are_aborted(yard: Yard) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    _, opened = await yard.hello(runner, held=[assignment.lease])
    (verdict,) = opened.verdicts
    assert verdict.action == lease_pb2.LEASE_ACTION_ABORT
    assert verdict.reason == "TASK_TERMINAL"


async def test_a_listed_lease_follows_its_session(yard: Yard, taskdb: RunningTaskDb) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    assert await taskdb.rows("SELECT expire_time IS NULL FROM leases") == [(False,)]
    result = await yard.renew(runner, listed=[assignment.lease])
    assert not result.lost and not result.verdicts
    assert await taskdb.rows("SELECT expire_time IS NULL FROM leases") == [(True,)]


async def test_renewal_returns_a_cancel_until_it_is_confirmed(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name, reason="enough"))
    for _ in range(2):
        (verdict,) = (await yard.renew(runner)).verdicts
        assert verdict.action == lease_pb2.LEASE_ACTION_CANCEL
        assert verdict.reason == "enough"
        assert verdict.grace_period.seconds > 0
    confirmed = lease_pb2.RunReport(lease=assignment.lease, cancelled=lease_pb2.RunCancelled())
    (result,) = await yard.report(runner, confirmed)
    assert result.phase == task_pb2.TASK_PHASE_CANCELLED
    assert not (await yard.renew(runner)).verdicts


@pytest.mark.covers("CloseSession", "SESSION_SUPERSEDED")
async def test_a_closed_session_gives_back_what_it_held(yard: Yard) -> None:
    names = await yard.create(2)
    runner, _ = await yard.hello()
    first, _ = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first))
    close = session_service_pb2.CloseSessionRequest(
        runner_id=runner.id, session_epoch=runner.epoch, release=True
    )
    await yard.scheduler.sessions.CloseSession(close)
    await yard.scheduler.sessions.CloseSession(close)
    phases = [(await yard.task(name)).status.phase for name in names]
    assert phases == [task_pb2.TASK_PHASE_REDISTRIBUTING, task_pb2.TASK_PHASE_PENDING]
    assert (await yard.renew(runner)).lost
    other, _ = await yard.hello("runner-2")
    assert len((await yard.claim(other)).assignments) == 2
    with pytest.raises(SessionSuperseded):
        close.session_epoch += 1
        await yard.scheduler.sessions.CloseSession(close)


async def test_a_key_may_only_be_the_runner_of_its_scope(yard: Yard, taskdb: RunningTaskDb) -> None:
    stored = api_keys.StoredKey(
        "scoped1", api_keys.RUNNER, b"x" * 32, runner_scope=api_keys.RunnerScope("gpu-*", ("other",))
    )
    await taskdb.pool.run(lambda tx: api_keys.insert_key(tx, stored))
    yard.key_id = "scoped1"
    with pytest.raises(PermissionDenied):
        await yard.hello("cpu-1")
    await yard.create()
    runner, opened = await yard.hello("gpu-1")
    assert list(opened.runner.tenants) == ["other"]
    # The scope names other tenants: this tenant's work is not for it.
    assert not (await yard.claim(runner)).assignments


@pytest.mark.covers("VerifyApiKey", "UNAUTHENTICATED")
async def test_verify_api_key_returns_the_principal(yard: Yard, taskdb: RunningTaskDb) -> None:
    from services.taskdb.tests.conftest import make_key

    key = await make_key(taskdb.pool, api_keys.RUNNER, runner_scope=api_keys.RunnerScope("gpu-1"))
    request = session_service_pb2.VerifyApiKeyRequest(key=key)
    response = await yard.scheduler.sessions.VerifyApiKey(request)
    assert response.api_key.runner_scope.runner_id == "gpu-1"
    assert response.ttl.seconds > 0
    request.key = key[:-1] + ("a" if key[-1] != "a" else "b")
    with pytest.raises(Unauthenticated):
        await yard.scheduler.sessions.VerifyApiKey(request)


async def test_queue_watch_sends_lanes_as_they_change(yard: Yard) -> None:
    call = yard.scheduler.leases.WatchQueue(lease_service_pb2.WatchQueueRequest(scheduler_id="s"))
    first = await call.read()
    assert first.full and not first.lanes
    assert "default" in {share.tenant for share in first.tenants}
    await yard.create()
    async with asyncio.timeout(5):
        notice = await call.read()
        assert not notice.full
        (lane,), (defined,) = notice.lanes, notice.classes
        assert (lane.tenant, lane.backlog, lane.HasField("head_ready_time")) == ("default", 1, True)
        assert defined.class_id == lane.key.class_id
        assert defined.kind == runner_pb2.EXECUTION_KIND_COMMAND
        runner, _ = await yard.hello()
        result = await yard.claim(runner, lanes=[lease_service_pb2.LaneClaim(lane=lane.key)])
        assert [key.class_id for key in result.drained_lanes] == [lane.key.class_id]
        while lane.HasField("head_ready_time"):
            (lane,) = (await call.read()).lanes
        # A cancel reaches the scheduler of the holder at once.
        (assignment,) = result.assignments
        await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=assignment.lease.task))
        notice = await call.read()
        while not notice.verdicts:
            notice = await call.read()
        (sent,) = notice.verdicts
        assert sent.runner_id == runner.id
        assert sent.verdicts[0].lease == assignment.lease
    call.cancel()


@pytest.mark.covers("WatchQueue", "SERVER_DRAINING")
async def test_queue_watch_sends_that_it_is_closing(yard: Yard, taskdb: RunningTaskDb) -> None:
    call = yard.scheduler.leases.WatchQueue(lease_service_pb2.WatchQueueRequest(scheduler_id="s"))
    assert (await call.read()).full
    drain = asyncio.create_task(taskdb.taskdb.server.drain())
    async with asyncio.timeout(5):
        while not (await call.read()).closing:
            pass
    await drain
    # A new watch is refused: this server is going.
    with pytest.raises(Unavailable):
        await yard.scheduler.leases.ClaimForRunners(lease_service_pb2.ClaimForRunnersRequest())


async def test_other_replicas_are_notified_of_new_tasks_at_once(
    taskdb: RunningTaskDb, yard: Yard, database_url: str
) -> None:
    async for other in run_taskdb(database_url, housekeeping=False):
        far = await other.caller(api_keys.SCHEDULER)
        call = far.leases.WatchQueue(lease_service_pb2.WatchQueueRequest(scheduler_id="s"))
        assert (await call.read()).full
        async with asyncio.timeout(10):
            await yard.create()
            while not (notice := await call.read()).lanes:
                pass
        assert notice.lanes[0].backlog == 1
        call.cancel()


@pytest.mark.parametrize("overlap", [task_pb2.OVERLAP_POLICY_ALLOW, task_pb2.OVERLAP_POLICY_FORBID])
async def test_a_lease_that_its_runner_dropped_follows_the_session_no_longer(
    yard: Yard, taskdb: RunningTaskDb, overlap: task_pb2.OverlapPolicy.ValueType
) -> None:
    await yard.create(2, overlap=overlap)
    runner, _ = await yard.hello()
    kept, dropped = (await yard.claim(runner)).assignments
    await yard.renew(runner, listed=[kept.lease, dropped.lease])
    await yard.renew(runner, dropped=[dropped.lease], lease_seconds=60)
    sql = "SELECT expire_time - clock_timestamp() FROM leases WHERE expire_time IS NOT NULL"
    ((left,),) = await taskdb.rows(sql)
    # Where runs must not overlap, the lease lasts as long as that of a runner that is lost now.
    assert (left.total_seconds() > 30) is (overlap == task_pb2.OVERLAP_POLICY_FORBID)
    # The next heartbeat does not renew it.
    await yard.renew(runner)
    ((again,),) = await taskdb.rows(sql)
    assert again < left
