"""Named limits as users define and change them.

A deleted limit stays as a row that bounds nothing, until its units are given back and its waiters admitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import errors as pg

from taskyard.errors import NotFound
from taskyard_taskdb.domain.limit import Rules
from taskyard_taskdb.domain.names import limit_name, tenant_name
from taskyard_taskdb.storage.limit.book import LimitKey, limit_arrays, read_rules
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement


class LimitRow(NamedTuple):
    """A limit as it is stored."""

    tenant_id: str
    limit_id: str
    uid: UUID
    version: int
    create_time: datetime
    update_time: datetime
    description: str
    rules: Rules
    held: int = 0
    waiting: int = 0

    @property
    def key(self) -> LimitKey:
        """Tenant and limit."""
        return self.tenant_id, self.limit_id

    @property
    def name(self) -> str:
        """The resource name."""
        return limit_name(self.tenant_id, self.limit_id)


def _read(row: Row) -> LimitRow:
    tenant_id, limit_id, uid, version, create_time, update_time, description, *columns = row
    rules, counts = read_rules(columns[:6]), columns[6:]
    return LimitRow(tenant_id, limit_id, uid, version, create_time, update_time, description, rules, *counts)


def _params(row: LimitRow) -> dict[str, object]:
    rules = row.rules
    return {
        "tenant_id": row.tenant_id,
        "limit_id": row.limit_id,
        "uid": row.uid,
        "description": row.description,
        "max_running": rules.max_running,
        "max_running_per_key": rules.max_running_per_key,
        "starts_count": rules.starts.count if rules.starts else None,
        "starts_per": rules.starts.per if rules.starts else None,
        "starts_per_key_count": rules.starts_per_key.count if rules.starts_per_key else None,
        "starts_per_key_per": rules.starts_per_key.per if rules.starts_per_key else None,
    }


async def insert(tx: Tx, row: LimitRow) -> LimitRow | None:
    """The new limit; None if the id is taken. Raises NotFound for the tenant.

    One that was deleted and is still in use is created anew: what is held of it stays counted.
    """
    try:
        made = await tx.fetch_row(statement("insert_limit"), _params(row))
    except pg.ForeignKeyViolation:
        raise NotFound("tenant", tenant_name(row.tenant_id)) from None
    return _read(made) if made is not None else None


async def update(tx: Tx, row: LimitRow) -> LimitRow:
    """Write the definition of a locked limit, in its next version; the sweep tries it at once."""
    made = await tx.fetch_row(statement("update_limit"), _params(row))
    assert made is not None, "the limit is locked"
    return _read(made)


async def find(tx: Tx, key: LimitKey) -> LimitRow | None:
    """The limit, unlocked."""
    row = await tx.fetch_row(statement("read_limit"), key)
    return _read(row) if row is not None else None


async def lock(tx: Tx, key: LimitKey) -> LimitRow | None:
    """The limit, locked until the end of the transaction."""
    row = await tx.fetch_row(statement("lock_limit"), key)
    return _read(row) if row is not None else None


async def page(tx: Tx, tenant_id: str, after: Sequence[str], size: int) -> list[LimitRow]:
    """Up to `size` limits of a tenant behind `after`."""
    params = {"tenant_id": tenant_id, "after": after[0] if after else "", "size": size}
    return [_read(row) for row in await tx.fetch(statement("list_limits"), params)]


async def delete(tx: Tx, key: LimitKey) -> None:
    """Delete a locked limit; the sweep admits what waits for it and removes the row."""
    await tx.execute(statement("delete_limit"), key)


async def count(tx: Tx, tenant_id: str, most: int) -> int:
    """How many limits a tenant has, up to `most`."""
    row = await tx.fetch_row(statement("count_limits"), (tenant_id, most))
    assert row is not None
    found: int = row[0]
    return found


async def remove_idle(tx: Tx, keys: Sequence[LimitKey]) -> None:
    """Remove locked, deleted limits of which nothing is held and that nobody waits for."""
    await tx.execute(statement("remove_limits"), limit_arrays(keys))
