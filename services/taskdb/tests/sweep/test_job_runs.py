"""Runs of jobs: one at a time, taken over after an interruption, repeated after a failure."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from taskyard_taskdb.domain.schedule import (
    FIRST_RETRY,
    LONGEST_RETRY,
    SILENCE,
    Every,
    JobRun,
    Nightly,
    Schedule,
    due_time,
)
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.housekeeping.job_runs import Superseded
from taskyard_taskdb.sweep.jobs import Guard, JobAlreadyRunning, JobSweep, no_guard, run_job
from taskyard_taskdb.sweep.leader_election import Leadership

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


class Held:
    """A job of two pages that waits between them."""

    name, about = "held", "waits"
    schedule: Schedule = Every(DAY)

    def __init__(self, quiet: RunningTaskDb) -> None:
        self._quiet = quiet
        self.waits = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.written = 0

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        for _ in range(2):
            await self._quiet.pool.run(guard)
            self.written += 1
            yield 5
            self.waits.set()
            await self.goes_on.wait()


async def test_a_running_job_is_not_started_again(quiet: RunningTaskDb) -> None:
    job = Held(quiet)
    first = asyncio.create_task(run_job(quiet.pool, job, no_guard))
    await job.waits.wait()
    with pytest.raises(JobAlreadyRunning, match="job held has been running since"):
        await run_job(quiet.pool, job, no_guard)
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    assert 0 < await JobSweep(quiet.pool, job).run(leadership) <= SILENCE.total_seconds()
    assert job.written == 1
    job.goes_on.set()
    assert await first == 10
    assert await quiet.rows("SELECT run, item_count, error FROM job_runs") == [(1, 10, None)]
    # The leader finds that the job has run.
    assert await JobSweep(quiet.pool, job).run(leadership) > SILENCE.total_seconds()


async def test_a_run_without_heartbeats_is_taken_over_and_writes_nothing_more(
    quiet: RunningTaskDb,
) -> None:
    frozen, successor = Held(quiet), Held(quiet)
    first = asyncio.create_task(run_job(quiet.pool, frozen, no_guard))
    await frozen.waits.wait()
    await quiet.execute("UPDATE job_runs SET seen_time = now() - %s", SILENCE)
    successor.goes_on.set()
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    await JobSweep(quiet.pool, successor).run(leadership)
    ended = await quiet.rows("SELECT run, item_count, end_time, error FROM job_runs")
    assert ended[0][:2] == (2, 10)
    frozen.goes_on.set()
    with pytest.raises(Superseded):
        await first
    assert frozen.written == 1
    assert await quiet.rows("SELECT run, item_count, end_time, error FROM job_runs") == ended


async def test_an_open_page_prevents_another_run_from_beginning(quiet: RunningTaskDb) -> None:
    """The page locks the row of the job until it commits, however old the last heartbeat is."""
    run = await quiet.pool.run(lambda tx: job_runs.begin(tx, "held"))
    assert run == 1
    async with quiet.pool.transaction() as tx:
        await job_runs.heartbeat(tx, "held", run, 7)
        other = asyncio.create_task(quiet.pool.run(lambda tx: job_runs.begin(tx, "held")))
        while not await quiet.rows("SELECT FROM pg_locks WHERE NOT granted"):
            assert not other.done()
            await asyncio.sleep(0.01)
    assert await other is None


async def test_a_failed_job_is_retried_with_growing_delays(quiet: RunningTaskDb) -> None:
    class Failing(Held):
        async def pages(self, guard: Guard) -> AsyncIterator[int]:
            await self._quiet.pool.run(guard)
            yield 1
            raise RuntimeError("no disk")

    sweep, leadership = JobSweep(quiet.pool, Failing(quiet)), Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    for failures in (1, 2):
        with pytest.raises(RuntimeError):
            await sweep.run(leadership)
        assert await quiet.rows("SELECT failure_count, error FROM job_runs") == [
            (failures, "RuntimeError: no disk")
        ]
        assert await sweep.run(leadership) > 30
        await quiet.execute("UPDATE job_runs SET end_time = end_time - %s", FIRST_RETRY * failures)
    await run_job(quiet.pool, _ready(quiet), no_guard)
    assert await quiet.rows("SELECT failure_count, error FROM job_runs") == [(0, None)]


def _ready(quiet: RunningTaskDb) -> Held:
    job = Held(quiet)
    job.goes_on.set()
    return job


def ran(**fields: Any) -> JobRun:
    values: dict[str, Any] = {
        "job": "j",
        "run": 3,
        "start_time": NOON,
        "seen_time": NOON + DAY / 24,
        "end_time": NOON + DAY / 12,
        "success_time": NOON + DAY / 12,
        "item_count": 0,
        "failure_count": 0,
        "error": None,
    }
    return JobRun(**(values | fields))


def test_the_due_time_of_a_job_depends_on_the_outcome_of_its_last_run() -> None:
    assert due_time(Every(DAY), None, NOON) == NOON
    assert due_time(Every(DAY), ran(), NOON) == NOON + DAY
    assert due_time(Nightly(3), ran(), NOON) == datetime(2026, 3, 11, 3, tzinfo=UTC)
    running = ran(end_time=None)
    assert due_time(Nightly(3), running, NOON) == running.seen_time + SILENCE
    assert running.is_under_way(running.seen_time)
    assert not running.is_under_way(running.seen_time + SILENCE)
    ended = ran().end_time
    assert ended is not None
    for failures, delay in (
        (1, FIRST_RETRY),
        (2, 2 * FIRST_RETRY),
        (4, 8 * FIRST_RETRY),
        (99, LONGEST_RETRY),
    ):
        failed = ran(error="x", failure_count=failures)
        assert due_time(Nightly(3), failed, NOON) == ended + delay
    # A failed run with failure count 0 is repeated at once.
    assert due_time(Nightly(3), ran(error="x"), NOON) == ended


async def test_the_maintenance_command_rejects_and_lists_a_running_job(quiet: RunningTaskDb) -> None:
    await quiet.pool.run(lambda tx: job_runs.begin(tx, "retention"))

    async def maintenance(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "taskyard_taskdb", "maintenance", *arguments]
        environment = {**os.environ, "TASKYARD_DATABASE_URL": quiet.url}
        return await asyncio.to_thread(
            subprocess.run, argv, env=environment, capture_output=True, text=True, timeout=120
        )

    refused = await maintenance("--job", "retention", "--once")
    assert (
        refused.returncode == 1
        and "has been running since" in refused.stderr
        and "wait for it" in refused.stderr
    )
    assert "running, 0 items" in (await maintenance("--list")).stdout
    await quiet.execute("UPDATE job_runs SET seen_time = now() - %s", SILENCE)
    assert "interrupted, 0 items" in (await maintenance("--list")).stdout
    assert (await maintenance("--job", "retention", "--once")).stdout == "retention: 0 items\n"
