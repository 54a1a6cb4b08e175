"""What an operator runs against the database itself: the check of the audit, and the end of a restore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from taskyard.errors import FieldInvalid
from taskyard_taskdb.domain.schedule import JobRun
from taskyard_taskdb.housekeeping import make_jobs
from taskyard_taskdb.settings import (
    DatabaseSettings,
    MaintenanceSettings,
    RestoredSettings,
    VerifyAuditSettings,
)
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.audit.seals import SealFinding
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.housekeeping.restore import Restored, mark_restored
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from taskyard_taskdb.sweep.jobs import Job, no_guard, run_job

T = TypeVar("T")


async def verify_audit(settings: VerifyAuditSettings) -> list[SealFinding]:
    """What of the change log is not as it was sealed."""

    async def work(tx: Tx) -> list[SealFinding]:
        findings = await seals.verify_seals(tx, settings.after)
        if settings.expected_seal is not None:
            findings += await seals.check_expected_seal(tx, *settings.expected_seal)
        return findings

    return await _alone(settings, work)


async def restored(settings: RestoredSettings) -> Restored:
    """Make a restored database ready to serve."""
    return await _alone(settings, lambda tx: mark_restored(tx, settings.grace))


async def _alone(settings: DatabaseSettings, work: Callable[[Tx], Awaitable[T]]) -> T:
    pool = Pool(settings.database_url, PoolOptions(size=1, reserve=1))
    await pool.open()
    try:
        return await pool.run(work)
    finally:
        await pool.close()


async def maintain(settings: MaintenanceSettings) -> str:
    """Do what the settings ask for; returns what to print.

    Raises FieldInvalid for an unknown job, JobAlreadyRunning for one that somebody runs already.
    """
    pool = Pool(settings.database_url, PoolOptions(size=2, reserve=1))
    # Nobody is told: services read what has changed at their next look.
    jobs = make_jobs(pool, lambda written: None, settings.job_options())
    chosen = None if settings.list else _choose(jobs, settings.job)
    await pool.open()
    try:
        if chosen is None:
            async with pool.reading() as tx:
                runs, now = await job_runs.read(tx)
            return "".join(_lines(jobs, runs, now))
        return f"{chosen.name}: {await run_job(pool, chosen, no_guard)} items\n"
    finally:
        await pool.close()


def _choose(jobs: Sequence[Job], name: str) -> Job:
    for job in jobs:
        if job.name == name:
            return job
    known = ", ".join(job.name for job in jobs)
    raise FieldInvalid.of("job", f"{name!r} is no job; choose one of {known}")


def _lines(jobs: Iterable[Job], runs: dict[str, JobRun], now: datetime) -> Iterable[str]:
    for job in jobs:
        yield f"{job.name:<14}{_told(runs.get(job.name), now):<46}{job.about}\n"


def _told(run: JobRun | None, now: datetime) -> str:
    if run is None:
        return "never ran"
    if run.end_time is None:
        state = "under way" if run.is_under_way(now) else "interrupted"
    else:
        state = "failed" if run.error else "done"
    return f"{run.start_time:%Y-%m-%d %H:%M:%S}  {state}, {run.item_count} items"
