"""BatchResetTasks for runs that hang, and retries that keep the count."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2

PARENT = "tenants/default"
Phase = task_pb2.TaskPhase


async def reset(caller: Caller, **fields: object) -> list[int]:
    """The codes per task."""
    request = task_service_pb2.BatchResetTasksRequest(parent=PARENT, **fields)  # type: ignore[arg-type]
    return [result.status.code for result in (await caller.tasks.BatchResetTasks(request)).results]


@pytest.mark.seed("S1.56")
async def test_stale_tasks_are_listed_and_reset_with_a_reason(yard: Yard, taskdb: RunningTaskDb) -> None:
    """Claimed by runner-1, silent for half an hour; another task is younger."""
    stale, young = await yard.create(2)
    runner, _ = await yard.hello()
    first, second = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first), started(second))
    await taskdb.execute(
        "UPDATE leases SET start_time = start_time - interval '1 h', schedule_time = schedule_time - "
        "interval '1 h' WHERE task_id = %s",
        stale.rpartition("/")[2],
    )
    await taskdb.execute(
        "UPDATE tasks SET update_time = update_time - interval '1 h', create_time = create_time - "
        "interval '1 h' WHERE task_id = %s",
        stale.rpartition("/")[2],
    )
    before = (datetime.now(UTC) - timedelta(minutes=30)).isoformat()
    condition = f'status.phase = RUNNING AND metadata.update_time < "{before}"'
    listed = await yard.tenant.tasks.ListTasks(
        task_service_pb2.ListTasksRequest(parent=PARENT, filter=condition)
    )
    assert [task.name for task in listed.tasks] == [stale]
    assert await reset(yard.tenant, filter=condition) == [0]
    status = (await yard.task(stale)).status
    assert (Phase.Name(status.phase), status.retry_count, status.runner) == ("TASK_PHASE_PENDING", 0, "")
    assert (status.error.code, status.error.message) == ("RESET", "Task timed out and was reset")
    assert (await yard.task(young)).status.phase == task_pb2.TASK_PHASE_RUNNING


@pytest.mark.seed("S1.57")
async def test_the_old_holder_of_a_reset_task_is_rejected_and_another_claims_it(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (old,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(old))
    assert await reset(yard.tenant, names=[name], reason="it hangs") == [0]
    (late,) = await yard.report(runner, succeeded(old))
    assert isinstance(from_status(late.error), errors.LeaseNotHeld)
    second, _ = await yard.hello("runner-2")
    (new,) = (await yard.claim(second)).assignments
    await yard.report(second, started(new), succeeded(new))
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED and task.status.runner_loss_count == 1


async def test_a_task_that_is_reset_too_often_is_exhausted(yard: Yard) -> None:
    (name,) = await yard.create(retry=common_pb2.RetryPolicy(max_runner_losses=1))
    runner, _ = await yard.hello()
    for _ in range(2):
        (assignment,) = (await yard.claim(runner)).assignments
        await yard.report(runner, started(assignment))
        assert await reset(yard.tenant, names=[name]) == [0]
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_EXHAUSTED


async def test_exclusive_work_is_reset_once_its_holder_has_stopped_it(yard: Yard) -> None:
    (name,) = await yard.create(slot="s")
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    assert await reset(yard.tenant, filter='spec.slot = "s"', reason="it hangs") == [0]
    assert await reset(yard.tenant, filter='spec.slot = "s"') == [], "it is found once"
    status = (await yard.task(name)).status
    assert status.phase == task_pb2.TASK_PHASE_RUNNING and status.error.message == "it hangs"
    assert status.requested_action.action == task_pb2.TASK_ACTION_RESET
    (verdict,) = (await yard.renew(runner, listed=[assignment.lease])).verdicts
    assert (verdict.lease, verdict.action) == (assignment.lease, lease_pb2.LEASE_ACTION_CANCEL)
    assert (await yard.claim(runner)).assignments == []
    stopped = lease_pb2.RunReport(lease=assignment.lease, cancelled=lease_pb2.RunCancelled())
    await yard.report(runner, stopped)
    (again,) = (await yard.claim(runner)).assignments
    assert again.lease.generation == 2
    status = (await yard.task(name)).status
    assert (status.runner_loss_count, status.retry_count) == (1, 0)


async def test_heartbeats_do_not_renew_exclusive_work_that_its_holder_does_not_stop(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    """The lease of the reset run ends where it was when the holder's time to stop it was over."""
    (name,) = await yard.create(slot="s", stop_grace_period=Duration(seconds=1))
    runner, _ = await yard.hello(lease_seconds=3)
    (old,) = (await yard.claim(runner, lease_seconds=3)).assignments
    await yard.report(runner, started(old))
    assert await reset(yard.tenant, names=[name]) == [0]
    await taskdb.execute("UPDATE leases SET action_deadline = now()")
    ended = asyncio.get_running_loop().time() + 60
    while (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_RUNNING:
        assert asyncio.get_running_loop().time() < ended, "the reset has no effect"
        await yard.renew(runner, listed=[old.lease], lease_seconds=3)
    task = await yard.task(name)
    assert (task.status.phase, task.status.error.code) == (task_pb2.TASK_PHASE_PENDING, "RESET")
    (new,) = (await yard.claim(runner)).assignments
    assert new.lease.generation == 2


@pytest.mark.covers("BatchResetTasks", "PHASE_CONFLICT")
@pytest.mark.covers("BatchResetTasks", "NOT_FOUND")
@pytest.mark.covers("BatchResetTasks", "FILTER_INVALID")
@pytest.mark.covers("BatchResetTasks", "BATCH_TOO_LARGE")
async def test_only_leased_tasks_are_reset(yard: Yard) -> None:
    (name,) = await yard.create()
    request = task_service_pb2.BatchResetTasksRequest(parent=PARENT, names=[name, f"{PARENT}/tasks/none"])
    waiting, missing = (await yard.tenant.tasks.BatchResetTasks(request)).results
    assert isinstance(from_status(waiting.status), errors.PhaseConflict)
    assert isinstance(from_status(missing.status), errors.NotFound)
    with pytest.raises(errors.FilterInvalid):
        await reset(yard.tenant, filter="no such field")
    with pytest.raises(errors.BatchTooLarge):
        await reset(yard.tenant, names=[f"{PARENT}/tasks/{n}" for n in range(1001)])


@pytest.mark.seed("S1.52-53")
async def test_a_manual_retry_keeps_the_count_if_asked(yard: Yard) -> None:
    (name,) = await yard.create(
        retry=common_pb2.RetryPolicy(
            max_retries=2,
            backoff=common_pb2.BackoffPolicy(
                initial=Duration(nanos=1_000_000), jitter=common_pb2.JITTER_POLICY_NONE
            ),
        )
    )
    runner, _ = await yard.hello()

    async def fail(*, permanent: bool) -> None:
        while not (claimed := (await yard.claim(runner)).assignments):
            pass
        await yard.report(runner, started(claimed[0]), failed(claimed[0], permanent=permanent))

    async def retry() -> task_pb2.TaskStatus:
        request = task_service_pb2.RetryTaskRequest(name=name, keep_retry_count=True)
        status: task_pb2.TaskStatus = (await yard.tenant.tasks.RetryTask(request)).task.status
        return status

    await fail(permanent=False)
    await fail(permanent=True)
    status = await retry()
    assert (status.phase, status.retry_count) == (task_pb2.TASK_PHASE_PENDING, 1)
    assert not status.HasField("error")
    await fail(permanent=False)
    await fail(permanent=False)
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_EXHAUSTED
    with pytest.raises(errors.PhaseConflict):
        await retry()
