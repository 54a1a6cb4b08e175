"""Writes the change log; ids are drawn under the shared lock that the log's reader waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

# Every writer holds this transaction-level advisory lock in shared mode from before it draws an id to the
# end of its transaction. It is taken after the row locks: a writer that waits for a row would hold up every
# watch.
LOG_LOCK = 0x7461736B79617264

TASK = 1
RUNNER = 2
TENANT = 3
TASK_TYPE = 4
API_KEY = 5
QUARANTINE = 6


class ChangeRow(NamedTuple):
    """A row of `changes` without its id, in the order of the columns of insert_changes."""

    time: datetime
    version: int
    generation: int
    next_attempt_time: datetime | None
    attempt: int
    retry_count: int
    runner_loss_count: int
    exit_code: int | None
    resource_kind: int
    event: int
    actor_type: int
    phase: int
    previous_phase: int
    pending_reason: int
    tenant_id: str
    resource_id: str
    actor_id: str
    runner_id: str | None
    error_code: str | None
    request_id: str | None
    # A JSON document.
    details: str | None


_ENCODERS: tuple[arrays.Encoder, ...] = (
    arrays.timestamps,
    arrays.bigints,
    arrays.bigints,
    arrays.timestamps,
    *(arrays.integers,) * 4,
    *(arrays.smallints,) * 6,
    *(arrays.texts,) * 7,
)


async def insert_changes(tx: Tx, rows: Sequence[ChangeRow]) -> None:
    """Appends the rows in their order; the last statement of a transaction where that is possible."""
    if rows:
        columns = zip(*rows, strict=True)
        encoded = [encode(column) for encode, column in zip(_ENCODERS, columns, strict=True)]
        await tx.execute(statement("insert_changes"), (LOG_LOCK, *encoded))
