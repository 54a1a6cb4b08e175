"""The runs of a task as they are read: the current one from its lease, the others from `runs`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One claim and what came of it, in the order of the columns of list_runs."""

    generation: int
    attempt: int
    runner_id: str
    state: int
    schedule_time: datetime
    start_time: datetime | None
    end_time: datetime | None
    exit_code: int | None
    error: bytes | None
    progress: bytes | None
    start_checkpoint: int
    task_type_revision: int


@dataclass(frozen=True, slots=True)
class Fence:
    """The newest generation and, where a lease is held, its id and the time it is still valid."""

    generation: int
    lease_id: int | None
    left: timedelta | None


async def list_runs(tx: Tx, tenant_id: str, task_id: str, before: int | None, limit: int) -> list[RunRecord]:
    """Up to `limit` runs of generations below `before`, newest first."""
    values = {"tenant_id": tenant_id, "task_id": task_id, "before": before or 2**62, "limit": limit}
    return [RunRecord(*row) for row in await tx.fetch(statement("list_runs"), values)]


async def read_fence(tx: Tx, tenant_id: str, task_id: str) -> Fence | None:
    """Who may act for the task now; None if there is no such task."""
    row = await tx.fetch_row(statement("read_fence"), (tenant_id, task_id))
    return None if row is None else Fence(*row)
