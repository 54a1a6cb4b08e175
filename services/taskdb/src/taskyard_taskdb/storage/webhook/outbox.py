"""The outbox of webhooks: stored in the transaction that ends a task, deleted once delivered."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard.errors import NotFound
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import tenant_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.webhook import SECRET_BYTES
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord
from taskyard_taskdb.storage.statements import statement

MAX_ERROR = 500
SENDER = Actor(ActorType.SYSTEM, "webhooks")


@dataclass(frozen=True, slots=True)
class Call:
    """A call to be made: the task as it was when it ended, and the number of attempts so far."""

    id: int
    attempt: int
    create_time: datetime
    task: TaskRecord


@dataclass(frozen=True, slots=True)
class Delivery:
    """A call that is not delivered yet; `callback` is the serialised message of the task."""

    id: int
    tenant_id: str
    task_id: str
    callback: bytes
    attempt: int
    last_error: str
    create_time: datetime
    due_time: datetime


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets that sign a tenant's calls, newest first."""

    values: tuple[bytes, ...]
    rotate_time: datetime


# The stored document is read as a row of tasks; columns added later are null.
_DUE = f"""SELECT w.id, w.attempt, w.create_time, {tasks.COLUMNS}
    FROM webhooks w
    CROSS JOIN LATERAL jsonb_populate_record(NULL::tasks, w.task) t
    LEFT JOIN leases l ON false
    LEFT JOIN sessions s ON false
    WHERE w.due_time <= statement_timestamp() AND w.id <> ALL (%(in_flight)s::bigint[])
        AND NOT EXISTS (SELECT FROM webhooks earlier
            WHERE earlier.tenant_id = w.tenant_id AND earlier.task_id = w.task_id AND earlier.id < w.id)
    ORDER BY w.due_time LIMIT %(page)s"""


async def store(tx: Tx, keys: Sequence[Key]) -> None:
    """Store the calls of tasks that this transaction has ended."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
    await tx.execute(statement("insert_webhooks"), params)


async def store_groups(tx: Tx, keys: Sequence[Key]) -> None:
    """Store the calls of groups that this transaction has completed; `keys` are tenants and group ids."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "group_ids": arrays.texts([key[1] for key in keys]),
    }
    await tx.execute(statement("insert_group_webhooks"), params)


async def read_due(tx: Tx, in_flight: Sequence[int], page: int) -> list[Call]:
    """Return a page of due calls that are not in flight; of each task only the oldest."""
    rows = await tx.fetch(_DUE, {"in_flight": arrays.bigints(in_flight), "page": page})
    return [Call(row[0], row[1], row[2], tasks.record(row[3:])) for row in rows]


async def next_due(tx: Tx) -> float | None:
    """Return in how many seconds the next call is due; None without calls."""
    row = await tx.fetch_row(statement("next_webhook"))
    return row[0] if row else None


async def backlog(tx: Tx) -> tuple[int, float]:
    """Return the number of undelivered calls, and the age of the oldest in seconds."""
    row = await tx.fetch_row(statement("webhook_backlog"))
    return (row[0], row[1] or 0.0) if row else (0, 0.0)


async def list_deliveries(tx: Tx, tenant_id: str | None, after: int, size: int) -> list[Delivery]:
    """Return undelivered calls of one tenant or of all, in the order in which they were stored."""
    rows = await tx.fetch(statement("list_webhooks"), {"tenant": tenant_id, "after": after, "size": size})
    return [Delivery(*row) for row in rows]


async def delete_call(tx: Tx, call: Call) -> bool:
    """Delete a call; returns False if it has changed since it was read."""
    return bool(await tx.execute(statement("delete_webhook"), {"id": call.id, "attempt": call.attempt}))


async def give_up(tx: Tx, call: Call, error: str) -> None:
    """Delete a call that cannot be delivered, and record that in the change log of its tenant."""
    if not await delete_call(tx, call):
        return
    now = (await tx.fetch("SELECT clock_timestamp()"))[0][0]
    task = call.task
    details = {"error": error[:MAX_ERROR], "attempts": call.attempt + 1, "version": task.version}
    await append_change(
        tx, ChangeEvent.WEBHOOK_GIVEN_UP, task.tenant_id, task.task_id, SENDER, now, details=details
    )


async def retry_later(tx: Tx, call: Call, delay: timedelta, error: str) -> bool:
    """Postpone a failed call and count the attempt; returns False if it has changed since it was read."""
    params = {"id": call.id, "attempt": call.attempt, "delay": delay, "error": error[:MAX_ERROR]}
    return bool(await tx.execute(statement("retry_webhook_later"), params))


async def postpone(tx: Tx, ids: Sequence[int], delay: timedelta) -> None:
    """Postpone calls that were not tried."""
    await tx.execute(statement("postpone_webhooks"), {"ids": arrays.bigints(ids), "delay": delay})


async def rotate_secret(tx: Tx, tenant_id: str, actor: Actor) -> Secrets:
    """Replace the secret of a tenant, which stays valid for a while; returns both. Raises NotFound."""
    made = {"tenant_id": tenant_id, "secret": secrets.token_bytes(SECRET_BYTES)}
    existed = await tx.execute(statement("rotate_webhook_secret"), made)
    rotated = await signing_secrets(tx, tenant_id)
    if existed:
        event = ChangeEvent.TENANT_SECRET_ROTATED
        await append_change(tx, event, tenant_id, tenant_id, actor, rotated.rotate_time)
    return rotated


async def signing_secrets(tx: Tx, tenant_id: str) -> Secrets:
    """Return the secrets of a tenant; the first call makes one. Raises NotFound."""
    made = {"tenant_id": tenant_id, "secret": secrets.token_bytes(SECRET_BYTES)}
    await tx.execute(statement("make_webhook_secret"), made)
    row = await tx.fetch_row(statement("read_webhook_secrets"), {"tenant_id": tenant_id})
    if row is None:
        raise NotFound("tenant", tenant_name(tenant_id))
    return Secrets(tuple(secret for secret in row[:2] if secret is not None), row[2])
