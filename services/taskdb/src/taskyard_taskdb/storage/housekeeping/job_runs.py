"""The last run of each maintenance job; a job has at most one run at a time."""

from __future__ import annotations

from datetime import datetime

from taskyard_taskdb.domain.schedule import SILENCE, JobRun
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

MAX_ERROR = 500


class Superseded(Exception):
    """Another run of the job has begun; the transaction must be rolled back."""


async def read(tx: Tx) -> tuple[dict[str, JobRun], datetime]:
    """Return the last run of each job, and the time of the database."""
    rows = await tx.fetch(statement("read_job_runs"))
    now: datetime = rows[0][-1] if rows else (await tx.fetch("SELECT statement_timestamp()"))[0][0]
    return {row[0]: JobRun(*row[:-1]) for row in rows}, now


async def begin(tx: Tx, job: str) -> int | None:
    """Begin a run of the job and return its number; None while another run is alive."""
    row = await tx.fetch_row(statement("begin_job_run"), {"job": job, "silence": SILENCE})
    return int(row[0]) if row else None


async def heartbeat(tx: Tx, job: str, run: int, items: int) -> None:
    """Renew a run; no other run can begin until the transaction ends. Raises Superseded."""
    if not await tx.execute(statement("heartbeat_job_run"), {"job": job, "run": run, "items": items}):
        raise Superseded(f"run {run} of job {job} was considered interrupted, and another has begun")


async def end(tx: Tx, job: str, run: int, items: int, error: str | None = None) -> None:
    """Record the end of a run and its error, if any."""
    params = {"job": job, "run": run, "items": items, "error": error[:MAX_ERROR] if error else None}
    await tx.execute(statement("end_job_run"), params)
