"""Reads the change log: rows in id order, and the horizon below which every id is decided."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

# A row's time is that of its transaction, which statement_timeout keeps short; the slack only lets
# PostgreSQL skip the partitions of past months.
PARTITION_SLACK = timedelta(hours=1)
PAUSE_SECONDS = 0.002
# Between two ids of the sequence; a row that stands for two changes uses the id in between.
ID_STEP = 2


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """One row of the change log, in the order of the columns of its statements, or a change of `expanded`."""

    id: int
    time: datetime
    tenant_id: str
    resource_kind: int
    resource_id: str
    version: int
    event: int
    phase: int
    previous_phase: int
    pending_reason: int
    generation: int
    attempt: int
    retry_count: int
    runner_loss_count: int
    next_attempt_time: datetime | None
    exit_code: int | None
    runner_id: str | None
    error_code: str | None
    actor_type: int
    actor_id: str
    request_id: str | None
    details: dict[str, Any] | None


def stands_for_two(event: int, previous_phase: int) -> bool:
    """Whether a row is a success together with its start, which alone leads from SCHEDULED to RUNNING."""
    return event == ChangeEvent.TASK_SUCCEEDED and previous_phase == Phase.SCHEDULED


def expanded(rows: Iterable[LoggedChange], after: int = 0) -> list[LoggedChange]:
    """The changes of rows in their order, without those up to the id `after`."""
    changes: list[LoggedChange] = []
    for row in rows:
        if not stands_for_two(row.event, row.previous_phase):
            changes.append(row)
            continue
        if row.id - 1 > after:
            start = replace(
                row,
                id=row.id - 1,
                version=row.version - 1,
                event=ChangeEvent.TASK_STARTED.value,
                phase=Phase.RUNNING.value,
                exit_code=None,
            )
            changes.append(start)
        changes.append(replace(row, previous_phase=Phase.RUNNING.value))
    return changes


async def read(tx: Tx, after: int, since: datetime, limit: int) -> list[LoggedChange]:
    """Return up to `limit` committed rows above `after` that were written later than `since` less a slack."""
    values = {"after": after, "since": since - PARTITION_SLACK, "limit": limit}
    rows = await tx.fetch(statement("read_changes"), values)
    return [LoggedChange(*row) for row in rows]


async def read_range(
    tx: Tx, after: int, until: int, since: datetime, tenant_id: str | None, limit: int
) -> list[LoggedChange]:
    """Return rows above `after` up to `until`, of one tenant or of all, for a stream that catches up."""
    values = {
        "after": after,
        "until": until,
        "since": since - PARTITION_SLACK,
        "limit": limit,
        "tenant": tenant_id,
    }
    name = "read_changes_of_all" if tenant_id is None else "read_changes_of_tenant"
    rows = await tx.fetch(statement(name), values)
    return [LoggedChange(*row) for row in rows]


async def last_id(tx: Tx) -> int:
    """Return the highest id ever drawn, committed or not; 0 when there is none."""
    return await _value(tx, "last_change_id")


async def writers(tx: Tx) -> frozenset[str]:
    """Return the transactions that hold the log's lock now."""
    key = {"high": LOG_LOCK >> 32, "low": LOG_LOCK & 0xFFFFFFFF}
    rows = await tx.fetch(statement("log_writers"), key)
    return frozenset(row[0] for row in rows)


@dataclass(frozen=True, slots=True)
class Barrier:
    """Everything up to `id` is decided once `writers` have ended."""

    id: int
    writers: frozenset[str]


async def barrier(tx: Tx) -> Barrier:
    """A barrier at this moment: every id drawn from now on is higher."""
    end = await last_id(tx)
    return Barrier(end, await writers(tx))


async def left(tx: Tx, barrier: Barrier) -> Barrier:
    """The barrier with those of its writers that have not ended yet."""
    if not barrier.writers:
        return barrier
    return Barrier(barrier.id, barrier.writers & await writers(tx))


async def settled(tx: Tx) -> int:
    """An id up to which everything is decided, once the writers of this moment have ended."""
    current = await barrier(tx)
    while current.writers:
        await asyncio.sleep(PAUSE_SECONDS)
        current = await left(tx, current)
    return current.id


class Horizon:
    """Follows the log without waiting: each look returns up to where earlier writers have ended."""

    def __init__(self) -> None:
        self._barrier: Barrier | None = None
        self._decided = 0

    async def advance(self, tx: Tx) -> int:
        """Return an id up to which everything is decided."""
        if self._barrier is not None:
            self._settle(await left(tx, self._barrier))
        if self._barrier is None:
            self._settle(await barrier(tx))
        return self._decided

    def _settle(self, current: Barrier) -> None:
        self._barrier = current
        if not current.writers:
            self._decided, self._barrier = current.id, None


async def newest(tx: Tx, until: int) -> tuple[int, datetime] | None:
    """Return id and time of the last committed change up to `until`."""
    row = await tx.fetch_row(statement("newest_change"), {"until": until})
    return (row[0], row[1]) if row else None


async def oldest(tx: Tx) -> tuple[int, datetime] | None:
    """Return id and time of the first change that is still kept."""
    row = await tx.fetch_row(statement("oldest_change"))
    return (row[0], row[1]) if row else None


async def _value(tx: Tx, name: str) -> int:
    row = await tx.fetch_row(statement(name))
    assert row is not None
    return int(row[0])
