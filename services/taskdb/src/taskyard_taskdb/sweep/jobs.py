"""Scheduled maintenance jobs: each runs in pages, in one process at a time, and its runs are recorded."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.schedule import SILENCE, JobRun, Schedule, due_time
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.housekeeping.job_runs import Superseded
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

# A job run of another replica or of an operator is noticed after this time at most.
POLL_SECONDS = 60.0

Guard = Callable[[Tx], Awaitable[None]]
"""Called first in each transaction that writes; raises LeadershipLost if the job may not go on."""


async def no_guard(tx: Tx) -> None:
    """The guard of a run without leadership; run_job still checks that it is the only run of its job."""


class Job(Protocol):
    """A maintenance job."""

    name: str
    about: str
    schedule: Schedule

    def pages(self, guard: Guard) -> AsyncIterator[int]:
        """Process one page per transaction; yields the number of items of each page."""
        ...


class JobAlreadyRunning(Exception):
    """Another process is running the job."""

    def __init__(self, run: JobRun) -> None:
        super().__init__(
            f"job {run.job} has been running since {run.start_time:%Y-%m-%d %H:%M:%S}, {run.item_count} "
            f"items so far: wait for it; if its process died, it can be run again after {SILENCE.seconds} s"
        )


class OnJobEnd(Protocol):
    """Called when a job has ended."""

    def __call__(self, job: str, items: int, seconds: float, *, failed: bool) -> None: ...


def ignore(job: str, items: int, seconds: float, *, failed: bool) -> None:
    """No-op callback."""


class JobSweep:
    """Runs a job as a sweep of the leader, when its last recorded run makes it due."""

    poll = POLL_SECONDS

    def __init__(self, pool: Pool, job: Job, on_end: OnJobEnd = ignore) -> None:
        self.name = job.name
        self._pool = pool
        self._job = job
        self._on_end = on_end
        self._first_seen: datetime | None = None

    async def run(self, leadership: Leadership) -> float:
        wait = await self._wait()
        if wait > 0:
            return min(wait, POLL_SECONDS)
        try:
            await run_job(self._pool, self._job, leadership.check, self._on_end)
        except JobAlreadyRunning:
            return SILENCE.total_seconds()
        except (TaskyardError, Superseded) as error:
            log.failure("job_postponed", error, job=self.name)
            return POLL_SECONDS
        return min(await self._wait(), POLL_SECONDS)

    async def _wait(self) -> float:
        async with self._pool.reading() as tx:
            runs, now = await job_runs.read(tx)
        self._first_seen = self._first_seen or now
        return (due_time(self._job.schedule, runs.get(self.name), self._first_seen) - now).total_seconds()


async def run_job(pool: Pool, job: Job, guard: Guard, on_end: OnJobEnd = ignore) -> int:
    """Run a job to its end and record the run; returns the number of items processed.

    Raises JobAlreadyRunning if another process runs it, and whatever the job raises.
    """
    began, items = time.monotonic(), 0
    run = await _begin(pool, guard, job.name)

    async def check_run(tx: Tx) -> None:
        await guard(tx)
        await job_runs.heartbeat(tx, job.name, run, items)

    async def end(error: str | None = None) -> None:
        await pool.run(lambda tx: job_runs.end(tx, job.name, run, items, error))
        on_end(job.name, items, time.monotonic() - began, failed=error is not None)

    try:
        async for count in job.pages(check_run):
            items += count
    except (LeadershipLost, Superseded):
        raise
    except Exception as error:
        await end(f"{type(error).__name__}: {error}")
        raise
    await end()
    if items:
        log.info("job_done", job=job.name, items=items, seconds=round(time.monotonic() - began, 1))
    return items


async def _begin(pool: Pool, guard: Guard, name: str) -> int:
    async def work(tx: Tx) -> int:
        await guard(tx)
        run = await job_runs.begin(tx, name)
        if run is None:
            runs, _ = await job_runs.read(tx)
            raise JobAlreadyRunning(runs[name])
        return run

    return await pool.run(work)
