"""The last run of each job of housekeeping, as everybody who asks can see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

MAX_ERROR = 500


@dataclass(frozen=True, slots=True)
class JobRun:
    """How the last run of a job went; without an end it is under way or was interrupted."""

    job: str
    start_time: datetime
    end_time: datetime | None
    success_time: datetime | None
    item_count: int
    error: str | None


async def read(tx: Tx) -> tuple[dict[str, JobRun], datetime]:
    """The last run of each job that ever ran, and the database's time."""
    rows = await tx.fetch(statement("read_job_runs"))
    now: datetime = rows[0][6] if rows else (await tx.fetch("SELECT statement_timestamp()"))[0][0]
    return {row[0]: JobRun(*row[:6]) for row in rows}, now


async def begin(tx: Tx, job: str) -> None:
    """Note that a job begins."""
    await tx.execute(statement("begin_job_run"), {"job": job})


async def end(tx: Tx, job: str, items: int, error: str | None = None) -> None:
    """Note that a job has ended, and how."""
    params = {"job": job, "items": items, "error": error[:MAX_ERROR] if error else None}
    await tx.execute(statement("end_job_run"), params)


async def lock(tx: Tx, job: str) -> None:
    """Keep others from working on the same job until the transaction ends."""
    await tx.execute(statement("lock_job"), {"job": job})
