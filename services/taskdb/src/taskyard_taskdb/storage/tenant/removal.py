"""The end of a tenant: everything it owns, page by page, then the tenant itself. Its audit trail stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from psycopg import sql

from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters, tenants
from taskyard_taskdb.storage.tenant.tenants import TTL

_PAGE = 5000
# What waits goes first, so that nothing becomes claimable or due meanwhile; then what is held, then the rest.
_FIRST = (
    "schedule_tasks", "schedules", "groups", "queue", "timers", "inbox", "slots", "leases", "tasks", "limits",
)  # fmt: skip
# The change log is the audit trail, revocations are for holders; the others end with the tenant's row.
_KEPT = frozenset(
    {
        "changes",
        "revocations",
        "tenants",
        "api_keys",
        "task_types",
        "task_type_revisions",
        "tenant_counters",
    }
)


class TenantRemoval:
    """Removes everything that a tenant owns; an interrupted removal continues when it is requested again."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def empty(self, tenant_id: str, publish: Callable[[CommitNotice], None]) -> None:
        """Suspend a tenant that has tasks, wait until no replica has it cached, and delete what it owns."""
        suspended = await self._pool.run(lambda tx: _suspend(tx, tenant_id))
        publish(CommitNotice.of_settings(tenant_id))
        if suspended:
            # A replica that missed the notice admits tasks for as long as it caches the tenant.
            await asyncio.sleep(TTL.total_seconds())
        for table in await self._pool.run(_tables):
            while await self._pool.run(lambda tx, table=table: _delete_page(tx, table, tenant_id)):  # type: ignore[misc]
                pass

    async def finish(self, tx: Tx, tenant_id: str) -> None:
        """Delete the locked tenant, and what was stored for it since, while no task is being written."""
        await counters.hold_writers(tx)
        for table in await _tables(tx):
            await _delete_page(tx, table, tenant_id)
        await tenants.delete(tx, tenant_id)


async def _suspend(tx: Tx, tenant_id: str) -> bool:
    """Whether the tenant has tasks and was not suspended for long."""
    row = await tx.fetch_row(statement("suspend_tenant"), {"tenant_id": tenant_id, "ttl": TTL})
    return row is not None and bool(row[0])


async def _tables(tx: Tx) -> list[str]:
    """Every table with rows of tenants, in the order in which they are emptied."""
    found = {row[0] for row in await tx.fetch(statement("tenant_tables"))} - _KEPT
    return [table for table in _FIRST if table in found] + sorted(found - set(_FIRST))


async def _delete_page(tx: Tx, table: str, tenant_id: str) -> int:
    if table == "leases":
        await tx.execute(statement("revoke_tenant"), {"tenant_id": tenant_id, "page": _PAGE})
    # A partitioned table is a few tables whose rows have the same places.
    await tx.execute("SET LOCAL enable_hashjoin = on", prepare=False)
    query = sql.SQL(
        "DELETE FROM {table} WHERE tenant_id = %s AND (tableoid, ctid) IN "
        "(SELECT tableoid, ctid FROM {table} WHERE tenant_id = %s LIMIT %s)"
    ).format(table=sql.Identifier(table))
    return await tx.execute(query.as_string(None), (tenant_id, tenant_id, _PAGE), prepare=False)
