"""Stored logs of runs: batches of consecutive entries, appended by holders and read by pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

LATEST = 2**62


class RunRef(NamedTuple):
    """A run as its holder names it."""

    tenant_id: str
    task_id: str
    generation: int
    lease_id: int


class Position(NamedTuple):
    """Whether the sender holds the run, the span of the run until now, and the last sequence stored."""

    held: bool
    earliest: datetime | None
    latest: datetime
    stored: int


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Consecutive entries of one run, serialised."""

    generation: int
    first_sequence: int
    last_sequence: int
    dropped_count: int
    entries: bytes


@dataclass(frozen=True, slots=True)
class NewChunk(LogChunk):
    """A chunk to store."""

    tenant_id: str
    task_id: str
    last_time: datetime
    max_level: int


async def positions(tx: Tx, runner_id: str, runs: Sequence[RunRef]) -> list[Position]:
    """Return for each run whether `runner_id` may append to it and how far it is stored."""
    values = {
        "runner": runner_id,
        "tenants": arrays.texts([run.tenant_id for run in runs]),
        "tasks": arrays.texts([run.task_id for run in runs]),
        "generations": arrays.bigints([run.generation for run in runs]),
        "lease_ids": arrays.bigints([run.lease_id for run in runs]),
    }
    rows = await tx.fetch(statement("log_positions"), values)
    return [Position(*row[1:]) for row in rows]


async def insert(tx: Tx, chunks: Sequence[NewChunk]) -> None:
    """Store the chunks."""
    values = {
        "last_times": arrays.timestamps([chunk.last_time for chunk in chunks]),
        "generations": arrays.bigints([chunk.generation for chunk in chunks]),
        "firsts": arrays.bigints([chunk.first_sequence for chunk in chunks]),
        "lasts": arrays.bigints([chunk.last_sequence for chunk in chunks]),
        "dropped": arrays.bigints([chunk.dropped_count for chunk in chunks]),
        "levels": arrays.smallints([chunk.max_level for chunk in chunks]),
        "tenants": arrays.texts([chunk.tenant_id for chunk in chunks]),
        "tasks": arrays.texts([chunk.task_id for chunk in chunks]),
        "entries": arrays.byteas([chunk.entries for chunk in chunks]),
    }
    await tx.execute(statement("insert_logs"), values)


# Bytes of chunks that are read at a time.
READ_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which logs of a task to read: one run only (0: all), from a level upwards."""

    tenant_id: str
    task_id: str
    only_generation: int = 0
    min_level: int = 0


async def read(
    tx: Tx,
    query: LogQuery,
    generation: int,
    sequence: int,
    limit: int,
    *,
    backwards: bool = False,
) -> list[LogChunk]:
    """Return chunks that reach beyond the entry (generation, sequence), or lie before it.

    As many as have READ_BYTES together, or one.
    """
    values = {
        "tenant": query.tenant_id,
        "task": query.task_id,
        "only": query.only_generation,
        "level": query.min_level,
        "generation": generation,
        "sequence": sequence,
        "limit": limit,
        "max_bytes": READ_BYTES,
    }
    name = "read_logs_backwards" if backwards else "read_logs"
    rows = await tx.fetch(statement(name), values)
    return [LogChunk(*row) for row in rows]


async def ends(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the newest stored (generation, sequence) of each task that has logs."""
    values = {"tenants": arrays.texts([k[0] for k in keys]), "tasks": arrays.texts([k[1] for k in keys])}
    rows = await tx.fetch(statement("log_ends"), values)
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


@dataclass(frozen=True, slots=True)
class LogState:
    """How far the logs of a task are, and whether more are to come."""

    phase: int
    # Seconds since the task ended; None while it lives.
    ended_for: float | None
    # Last entry of the newest ended run as it reported it (None: it did not), whether any run has ended,
    # the last entry stored of that run, and the seconds since it was (None: none is).
    announced: int | None
    ran: bool
    stored: int
    stored_for: float | None

    def patience_left(self, patience: float, silence: float, quiet: float | None) -> float | None:
        """Seconds until nothing more is expected, at most 0 once it is; None while the task lives.

        `quiet` is for how long no entry has been stored, where that counts: a runner may take longer to ship
        a long log than it took to write it, and as long as entries arrive more of them follow.
        """
        if self.ended_for is None:
            return None
        if self.announced is None:
            return silence - self.ended_for if self.ran else 0.0
        if self.stored >= self.announced:
            return 0.0
        return patience - (self.ended_for if quiet is None else min(self.ended_for, quiet))


async def state(tx: Tx, tenant_id: str, task_id: str) -> LogState | None:
    """Return the state of a task's logs; None if there is no such task."""
    params = {"tenant": tenant_id, "task": task_id}
    row = await tx.fetch_row(statement("log_state"), params)
    if row is None:
        row = await tx.fetch_row(statement("archived_log_state"), params)
    return LogState(*row) if row else None
