"""Pull workers are listed as runners."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.test_runners import die, drain, get, listed
from services.taskdb.tests.yard import Runner, Yard, duration
from taskyard.errors import PermissionDenied
from taskyard.v1 import lease_service_pb2, runner_pb2, runner_service_pb2, session_service_pb2
from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.runner import admin as runner_admin
from tests.harness.link_runner import registration

HEALTHY, STOPPED = runner_pb2.RUNNER_STATE_HEALTHY, runner_pb2.RUNNER_STATE_STOPPED


async def register(yard: Yard, worker: str = "worker-1", seconds: float = 120, **fields: Any) -> Any:
    fields.setdefault("registration", registration(10))
    request = session_service_pb2.RegisterWorkerRequest(
        scheduler_id="s", worker_id=worker, key_id=yard.key_id, duration=duration(seconds), **fields
    )
    return await yard.scheduler.sessions.RegisterWorker(request)


async def test_a_worker_is_listed_with_its_tasks_until_it_stops(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await register(yard)
    (name,) = await yard.create()
    assert len((await yard.claim(Runner("worker-1", yard.key_id))).assignments) == 1
    shown = await get(admin, "worker-1")
    assert (shown.state, list(shown.tasks), shown.used_capacity) == (HEALTHY, [name], 1)
    assert shown.registration.capacity == 10
    assert await listed(admin, "state = HEALTHY") == ["worker-1"]
    await die(taskdb, "worker-1")
    assert await listed(admin, "state = STOPPED") == ["worker-1"]
    async with taskdb.pool.transaction() as tx:
        assert await overdue.expire_sessions(tx, 10) == ["worker-1"]
    await register(yard, registration=None)
    assert (await get(admin, "worker-1")).state == HEALTHY


async def test_renewals_change_no_version_and_list_nobody(yard: Yard, admin: Caller) -> None:
    assert not (await register(yard, registration=None)).HasField("runner")
    assert await listed(admin) == []
    await register(yard)
    before = await get(admin, "worker-1")
    await register(yard)
    await register(yard, registration=None)
    after = await get(admin, "worker-1")
    assert (after.resource_version, after.session_id) == (before.resource_version, before.session_id)
    assert after.heartbeat_time.ToNanoseconds() > before.heartbeat_time.ToNanoseconds()
    await register(yard, registration=registration(20))
    assert (await get(admin, "worker-1")).registration.capacity == 20


async def test_a_draining_worker_gets_no_task(yard: Yard, admin: Caller) -> None:
    worker = Runner("worker-1", yard.key_id)
    await register(yard)
    await yard.create(2)
    assert (await drain(admin, "worker-1")).state == runner_pb2.RUNNER_STATE_DRAINING
    result = await yard.claim(worker, 1)
    assert not result.assignments and not result.HasField("error")
    await admin.runners.UndrainRunner(runner_service_pb2.UndrainRunnerRequest(name="runners/worker-1"))
    assert len((await yard.claim(worker, 1)).assignments) == 1


async def test_a_worker_that_is_deleted_while_it_works_is_refused_until_it_would_have_stopped(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await register(yard)
    await admin.runners.DeleteRunner(runner_service_pb2.DeleteRunnerRequest(name="runners/worker-1"))
    with pytest.raises(PermissionDenied, match="was deleted while it worked"):
        await register(yard)
    await register(yard, registration=None)
    assert await listed(admin) == []
    await die(taskdb, "worker-1")
    await register(yard)
    assert await listed(admin, "state = HEALTHY") == ["worker-1"]


async def test_a_worker_that_stopped_long_ago_is_forgotten_and_may_return(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await register(yard)
    await die(taskdb, "worker-1", timedelta(days=8))
    async with taskdb.pool.transaction() as tx:
        assert await runner_admin.forget_dead(tx, timedelta(days=7), 10) == 1
    assert await listed(admin) == []
    await register(yard)
    assert await listed(admin, "state = HEALTHY") == ["worker-1"]


async def test_an_agent_keeps_its_session_and_its_leases(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello("worker-1")
    await yard.create()
    (assignment,) = (await yard.claim(runner, 1)).assignments
    await yard.renew(runner, listed=[assignment.lease])
    before = await get(admin, "worker-1")
    await register(yard)
    after = await get(admin, "worker-1")
    assert (after.session_id, after.registration) == (before.session_id, before.registration)
    # A lease that follows the ended session of the agent must not live on by a worker's.
    await die(taskdb, "worker-1")
    await register(yard)
    assert (await get(admin, "worker-1")).state == runner_pb2.RUNNER_STATE_DEAD


async def test_a_worker_is_no_candidate_of_an_explanation_unless_it_claims(yard: Yard) -> None:
    await yard.hello("runner-1")
    await register(yard)
    (name,) = await yard.create()
    request = lease_service_pb2.ReadExplainFactsRequest(tenant="default", task_id=name.rpartition("/")[2])
    facts = await yard.scheduler.leases.ReadExplainFacts(request)
    assert [found.runner.name for found in facts.runners] == ["runners/runner-1"]


async def test_an_agent_takes_the_id_of_a_worker(yard: Yard, admin: Caller) -> None:
    await register(yard)
    runner, _ = await yard.hello("worker-1")
    assert runner.epoch == 2
    assert (await get(admin, "worker-1")).registration.capacity == 100
