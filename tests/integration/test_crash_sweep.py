"""The sweeps of taskdb, killed and held up halfway: timers fire once, outcomes stay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.yard import failed, started, succeeded
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from tests.harness.pause import Pause
from tests.harness.taskdb_process import CrashingTaskDb

SWEEP = "sweep.between_select_and_update"


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    return ("--reap-grace", "0s")


def retries(count: int, delay: timedelta) -> common_pb2.RetryPolicy:
    policy = common_pb2.RetryPolicy(max_retries=count)
    policy.backoff.initial.FromTimedelta(delay)
    policy.backoff.max.FromTimedelta(delay)
    policy.backoff.jitter = common_pb2.JITTER_POLICY_NONE
    return policy


def after(delay: timedelta) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) + delay)
    return made


async def statuses(taskdb: CrashingTaskDb, *names: str) -> list[tuple[int, int]]:
    """Phase and version of each task."""
    found = [await taskdb.yard.task(name) for name in names]
    return [(task.status.phase, task.metadata.resource_version) for task in found]


async def test_a_retry_whose_timer_fired_during_a_crash_becomes_ready_once(taskdb: CrashingTaskDb) -> None:
    await taskdb.start("timer.before_commit=kill")
    yard = taskdb.yard
    (name,) = await yard.create(retry=retries(1, timedelta(milliseconds=100)))
    runner, _ = await yard.hello()
    (first,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(first), failed(first))
    await taskdb.killed()
    waiting = "SELECT count(*) FROM timers WHERE kind = 1"
    assert (await taskdb.value(waiting), await taskdb.value("SELECT count(*) FROM queue")) == (1, 0)
    # The next leader does not finish either: it is killed once it has checked its leadership.
    await taskdb.expire_leadership()
    await asyncio.to_thread(taskdb.service.start, wait=False, TASKYARD_FAILPOINTS="leader.before_write=kill")
    await taskdb.killed()
    assert (await taskdb.value(waiting), await taskdb.value("SELECT count(*) FROM queue")) == (1, 0)
    await taskdb.expire_leadership()
    await taskdb.start()
    await taskdb.until("SELECT count(*) = 1 FROM queue")
    assert await taskdb.value(waiting) == 0

    (second,) = (await yard.claim(runner)).assignments
    assert (second.lease.generation, second.attempt) == (2, 2)
    (result,) = await yard.report(runner, failed(second))
    assert result.phase == task_pb2.TASK_PHASE_EXHAUSTED
    status = (await yard.task(name)).status
    assert (status.attempt, status.retry_count) == (2, 1), "the crash charges nothing"
    readied = "SELECT count(*) FROM changes WHERE event = 24"
    assert await taskdb.value(readied) == 1, "it becomes ready once"


async def test_writes_during_a_paused_sweep_of_leases_are_kept(
    taskdb: CrashingTaskDb, tmp_path: Path
) -> None:
    pause = Pause(tmp_path / "sweep", SWEEP)
    await taskdb.start(pause.setting)
    yard = taskdb.yard
    names = await yard.create(5, retry=retries(3, timedelta(hours=1)))
    runner, _ = await yard.hello()
    claimed = {a.lease.task: a for a in (await yard.claim(runner, lease_seconds=1)).assignments}
    done, flaky, begun, dropped, silent = names
    # The sweep has read five leases that have run out, and writes nothing yet.
    assert await pause.reached() == SWEEP
    await yard.report(runner, started(claimed[done]), succeeded(claimed[done], exit_code=0))
    await yard.report(runner, started(claimed[flaky]), failed(claimed[flaky]))
    await yard.report(runner, started(claimed[begun]))
    await taskdb.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=dropped))
    await yard.renew(runner, listed=[claimed[dropped].lease])
    kept = await statuses(taskdb, done, flaky, begun, dropped)
    assert [phase for phase, _ in kept] == [
        task_pb2.TASK_PHASE_SUCCEEDED,
        task_pb2.TASK_PHASE_PENDING,
        task_pb2.TASK_PHASE_RUNNING,
        task_pb2.TASK_PHASE_SCHEDULED,
    ]
    await pause.release()
    # The one lease without a late write was expired: the sweep has finished.
    await taskdb.until("SELECT count(*) = 1 FROM queue")
    assert await statuses(taskdb, done, flaky, begun, dropped) == kept
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.lease.generation, again.attempt) == (silent, 2, 1)
    (result,) = await yard.report(runner, succeeded(claimed[done], exit_code=0))
    assert (result.duplicate, result.phase) == (True, task_pb2.TASK_PHASE_SUCCEEDED)
    (result,) = await yard.report(runner, succeeded(claimed[begun]))
    assert (result.duplicate, result.phase) == (False, task_pb2.TASK_PHASE_SUCCEEDED)


async def test_writes_during_a_paused_sweep_of_timers_are_kept(
    taskdb: CrashingTaskDb, tmp_path: Path
) -> None:
    pause = Pause(tmp_path / "sweep", SWEEP)
    await taskdb.start(pause.setting)
    yard = taskdb.yard
    # All are due at the same moment, so that one page has them all.
    moment = after(timedelta(seconds=2))
    made = await asyncio.gather(*(yard.create(not_before=moment) for _ in range(4)))
    cancelled, paused, postponed, due = (name for (name,) in made)
    assert await pause.reached() == SWEEP
    await taskdb.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=cancelled))
    await taskdb.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=paused))
    later: dict[str, Any] = {"not_before": after(timedelta(hours=1))}
    await taskdb.tasks.UpdateTask(
        task_service_pb2.UpdateTaskRequest(
            task=task_pb2.Task(name=postponed, spec=task_pb2.TaskSpec(**later)),
            update_mask=FieldMask(paths=["spec.not_before"]),
        )
    )
    kept = await statuses(taskdb, cancelled, paused, postponed)
    assert [phase for phase, _ in kept] == [
        task_pb2.TASK_PHASE_CANCELLED,
        task_pb2.TASK_PHASE_PAUSED,
        task_pb2.TASK_PHASE_PENDING,
    ]
    await pause.release()
    await taskdb.until("SELECT count(*) = 1 FROM queue")
    assert await statuses(taskdb, cancelled, paused, postponed) == kept
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    assert claimed.lease.task == due
