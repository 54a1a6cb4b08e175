"""Commands that an operator runs on the database: audit verify, restored, maintenance."""

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
    """Compare the change log with its seals; returns the differences."""

    async def work(tx: Tx) -> list[SealFinding]:
        findings = await seals.verify_seals(tx, settings.after)
        if settings.expected_seal is not None:
            findings += await seals.check_expected_seal(tx, *settings.expected_seal)
        return findings

    return await _run_once(settings, work)


async def restored(settings: RestoredSettings) -> Restored:
    """Prepare a restored database for service."""
    return await _run_once(settings, lambda tx: mark_restored(tx, settings.grace))


async def _run_once(settings: DatabaseSettings, work: Callable[[Tx], Awaitable[T]]) -> T:
    pool = Pool(settings.direct_url, PoolOptions(size=1, reserve=1))
    await pool.open()
    try:
        return await pool.run(work)
    finally:
        await pool.close()


async def maintain(settings: MaintenanceSettings) -> str:
    """Run a job or list the jobs; returns the text to print.

    Raises FieldInvalid for an unknown job, JobAlreadyRunning for one that is already running.
    """
    pool = Pool(settings.direct_url, PoolOptions(size=2, reserve=1))
    # Running services are not notified; they read the changes at their next poll.
    jobs = make_jobs(pool, lambda notice: None, settings.job_options())
    chosen = None if settings.list else _choose(jobs, settings.job)
    await pool.open()
    try:
        if chosen is None:
            async with pool.reading() as tx:
                runs, now = await job_runs.read(tx)
            return "".join(_lines(jobs, runs, now))
        return f"{chosen.name}: {_items(await run_job(pool, chosen, no_guard))}\n"
    finally:
        await pool.close()


def _choose(jobs: Sequence[Job], name: str) -> Job:
    for job in jobs:
        if job.name == name:
            return job
    names = ", ".join(job.name for job in jobs)
    raise FieldInvalid.of("job", f"{name!r} is not a job; choose one of {names}")


def _lines(jobs: Iterable[Job], runs: dict[str, JobRun], now: datetime) -> Iterable[str]:
    for job in jobs:
        yield f"{job.name:<14}{_last_run(runs.get(job.name), now):<46}{job.about}\n"


def _last_run(run: JobRun | None, now: datetime) -> str:
    if run is None:
        return "never ran"
    if run.end_time is None:
        state = "running" if run.is_under_way(now) else "interrupted"
    else:
        state = "failed" if run.error else "done"
    return f"{run.start_time:%Y-%m-%d %H:%M:%S}  {state}, {_items(run.item_count)}"


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"
