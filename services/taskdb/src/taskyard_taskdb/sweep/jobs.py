"""Jobs: housekeeping that has time. Each works in pages, is recorded, and can be run by hand as well."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard_taskdb.domain.schedule import Schedule, next_run
from taskyard_taskdb.storage import job_runs
from taskyard_taskdb.storage.leader import Deposed
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.leader import Office

logger = logging.getLogger(__name__)

# A job that another replica or an operator has run is noticed this late, and a failed one is tried again.
LONGEST_SECONDS = 60.0

Stand = Callable[[Tx], Awaitable[None]]
"""Called first in each transaction that writes: proves that the job may go on. May raise Deposed."""


class Job(Protocol):
    """One job."""

    name: str
    about: str
    schedule: Schedule

    def pages(self, stand: Stand) -> AsyncIterator[int]:
        """Work page by page, each in a transaction of its own; yields how many items each had."""
        ...


class Ran(Protocol):
    """Told when a job has ended."""

    def __call__(self, job: str, items: int, seconds: float, *, failed: bool) -> None: ...


def ignore(job: str, items: int, seconds: float, *, failed: bool) -> None:
    """Nobody wants to know."""


class JobSweep:
    """A job as a sweep of the leader: runs when it is due by its record."""

    poll = LONGEST_SECONDS

    def __init__(self, pool: Pool, job: Job, ran: Ran = ignore) -> None:
        self.name = job.name
        self._pool = pool
        self._job = job
        self._ran = ran
        self._noticed: datetime | None = None

    async def run(self, office: Office) -> float:
        wait = await self._wait()
        if wait > 0:
            return min(wait, LONGEST_SECONDS)
        try:
            await run_job(self._pool, self._job, office.stand, self._ran)
        except TaskyardError as error:
            logger.warning("job %s is put off: %s", self.name, error)
            return LONGEST_SECONDS
        return min(await self._wait(), LONGEST_SECONDS)

    async def _wait(self) -> float:
        async with self._pool.reading() as tx:
            runs, now = await job_runs.read(tx)
        self._noticed = self._noticed or now
        last = runs.get(self.name)
        # What was interrupted, with its process or by an error, goes on soon.
        if last is not None and (last.success_time is None or last.success_time < last.start_time):
            return 0.0
        began = None if last is None else last.start_time
        return (next_run(self._job.schedule, began, self._noticed) - now).total_seconds()


async def run_job(pool: Pool, job: Job, stand: Stand, ran: Ran = ignore) -> int:
    """Run a job to its end and record it; returns how many items it had. Raises what the job raises."""

    async def stand_alone(tx: Tx) -> None:
        await stand(tx)
        await job_runs.lock(tx, job.name)

    began, items = time.monotonic(), 0
    await pool.run(lambda tx: _begin(tx, stand, job.name))
    try:
        async for count in job.pages(stand_alone):
            items += count
    except Deposed:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        await pool.run(lambda tx: job_runs.end(tx, job.name, items, told))
        ran(job.name, items, time.monotonic() - began, failed=True)
        raise
    await pool.run(lambda tx: job_runs.end(tx, job.name, items))
    ran(job.name, items, time.monotonic() - began, failed=False)
    if items:
        logger.info("job %s: %d items in %.1f s", job.name, items, time.monotonic() - began)
    return items


async def _begin(tx: Tx, stand: Stand, name: str) -> None:
    await stand(tx)
    await job_runs.begin(tx, name)
