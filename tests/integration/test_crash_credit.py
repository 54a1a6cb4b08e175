"""taskdb killed after a lease on credit was committed and before it was sent: the first lease expires."""

from __future__ import annotations

import asyncio

import pytest

from services.taskdb.tests.yard import duration, started, succeeded
from taskyard.errors import Unavailable
from taskyard.v1 import lease_service_pb2, task_pb2
from tests.harness.taskdb_process import CrashingTaskDb


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    return ("--reap-grace", "0s")


async def test_a_task_leased_just_before_a_crash_is_claimed_and_no_attempt_is_charged(
    taskdb: CrashingTaskDb,
) -> None:
    await taskdb.start("create.before_push=kill")
    yard = taskdb.yard
    await yard.create()
    runner, _ = await yard.hello()
    (first,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first), succeeded(first))
    await give_credit(taskdb, runner.id, runner.epoch)
    with pytest.raises(Unavailable):
        await yard.create()
    await taskdb.killed()
    ((name, generation),) = await taskdb.rows("SELECT task_id, generation FROM leases")
    assert (generation, await taskdb.value("SELECT count(*) FROM queue")) == (1, 0)
    await taskdb.expire_leadership()
    await taskdb.start()

    await taskdb.until("SELECT count(*) = 1 FROM queue")
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task.rpartition("/")[2], again.lease.generation, again.attempt) == (name, 2, 1)
    await yard.report(runner, started(again), succeeded(again))
    status = (await yard.task(again.lease.task)).status
    assert (status.phase, status.attempt) == (task_pb2.TASK_PHASE_SUCCEEDED, 1)
    assert (status.retry_count, status.runner_loss_count) == (0, 0)


async def give_credit(taskdb: CrashingTaskDb, runner_id: str, epoch: int) -> None:
    """Credit for one task of the class that has had work, whose first lease lasts a second."""
    ((class_id,),) = await taskdb.rows("SELECT DISTINCT class_id FROM tasks")
    scheduler_id = taskdb.yard.scheduler_id
    watch = taskdb.leases.WatchQueue(lease_service_pb2.WatchQueueRequest(scheduler_id=scheduler_id))
    position = (await watch.read()).position
    call = taskdb.leases.KeepCredit(None)
    request = lease_service_pb2.KeepCreditRequest(
        scheduler_id=scheduler_id, position=position, valid_for=duration(60)
    )
    request.runners.add(
        runner_id=runner_id,
        session_epoch=epoch,
        places=1,
        valid_for=duration(60),
        lease_duration=duration(1),
        class_ids=[class_id],
    )
    # Settled after the credit before it was applied.
    request.runners.add(runner_id="mark", session_epoch=1, withdrawn=True)
    await call.write(request)
    async with asyncio.timeout(15):
        assert (await call.read()).settled == ["mark"]
