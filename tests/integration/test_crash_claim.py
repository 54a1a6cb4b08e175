"""taskdb killed after a claim was committed: its repeat returns it, or its first lease expires."""

from __future__ import annotations

import pytest

from services.taskdb.tests.yard import duration, started, succeeded
from taskyard.errors import Unavailable
from taskyard.v1 import lease_service_pb2, task_pb2
from tests.harness.taskdb_process import CrashingTaskDb


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    return ("--reap-grace", "0s")


async def test_tasks_claimed_just_before_a_crash_are_claimed_again_and_no_attempt_is_charged(
    taskdb: CrashingTaskDb,
) -> None:
    await taskdb.start("claim.after_commit=kill")
    yard = taskdb.yard
    names = await yard.create(4)
    patient, hasty = [(await yard.hello(name))[0] for name in ("patient", "hasty")]
    lanes = [lease_service_pb2.LaneClaim(lane=lane.key) for lane in await yard.lanes()]
    request = lease_service_pb2.ClaimForRunnersRequest(scheduler_id=yard.scheduler_id, request_id="claim-1")
    for runner, seconds in ((patient, 60), (hasty, 1)):
        wanted = request.runners.add(
            runner_id=runner.id,
            session_epoch=runner.epoch,
            max_tasks=2,
            lease_duration=duration(seconds),
        )
        wanted.tenants.add(tenant="default", max_tasks=2, lanes=lanes)
    with pytest.raises(Unavailable):
        await taskdb.leases.ClaimForRunners(request)
    await taskdb.killed()
    leased = dict(await taskdb.rows("SELECT task_id, lease_id FROM leases WHERE runner_id = 'patient'"))
    assert len(leased) == 2 and await taskdb.value("SELECT count(*) FROM leases") == 4
    await taskdb.expire_leadership()
    await taskdb.start()

    # The scheduler repeats the call for the runner that it still has.
    for _ in range(2):
        again = (
            await yard.claim(patient, 2, lanes=lanes, request_id="claim-1", lease_seconds=60)
        ).assignments
        assert {a.lease.task.rpartition("/")[2]: a.lease.lease_id for a in again} == leased
        assert {(a.lease.generation, a.attempt) for a in again} == {(1, 1)}
    # The other runner does not repeat its claim: the first leases expire and the tasks are requeued.
    await taskdb.until("SELECT count(*) = 2 FROM queue")
    other, _ = await yard.hello("other")
    returned = (await yard.claim(other)).assignments
    assert {(a.lease.generation, a.attempt) for a in returned} == {(2, 1)}
    assert sorted(a.lease.task for a in (*again, *returned)) == sorted(names)

    for runner, assignments in ((patient, again), (other, returned)):
        results = await yard.report(runner, *(r for a in assignments for r in (started(a), succeeded(a))))
        assert not any(result.duplicate or result.error.code for result in results)
    for name in names:
        status = (await yard.task(name)).status
        assert (status.phase, status.attempt) == (task_pb2.TASK_PHASE_SUCCEEDED, 1)
        assert (status.retry_count, status.runner_loss_count) == (0, 0)
