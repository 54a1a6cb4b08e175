"""Writes the change log; ids are drawn under the shared lock that the log's reader waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from taskyard_taskdb.domain.change import ChangeEvent, ResourceKind
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

# Every writer holds this transaction-level advisory lock in shared mode from before it draws an id to the
# end of its transaction. It is taken after the row locks: a writer that waits for a row would hold up every
# watch.
LOG_LOCK = 0x7461736B79617264

TASK = ResourceKind.TASK


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
    arrays.integers,
    arrays.integers,
    arrays.timestamps,
    *(arrays.integers,) * 4,
    *(arrays.smallints,) * 6,
    *(arrays.texts,) * 7,
)


# From as many rows on a COPY is worth its two more exchanges with the server: it logs a page's rows together.
COPY_FROM = 64
_NULL_IF_ZERO = (
    "generation",
    "attempt",
    "retry_count",
    "runner_loss_count",
    "previous_phase",
    "pending_reason",
)


async def insert_changes(tx: Tx, rows: Sequence[ChangeRow]) -> None:
    """Appends the rows in their order; the last statement of a transaction where that is possible."""
    if rows:
        await insert_columns(tx, list(zip(*rows, strict=True)))


async def insert_columns(tx: Tx, columns: Sequence[Sequence[Any]]) -> None:
    """The same for rows that come column by column, in the order of ChangeRow; none is empty."""
    values = dict(zip(ChangeRow._fields, columns, strict=True))
    if len(values["time"]) < COPY_FROM or any(values["details"]):
        columns = [encode(column) for encode, column in zip(_ENCODERS, columns, strict=True)]
        await tx.execute(statement("insert_changes"), (LOG_LOCK, *columns))
        return
    for name in _NULL_IF_ZERO:
        values[name] = [value or None for value in values[name]]
    # A statement before the COPY, which draws the ids.
    await tx.execute(statement("lock_log"), (LOG_LOCK,))
    encoded = [
        arrays.elements(encode, column) for encode, column in zip(_ENCODERS, values.values(), strict=True)
    ]
    await tx.copy(statement("copy_changes"), arrays.copy_data(encoded))


async def append_change(
    tx: Tx,
    event: ChangeEvent,
    tenant_id: str,
    resource_id: str,
    actor: Actor,
    now: datetime,
    *,
    version: int = 0,
    request_id: str | None = None,
    details: Mapping[str, object] | None = None,
) -> None:
    """Appends what happened to a runner, tenant, task type, key or quarantine; `now` is the database's time.

    Belongs in the transaction that makes the change, as late as possible. A runner's changes belong to tenant
    "system". `details` hold no secret: everybody who may read the tenant's audit sees them.
    """
    row = resource_change(
        event, tenant_id, resource_id, actor, now, version=version, request_id=request_id, details=details
    )
    await insert_changes(tx, [row])


def resource_change(
    event: ChangeEvent,
    tenant_id: str,
    resource_id: str,
    actor: Actor,
    now: datetime,
    *,
    version: int = 0,
    request_id: str | None = None,
    details: Mapping[str, object] | None = None,
) -> ChangeRow:
    """A change of anything but a task, as a row of the log."""
    return ChangeRow(
        time=now,
        version=version,
        generation=0,
        next_attempt_time=None,
        attempt=0,
        retry_count=0,
        runner_loss_count=0,
        exit_code=None,
        resource_kind=event.resource_kind,
        event=event,
        actor_type=actor.type,
        phase=0,
        previous_phase=0,
        pending_reason=0,
        tenant_id=tenant_id,
        resource_id=resource_id,
        actor_id=actor.id,
        runner_id=resource_id if event.resource_kind == ResourceKind.RUNNER else None,
        error_code=None,
        request_id=request_id,
        details=json.dumps(details) if details else None,
    )
