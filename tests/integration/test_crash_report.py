"""taskdb killed around reports: an outcome is stored once, whatever response its reporter got."""

from __future__ import annotations

import pytest

from services.taskdb.tests.yard import failed, released, short_runs, started, succeeded
from taskyard.errors import Unavailable
from taskyard.v1 import common_pb2, task_pb2
from tests.harness.taskdb_process import CrashingTaskDb

PATIENT = common_pb2.RetryPolicy(max_retries=3)
PATIENT.backoff.initial.seconds = 3600
PATIENT.backoff.max.seconds = 3600


# The batch below is stored by two transactions: plain successes, then what Python decides. An earlier report
# has passed each failpoint once.
CRASHES = [
    ("report.before_commit=kill@2", "nothing"),
    ("report.after_commit=kill@2", "plain"),
    ("report.before_commit=kill@3", "plain"),
    ("report.after_commit=kill@3", "everything"),
]


@pytest.mark.parametrize(("failpoint", "kept"), CRASHES)
async def test_reports_interrupted_by_a_crash_are_applied_once_when_repeated(
    taskdb: CrashingTaskDb, failpoint: str, kept: str
) -> None:
    await taskdb.start(failpoint)
    yard = taskdb.yard
    names = await yard.create(5, retry=PATIENT)
    names += await yard.create(1, slot="press", admission=task_pb2.ADMISSION_POLICY_QUEUE)
    (waiter,) = await yard.create(1, slot="press", admission=task_pb2.ADMISSION_POLICY_QUEUE)
    runner, _ = await yard.hello()
    claimed = {a.lease.task: a for a in (await yard.claim(runner)).assignments}
    whole, plain, flaky, broken, unwanted, slotted = (claimed[name] for name in names)
    await yard.report(runner, *(started(a) for a in (plain, flaky, broken, slotted)))
    result = task_pb2.TaskResult(output=common_pb2.Payload(raw=b"42"))
    reports = [
        started(whole),
        succeeded(whole, exit_code=0, result=result),
        succeeded(plain, exit_code=0),
        failed(flaky),
        failed(broken, permanent=True),
        released(unwanted),
        succeeded(slotted),
    ]
    phases = [
        task_pb2.TASK_PHASE_RUNNING,
        task_pb2.TASK_PHASE_SUCCEEDED,
        task_pb2.TASK_PHASE_SUCCEEDED,
        task_pb2.TASK_PHASE_PENDING,
        task_pb2.TASK_PHASE_FAILED,
        task_pb2.TASK_PHASE_PENDING,
        task_pb2.TASK_PHASE_SUCCEEDED,
    ]
    with pytest.raises(Unavailable):
        await yard.report(runner, *reports)
    await taskdb.killed()
    await taskdb.start()

    # The successes, with the start of the first.
    plainly = {0, 1, 2, 6}
    known = {"nothing": set[int](), "plain": plainly, "everything": set(range(len(reports)))}[kept]
    results = await yard.report(runner, *reports)
    assert [not r.HasField("error") or r.error.code == 0 for r in results] == [True] * len(reports)
    assert [r.duplicate for r in results] == [n in known for n in range(len(reports))]
    again = await yard.report(runner, *reports)
    assert [r.duplicate for r in again] == [True] * len(reports)
    # A repeated start is answered with the current phase of the task.
    assert [r.phase for r in again[1:]] == phases[1:]
    assert [r.phase for r in results[1:]] == phases[1:]

    runs = await taskdb.rows("SELECT task_id, generation, attempt, state FROM ended_runs")
    states = {f"tenants/default/tasks/{task_id}": tuple(rest) for task_id, *rest in runs}
    assert len(runs) == len(states) == len(names), "every run is recorded once"
    # Generation, attempt, and the state: 3 succeeded, 4 failed, 8 released.
    ended = [(1, 1, 3), (1, 1, 3), (1, 1, 4), (1, 1, 4), (1, 0, 8), (1, 1, 3)]
    assert [states[name] for name in names] == ended
    assert (await yard.task(names[0])).status.result.output.raw == b"42"
    flaked = await yard.task(names[2])
    assert (flaked.status.attempt, flaked.status.retry_count) == (1, 1)
    # The slot went to the waiter once, and the released task is claimable again; no other is.
    waiter_id = waiter.rpartition("/")[2]
    assert await taskdb.rows("SELECT head_task_id FROM slots") == [(waiter_id,)]
    promoted = await taskdb.rows(f"SELECT version FROM changes WHERE resource_id = '{waiter_id}' ORDER BY id")
    assert promoted == [(1,), (2,)]
    left = [a.lease.task for a in (await yard.claim(runner)).assignments]
    assert sorted(left) == sorted([names[4], waiter])


async def test_a_start_interrupted_by_a_crash_charges_one_attempt(taskdb: CrashingTaskDb) -> None:
    await taskdb.start("report.after_commit=kill")
    yard = taskdb.yard
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    with pytest.raises(Unavailable):
        await yard.report(runner, started(claimed))
    await taskdb.killed()
    await taskdb.start()
    (repeat,) = await yard.report(runner, started(claimed))
    assert (repeat.duplicate, repeat.phase) == (True, task_pb2.TASK_PHASE_RUNNING)
    forged = started(claimed)
    forged.lease.lease_id += 1
    (other,) = await yard.report(runner, forged)
    assert "LEASE_NOT_HELD" in str(other.error)
    (end,) = await yard.report(runner, succeeded(claimed))
    assert (end.duplicate, end.phase) == (False, task_pb2.TASK_PHASE_SUCCEEDED)
    task = await yard.task(name)
    # Created, scheduled, started, succeeded.
    assert (task.status.attempt, task.metadata.resource_version) == (1, 4)


@pytest.mark.parametrize(("failpoint", "kept"), [("report.before_commit", 0), ("report.after_commit", 2)])
async def test_short_runs_interrupted_by_a_crash_are_completed_once(
    taskdb: CrashingTaskDb, failpoint: str, kept: int
) -> None:
    await taskdb.start(f"{failpoint}=kill")
    yard = taskdb.yard
    names = await yard.create(2)
    runner, _ = await yard.hello()
    holder = short_runs(runner, *(await yard.claim(runner)).assignments)
    with pytest.raises(Unavailable):
        await yard.complete(holder)
    await taskdb.killed()
    await taskdb.start()
    repeated = await taskdb.yard.complete(holder)
    assert [one.result.duplicate for one in repeated] == [True] * kept
    for name in names:
        assert (await taskdb.yard.task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    rows = await taskdb.rows("SELECT completed_count FROM runner_counts")
    assert rows == [(2,)]
