"""Task types and their revisions. The body of a type is stored as the contract's message, serialised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from psycopg import errors as pg

from taskyard.errors import NotFound
from taskyard_taskdb.domain.names import task_type_name, tenant_name
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

TypeKey = tuple[str, str]
"""Tenant and type."""


@dataclass(frozen=True, slots=True)
class TypeColumns:
    """The fields of a type that have columns, for queries and other statements."""

    description: str
    definition: bytes
    retention: timedelta | None = None
    attempt_timeout: timedelta | None = None
    checkpoint_interval: timedelta | None = None
    max_retries: int | None = None
    archive: bool = False
    disabled: bool = False
    queue_paused: bool = False
    checks_result: bool = False
    runner_id_pattern: str = ""


class TypeRow(NamedTuple):
    """A type as it is stored."""

    tenant_id: str
    task_type: str
    revision: int
    version: int
    create_time: datetime
    update_time: datetime
    definition: bytes

    @property
    def key(self) -> TypeKey:
        """Tenant and type."""
        return self.tenant_id, self.task_type

    @property
    def name(self) -> str:
        """The resource name."""
        return task_type_name(self.tenant_id, self.task_type)


def _params(key: TypeKey, columns: TypeColumns) -> dict[str, object]:
    values = {name: getattr(columns, name) for name in TypeColumns.__slots__}
    return {"tenant_id": key[0], "task_type": key[1], **values}


async def insert(tx: Tx, key: TypeKey, columns: TypeColumns) -> TypeRow | None:
    """The new type; None if the id is taken. Raises NotFound for the tenant."""
    try:
        row = await tx.fetch_row(statement("insert_task_type"), _params(key, columns))
    except pg.ForeignKeyViolation:
        raise NotFound("tenant", tenant_name(key[0])) from None
    return await _keep(tx, TypeRow(*row)) if row is not None else None


async def update(tx: Tx, key: TypeKey, columns: TypeColumns) -> TypeRow:
    """A locked type as it is from now on, in its next revision."""
    row = await tx.fetch_row(statement("update_task_type"), _params(key, columns))
    assert row is not None, "the type is locked"
    return await _keep(tx, TypeRow(*row))


async def _keep(tx: Tx, row: TypeRow) -> TypeRow:
    values = (row.tenant_id, row.task_type, row.revision, row.definition)
    await tx.execute(statement("insert_task_type_revision"), values)
    return row


async def find(tx: Tx, key: TypeKey) -> TypeRow | None:
    """The type of exactly this tenant, unlocked."""
    row = await tx.fetch_row(statement("read_task_type"), key)
    return TypeRow(*row) if row is not None else None


async def lock(tx: Tx, key: TypeKey) -> TypeRow | None:
    """The type, locked until the end of the transaction."""
    row = await tx.fetch_row(statement("lock_task_type"), key)
    return TypeRow(*row) if row is not None else None


async def resolve(tx: Tx, tenant_id: str, task_type: str) -> TypeRow | None:
    """The type that a task of this tenant takes: its tenant's, else that of "system"."""
    params = {"tenant_id": tenant_id, "task_type": task_type}
    row = await tx.fetch_row(statement("resolve_task_type"), params)
    return TypeRow(*row) if row is not None else None


async def page(tx: Tx, tenant_id: str | None, after: Sequence[str], size: int) -> list[TypeRow]:
    """Up to `size` types behind `after`, of one tenant or of all."""
    after_tenant, after_type = after or ("", "")
    params = {"tenant_id": tenant_id, "after_tenant": after_tenant, "after_type": after_type, "size": size}
    return [TypeRow(*row) for row in await tx.fetch(statement("list_task_types"), params)]


async def delete(tx: Tx, key: TypeKey) -> None:
    """Delete a locked type."""
    await tx.execute(statement("delete_task_type"), key)


async def count_live_tasks(tx: Tx, key: TypeKey) -> int:
    """How many live tasks took this type, at most a thousand."""
    row = await tx.fetch_row(statement("count_tasks_of_type"), key)
    assert row is not None
    count: int = row[0]
    return count


async def read_revisions(tx: Tx, wanted: Iterable[tuple[str, str, int]]) -> dict[tuple[str, str, int], bytes]:
    """The definitions of these revisions."""
    keys = sorted(set(wanted))
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_types": arrays.texts([key[1] for key in keys]),
        "revisions": arrays.bigints([key[2] for key in keys]),
    }
    rows = await tx.fetch(statement("read_type_revisions"), params)
    return {(row[0], row[1], row[2]): row[3] for row in rows}


async def checking_tenants(tx: Tx) -> frozenset[str]:
    """The tenants with a type that has, or had in an earlier revision, a schema of results."""
    return frozenset(row[0] for row in await tx.fetch(statement("checking_tenants")))


async def revisions_of_runs(
    tx: Tx, runs: Sequence[tuple[str, str, int]]
) -> dict[tuple[str, str, int], tuple[str, str, int]]:
    """By tenant, task and generation: which revision of its type a run has or had, if there is one."""
    params = {
        "tenant_ids": arrays.texts([run[0] for run in runs]),
        "task_ids": arrays.texts([run[1] for run in runs]),
        "generations": arrays.bigints([run[2] for run in runs]),
    }
    rows = await tx.fetch(statement("revisions_of_runs"), params)
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in rows}


async def disabled_among(tx: Tx, tasks: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Those of these tasks whose type is disabled, and its name."""
    keys = sorted(set(tasks))
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
    rows = await tx.fetch(statement("disabled_types"), params)
    return {(row[0], row[1]): task_type_name(row[2], row[3]) for row in rows}
