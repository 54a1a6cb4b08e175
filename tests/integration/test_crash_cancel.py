"""taskdb killed after a cancel was committed: the next process sends it to the holder, no attempt follows."""

from __future__ import annotations

import pytest

from services.taskdb.tests.yard import Assignment, duration, failed, released, started, succeeded
from taskyard.errors import Unavailable
from taskyard.v1 import lease_pb2, task_pb2, task_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb

CANCELLED, SUCCEEDED = task_pb2.TASK_PHASE_CANCELLED, task_pb2.TASK_PHASE_SUCCEEDED


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    return ("--reap-grace", "0s")


def cancelled(assignment: Assignment) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(lease=assignment.lease, cancelled=lease_pb2.RunCancelled(exit_code=143))


def cancel_verdicts(verdicts: object) -> set[str]:
    """The tasks of the cancel verdicts that the holder received; it received no others."""
    received = list(verdicts)  # type: ignore[call-overload]
    assert {verdict.action for verdict in received} <= {lease_pb2.LEASE_ACTION_CANCEL}
    return {verdict.lease.task for verdict in received}


async def test_a_cancel_committed_before_a_crash_reaches_the_holder_and_the_outcome_rules_hold(
    taskdb: CrashingTaskDb,
) -> None:
    await taskdb.start("cancel.after_commit=kill")
    yard = taskdb.yard
    held = await yard.create(5)
    # Leases and grace outlast a restart of taskdb on a busy machine.
    runner, _ = await yard.hello(lease_seconds=120)
    claimed = {a.lease.task: a for a in (await yard.claim(runner, lease_seconds=120)).assignments}
    obedient, quick, clumsy, draining, unstarted = (claimed[name] for name in held)
    await yard.report(runner, *(started(a) for a in (obedient, quick, clumsy, draining)))
    (waiting,) = await yard.create()
    everything = task_service_pb2.BatchCancelTasksRequest(
        parent="tenants/default", names=[*held, waiting], grace_period=duration(120)
    )
    with pytest.raises(Unavailable):
        await taskdb.tasks.BatchCancelTasks(everything)
    await taskdb.killed()
    await taskdb.start()

    assert cancel_verdicts((await yard.renew(runner)).verdicts) == set(held)
    # The agent reconnects with a new stream and receives the verdicts again.
    _, opened = await yard.hello(runner, lease_seconds=120, held=[a.lease for a in claimed.values()])
    assert cancel_verdicts(opened.verdicts) == set(held)
    assert not (await yard.claim(runner)).assignments
    versions = [(await yard.task(name)).metadata.resource_version for name in (*held, waiting)]
    repeated = await taskdb.tasks.BatchCancelTasks(everything)
    assert [result.status.code for result in repeated.results[:-1]] == [0] * len(held)
    assert [(await yard.task(name)).metadata.resource_version for name in (*held, waiting)] == versions

    given_back = released(draining, lease_pb2.RELEASE_REASON_DRAINED)
    reports = [cancelled(obedient), succeeded(quick), failed(clumsy), given_back, cancelled(unstarted)]
    results = await yard.report(runner, *reports)
    assert [result.phase for result in results] == [CANCELLED, SUCCEEDED, CANCELLED, CANCELLED, CANCELLED]
    assert (await yard.task(waiting)).status.phase == CANCELLED
    assert not (await yard.claim(runner)).assignments
    attempts = await taskdb.value("SELECT max(generation) FROM tasks")
    assert attempts == 1, "no new attempt starts after a cancel"


async def test_a_cancel_whose_holder_is_gone_takes_effect_after_its_grace(taskdb: CrashingTaskDb) -> None:
    await taskdb.start("cancel.after_commit=kill")
    yard = taskdb.yard
    (name,) = await yard.create()
    runner, _ = await yard.hello(lease_seconds=120)
    (claimed,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(claimed))
    cancel = task_service_pb2.CancelTaskRequest(name=name, grace_period=duration(0.5), reason="enough")
    with pytest.raises(Unavailable):
        await taskdb.tasks.CancelTask(cancel)
    await taskdb.killed()
    assert await taskdb.value("SELECT requested_action FROM leases") == lease_pb2.LEASE_ACTION_CANCEL
    await taskdb.expire_leadership()
    await taskdb.start()

    await taskdb.until("SELECT end_time IS NOT NULL FROM tasks")
    assert (await yard.task(name)).status.phase == CANCELLED
    (late,) = await yard.report(runner, succeeded(claimed))
    assert "TASK_TERMINAL" in str(late.error)
    (verdict,) = (await yard.renew(runner)).verdicts
    assert (verdict.lease.task, verdict.action) == (name, lease_pb2.LEASE_ACTION_ABORT)
    assert not (await yard.claim(runner)).assignments
    assert (await yard.task(name)).status.phase == CANCELLED
