"""Tasks as they are read: the task's row with that of its lease, if it has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Row, Tx

Key = tuple[str, str]
"""Tenant and task id."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task in effect, in the order of the columns of COLUMNS. Serialised messages are left as they are.

    The fields from `runner_id` on are set only while a lease exists; expire_time is that of the session
    where the lease follows one.
    """

    tenant_id: str
    task_id: str
    uid: UUID
    version: int
    create_time: datetime
    update_time: datetime
    phase: int
    pending_reason: int
    generation: int
    attempt: int
    retry_count: int
    runner_loss_count: int
    ready_time: datetime | None
    next_attempt_time: datetime | None
    schedule_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    checkpoint_sequence: int
    exit_code: int | None
    error_code: str | None
    last_runner_id: str | None
    kind: int
    priority: int
    class_id: int
    pinned_runner: str
    task_type: str
    task_type_tenant: str | None
    slot: str | None
    entity_type: str | None
    entity_id: str | None
    parent_task_id: str | None
    group_id: str | None
    creator_type: int
    creator_id: str
    traceparent: str | None
    spec: bytes
    callback: bytes | None
    annotations: bytes | None
    labels: dict[str, str] | None
    result: bytes | None
    error: bytes | None
    progress: bytes | None
    details: bytes | None
    runner_id: str | None
    lease_id: int | None
    expire_time: datetime | None
    requested_action: int
    action: dict[str, Any] | None
    action_deadline: datetime | None

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return self.tenant_id, self.task_id

    @property
    def name(self) -> str:
        """The resource name."""
        return f"tenants/{self.tenant_id}/tasks/{self.task_id}"


# Of a query over `tasks t LEFT JOIN leases l ... LEFT JOIN sessions s ...`.
COLUMNS = """t.tenant_id, t.task_id, coalesce(t.uid, t.task_id::uuid), coalesce(l.version, t.version),
    t.create_time,
    CASE WHEN l.task_id IS NULL THEN t.update_time
        ELSE greatest(t.update_time, l.schedule_time, l.start_time) END,
    coalesce(l.phase, t.phase), CASE WHEN l.task_id IS NULL THEN t.pending_reason ELSE 0 END,
    coalesce(l.generation, t.generation), coalesce(l.attempt, t.attempt), t.retry_count, t.runner_loss_count,
    t.ready_time, t.next_attempt_time, coalesce(l.schedule_time, t.schedule_time),
    coalesce(l.start_time, t.start_time), t.end_time, t.checkpoint_sequence, t.exit_code, t.error_code,
    coalesce(l.runner_id, t.last_runner_id), t.kind, t.priority, t.class_id, t.pinned_runner, t.task_type,
    t.task_type_tenant, t.slot, t.entity_type, t.entity_id, t.parent_task_id, t.group_id, t.creator_type,
    t.creator_id, t.traceparent, t.spec, t.callback, t.annotations, t.labels, t.result, t.error,
    coalesce(l.progress, t.progress), coalesce(l.details, t.details), l.runner_id, l.lease_id,
    coalesce(l.expire_time, s.expire_time), coalesce(l.requested_action, 0), l.action, l.action_deadline"""

# The bytes of the documents in such a row; no value is decompressed for it.
SIZE = """(octet_length(t.spec) + coalesce(octet_length(t.annotations), 0)
    + coalesce(octet_length(t.result), 0) + coalesce(octet_length(t.error), 0)
    + coalesce(octet_length(coalesce(l.progress, t.progress)), 0)
    + coalesce(octet_length(coalesce(l.details, t.details)), 0))"""

JOINS = """LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id
    LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch"""


def record(row: Row) -> TaskRecord:
    """The record of a row of COLUMNS."""
    return TaskRecord(*row)


async def read(tx: Tx, tenant_id: str, task_id: str) -> TaskRecord | None:
    """One task, or None."""
    row = await tx.fetch_row(
        f"SELECT {COLUMNS} FROM tasks t {JOINS} WHERE t.tenant_id = %s AND t.task_id = %s",
        (tenant_id, task_id),
    )
    return None if row is None else record(row)


async def read_many(tx: Tx, keys: Iterable[Key]) -> dict[Key, TaskRecord]:
    """The tasks of these keys that exist."""
    wanted = list(keys)
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM unnest(%s::text[], %s::text[]) AS k (tenant_id, task_id) "
        f"JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id {JOINS}",
        (arrays.texts([key[0] for key in wanted]), arrays.texts([key[1] for key in wanted])),
    )
    return {found.key: found for found in map(record, rows)}


async def read_sizes(tx: Tx, keys: Iterable[Key]) -> dict[Key, int]:
    """The bytes of the documents of these tasks, of those that exist."""
    wanted = list(keys)
    rows = await tx.fetch(
        f"SELECT t.tenant_id, t.task_id, {SIZE} "
        "FROM unnest(%s::text[], %s::text[]) AS k (tenant_id, task_id) "
        f"JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id {JOINS}",
        (arrays.texts([key[0] for key in wanted]), arrays.texts([key[1] for key in wanted])),
    )
    return {(row[0], row[1]): row[2] for row in rows}


def sliced(keys: Iterable[Key], sizes: Mapping[Key, int], max_bytes: int) -> Iterator[list[Key]]:
    """The keys in order, in parts whose documents have about `max_bytes` at most, or one key."""
    part: list[Key] = []
    left = max_bytes
    for key in keys:
        left -= sizes.get(key, 0)
        if part and left < 0:
            yield part
            part, left = [], max_bytes - sizes.get(key, 0)
        part.append(key)
    if part:
        yield part


async def scan_keys(tx: Tx, tenant_id: str | None, after: Key | None, limit: int) -> dict[Key, int]:
    """Tasks of one tenant or of all by primary key, from the one after `after` on, with their sizes."""
    start = after or ("", "")
    own, params = "", [*start, limit]
    if tenant_id is not None:
        own, params = "t.tenant_id = %s AND", [tenant_id, *start, limit]
    rows = await tx.fetch(
        f"SELECT t.tenant_id, t.task_id, {SIZE} FROM tasks t {JOINS} "
        f"WHERE {own} (t.tenant_id, t.task_id) > (%s, %s) ORDER BY t.tenant_id, t.task_id LIMIT %s",
        params,
    )
    return {(row[0], row[1]): row[2] for row in rows}


def filter_fields(task: TaskRecord) -> dict[str, Any]:
    """The values that a filter on tasks may ask for, by the paths of domain.filter_fields."""
    parent = task.parent_task_id
    return {
        "id": task.task_id,
        "spec.task_type": task.task_type,
        "spec.slot": task.slot or (task.labels or {}).get(search_fields.SLOT),
        "spec.entity.type": task.entity_type,
        "spec.entity.id": task.entity_id,
        "spec.priority": task.priority,
        "status.phase": task.phase,
        "status.runner": task.runner_id,
        "status.attempt": task.attempt,
        "status.retry_count": task.retry_count,
        "status.error.code": task.error_code,
        "status.start_time": task.start_time,
        "status.end_time": task.end_time,
        "metadata.create_time": task.create_time,
        "metadata.update_time": task.update_time,
        "metadata.creator.id": task.creator_id,
        "metadata.parent_task": None if parent is None else task_name(task.tenant_id, parent),
        "metadata.group": task.group_id,
        "metadata.labels": task.labels or {},
    }
