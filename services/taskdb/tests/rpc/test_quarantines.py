"""Specs that keep killing runners: held back from every claim until they are released."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.yard import Yard
from taskyard.errors import NotFound, PageTokenInvalid
from taskyard.v1 import admin_service_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.event import Event, LeaseExpired
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.small_sweeps import QuarantineSweep
from tests.harness.invariants import assert_invariants

POISON = task_pb2.Execution(command=task_pb2.CommandExecution(program="poison"))


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def admin(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller(api_keys.ADMIN)


async def lose_runners(quiet: RunningTaskDb, name: str, times: int) -> None:
    """Let runners claim and start the task, and lose each of them."""

    def expire(task: TaskState, now: Any) -> Event:
        return LeaseExpired(generation=task.generation)

    for _ in range(times):
        await quiet.start(name)
        await quiet.execute("UPDATE leases SET expire_time = now() - interval '1 s'")
        await quiet.apply(name, expire)


@pytest.mark.covers("ListQuarantines", "PAGE_TOKEN_INVALID")
@pytest.mark.covers("ReleaseQuarantine", "NOT_FOUND")
async def test_a_spec_that_keeps_killing_runners_is_quarantined_until_it_is_released(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="poison"))
    (name,) = await yard.create(execution=execution)
    await lose_runners(quiet, name, 4)
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_EXHAUSTED and task.status.error.code == "QUARANTINED"
    request = admin_service_pb2.ListQuarantinesRequest(parent="tenants/-")
    (held,) = (await admin.admin.ListQuarantines(request)).quarantines
    assert held.example_task == name and held.runner_loss_count == 4
    own = admin_service_pb2.ListQuarantinesRequest(parent="tenants/default", page_size=1)
    assert len((await admin.admin.ListQuarantines(own)).quarantines) == 1
    release = admin_service_pb2.ReleaseQuarantineRequest(name=held.name)
    for _ in range(2):
        await admin.admin.ReleaseQuarantine(release)
    assert not (await admin.admin.ListQuarantines(request)).quarantines
    events = await quiet.rows("SELECT event FROM changes WHERE resource_kind = 6 ORDER BY id")
    assert events == [(90,), (91,)]
    # The same thing with another payload is the same spec.
    (again,) = await yard.create(execution=execution, retention=Duration(seconds=5))
    await lose_runners(quiet, again, 4)
    (found,) = (await admin.admin.ListQuarantines(request)).quarantines
    assert (found.name, found.example_task) == (held.name, again)
    with pytest.raises(NotFound):
        await admin.admin.ReleaseQuarantine(
            admin_service_pb2.ReleaseQuarantineRequest(name="tenants/default/quarantines/00")
        )
    with pytest.raises(PageTokenInvalid):
        await admin.admin.ListQuarantines(
            admin_service_pb2.ListQuarantinesRequest(parent="tenants/-", page_token="x")
        )


async def test_queued_tasks_of_a_quarantined_spec_are_paused_and_resumed_by_its_release(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="poison"))
    (name,) = await yard.create(execution=execution)
    await lose_runners(quiet, name, 4)
    (harmless,) = await yard.create()
    waiting = await yard.create(3, execution=execution)
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    sweep = QuarantineSweep(quiet.pool, quiet.taskdb._after_commit)
    for _ in range(2):
        await sweep.run(leadership)
    runner, _ = await yard.hello()
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == [harmless]
    for task in waiting:
        assert (await yard.task(task)).status.phase == task_pb2.TASK_PHASE_PAUSED
    request = admin_service_pb2.ListQuarantinesRequest(parent="tenants/default")
    (held,) = (await admin.admin.ListQuarantines(request)).quarantines
    await admin.admin.ReleaseQuarantine(admin_service_pb2.ReleaseQuarantineRequest(name=held.name))
    await sweep.run(leadership)
    assert sorted(a.lease.task for a in (await yard.claim(runner)).assignments) == sorted(waiting)
    assert not await quiet.rows("SELECT FROM quarantine_holds")
    assert_invariants(quiet.url)


async def poisoned(quiet: RunningTaskDb, yard: Yard) -> str:
    """A task whose spec is quarantined."""
    (name,) = await yard.create(execution=POISON)
    await lose_runners(quiet, name, 4)
    return name


async def release(admin: Caller) -> None:
    request = admin_service_pb2.ListQuarantinesRequest(parent="tenants/default")
    (held,) = (await admin.admin.ListQuarantines(request)).quarantines
    await admin.admin.ReleaseQuarantine(admin_service_pb2.ReleaseQuarantineRequest(name=held.name))


async def test_an_idle_runner_gets_no_quarantined_spec_and_runs_it_after_the_release(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    """Without any sweep: the claim itself holds back what it meets."""
    runner, _ = await yard.hello()
    first = await poisoned(quiet, yard)
    again = await yard.create(2, execution=POISON, retention=Duration(seconds=5))
    (harmless,) = await yard.create()
    await yard.tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=first))
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == [harmless]
    for name in (first, *again):
        assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_PAUSED
    reasons = await quiet.rows("SELECT DISTINCT details->>'reason' FROM changes WHERE event = 6")
    assert len(reasons) == 1 and reasons[0][0].startswith("its spec is quarantined: quarantines/")
    assert_invariants(quiet.url)
    await release(admin)
    assert {a.lease.task for a in (await yard.claim(runner)).assignments} == {first, *again}
    assert not await quiet.rows("SELECT FROM quarantine_holds")
    assert_invariants(quiet.url)


async def test_a_task_resumed_while_its_spec_is_quarantined_is_paused_again(
    quiet: RunningTaskDb, yard: Yard
) -> None:
    runner, _ = await yard.hello()
    await poisoned(quiet, yard)
    (name,) = await yard.create(execution=POISON)
    for _ in range(2):
        assert not (await yard.claim(runner)).assignments
        assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_PAUSED
        await yard.tenant.tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=name))
    assert_invariants(quiet.url)


async def test_a_lost_run_of_a_spec_quarantined_meanwhile_is_not_claimed_again(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    (name,) = await yard.create(execution=POISON)
    await lose_runners(quiet, name, 1)
    await poisoned(quiet, yard)
    runner, _ = await yard.hello()
    assert await quiet.rows("SELECT has_lease FROM queue") == [(True,)]
    assert not (await yard.claim(runner)).assignments
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_PAUSED
    assert_invariants(quiet.url)
    await release(admin)
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == [name]


async def test_a_claim_from_many_lanes_passes_over_quarantined_specs(
    quiet: RunningTaskDb, yard: Yard
) -> None:
    runner, _ = await yard.hello()
    await poisoned(quiet, yard)
    held = [(await yard.create(execution=POISON, priority=priority))[0] for priority in range(1, 9)]
    good = [(await yard.create(priority=priority))[0] for priority in range(1, 9)]
    assert {a.lease.task for a in (await yard.claim(runner)).assignments} == set(good)
    for name in held:
        assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_PAUSED
    assert_invariants(quiet.url)


async def test_a_quarantine_applies_to_claims_of_another_replica(quiet: RunningTaskDb, yard: Yard) -> None:
    async for other in run_taskdb(quiet.url, housekeeping=False):
        there = await make_yard(other, await other.caller(api_keys.SCHEDULER), await other.caller(), "s-2")
        runner, _ = await there.hello()
        (before,) = await there.create(execution=POISON)
        assert [a.lease.task for a in (await there.claim(runner)).assignments] == [before]
        await poisoned(quiet, yard)
        (name,) = await there.create(execution=POISON)
        assert not (await there.claim(runner)).assignments
        assert (await there.task(name)).status.phase == task_pb2.TASK_PHASE_PAUSED


async def test_a_pull_worker_gets_no_quarantined_spec(quiet: RunningTaskDb, yard: Yard) -> None:
    await poisoned(quiet, yard)
    await yard.create(execution=POISON)
    (harmless,) = await yard.create()
    pop = lease_service_pb2.RunnerClaim(
        runner_id="puller",
        max_tasks=10,
        tenants=[
            lease_service_pb2.TenantClaim(tenant="default", max_tasks=10, lanes=await yard.lane_claims())
        ],
    )
    request = lease_service_pb2.ClaimForRunnersRequest(scheduler_id="s", request_id="p-1", runners=[pop])
    answer = await yard.scheduler.leases.ClaimForRunners(request)
    assert [a.lease.task for a in answer.results[0].assignments] == [harmless]


async def test_what_is_about_to_be_held_while_its_spec_is_released_is_not_left_behind(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    await poisoned(quiet, yard)
    (name,) = await yard.create(execution=POISON)
    ((digest,),) = await quiet.rows("SELECT digest FROM quarantines")
    key = ("default", name.rsplit("/", 1)[1])
    await asyncio.gather(
        release(admin),
        *(quiet.pool.run(lambda tx: quarantine_holds.hold(tx, "default", digest, [key])) for _ in range(4)),
    )
    await quiet.pool.run(lambda tx: quarantine_holds.hold(tx, "default", digest, [key]))
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_PENDING
    assert not await quiet.rows("SELECT FROM quarantine_holds")
    assert_invariants(quiet.url)
