"""The last run of each job of housekeeping, as everybody who asks can see it; one run of a job at a time."""

from __future__ import annotations

from datetime import datetime

from taskyard_taskdb.domain.schedule import SILENCE, JobRun
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

MAX_ERROR = 500


class Superseded(Exception):
    """Another run of the job has begun: nothing of the transaction may be kept."""


async def read(tx: Tx) -> tuple[dict[str, JobRun], datetime]:
    """The last run of each job that ever ran, and the database's time."""
    rows = await tx.fetch(statement("read_job_runs"))
    now: datetime = rows[0][-1] if rows else (await tx.fetch("SELECT statement_timestamp()"))[0][0]
    return {row[0]: JobRun(*row[:-1]) for row in rows}, now


async def begin(tx: Tx, job: str) -> int | None:
    """The number of a new run of the job; None while another is under way."""
    row = await tx.fetch_row(statement("begin_job_run"), {"job": job, "silence": SILENCE})
    return int(row[0]) if row else None


async def heartbeat(tx: Tx, job: str, run: int, items: int) -> None:
    """Show a sign of life, and let nobody else begin until the transaction ends. Raises Superseded."""
    if not await tx.execute(statement("heartbeat_job_run"), {"job": job, "run": run, "items": items}):
        raise Superseded(f"run {run} of job {job} counted as interrupted, and another has begun")


async def end(tx: Tx, job: str, run: int, items: int, error: str | None = None) -> None:
    """Note that a run has ended, and how."""
    params = {"job": job, "run": run, "items": items, "error": error[:MAX_ERROR] if error else None}
    await tx.execute(statement("end_job_run"), params)
