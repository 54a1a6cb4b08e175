"""Jobs: housekeeping that has time. Each works in pages, in one process at a time, and is recorded."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard_taskdb.domain.schedule import SILENCE, JobRun, Schedule, due_time
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.housekeeping.job_runs import Superseded
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.leader_election import Leadership

logger = logging.getLogger(__name__)

# A job that another replica or an operator has run is noticed this late.
LONGEST_SECONDS = 60.0

Guard = Callable[[Tx], Awaitable[None]]
"""Called first in each transaction that writes: proves that the job may go on. May raise LeadershipLost."""


async def no_guard(tx: Tx) -> None:
    """The guard of who leads nothing: that it is the only run of its job is guarded beside it."""


class Job(Protocol):
    """One job."""

    name: str
    about: str
    schedule: Schedule

    def pages(self, guard: Guard) -> AsyncIterator[int]:
        """Work page by page, each in a transaction of its own; yields how many items each had."""
        ...


class JobAlreadyRunning(Exception):
    """Another process runs the job."""

    def __init__(self, run: JobRun) -> None:
        super().__init__(
            f"job {run.job} is under way since {run.start_time:%Y-%m-%d %H:%M:%S}, {run.item_count} items so "
            f"far: wait for it; if its process is gone, it can be run again after {SILENCE.seconds} s"
        )


class OnJobEnd(Protocol):
    """Told when a job has ended."""

    def __call__(self, job: str, items: int, seconds: float, *, failed: bool) -> None: ...


def ignore(job: str, items: int, seconds: float, *, failed: bool) -> None:
    """Nobody wants to know."""


class JobSweep:
    """A job as a sweep of the leader: runs when it is due by its record."""

    poll = LONGEST_SECONDS

    def __init__(self, pool: Pool, job: Job, on_end: OnJobEnd = ignore) -> None:
        self.name = job.name
        self._pool = pool
        self._job = job
        self._on_end = on_end
        self._noticed: datetime | None = None

    async def run(self, leadership: Leadership) -> float:
        wait = await self._wait()
        if wait > 0:
            return min(wait, LONGEST_SECONDS)
        try:
            await run_job(self._pool, self._job, leadership.check, self._on_end)
        except JobAlreadyRunning:
            return SILENCE.total_seconds()
        except (TaskyardError, Superseded) as error:
            logger.warning("job %s is put off: %s", self.name, error)
            return LONGEST_SECONDS
        return min(await self._wait(), LONGEST_SECONDS)

    async def _wait(self) -> float:
        async with self._pool.reading() as tx:
            runs, now = await job_runs.read(tx)
        self._noticed = self._noticed or now
        return (due_time(self._job.schedule, runs.get(self.name), self._noticed) - now).total_seconds()


async def run_job(pool: Pool, job: Job, guard: Guard, on_end: OnJobEnd = ignore) -> int:
    """Run a job to its end and record it; returns how many items it had.

    Raises JobAlreadyRunning if somebody else runs it, and what the job raises.
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
        logger.info("job %s: %d items in %.1f s", job.name, items, time.monotonic() - began)
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
