"""Tenants as administrators see and change them, and the short-lived cache that submissions read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard.errors import NotFound, TenantSuspended
from taskyard_taskdb.domain import quota
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.names import tenant_name
from taskyard_taskdb.domain.quota import NO_OVERRIDES, Quota, QuotaOverrides, Tier
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A row of tenants; the quota is that of the tier with the tenant's own numbers on top."""

    tenant_id: str
    display_name: str
    tier: Tier
    own: QuotaOverrides = NO_OVERRIDES
    suspended: bool = False
    queue_paused: bool = False
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    @property
    def name(self) -> str:
        """The resource name."""
        return tenant_name(self.tenant_id)

    @property
    def quota(self) -> Quota:
        """The limits in force."""
        return quota.effective(self.tier, self.own)


def _read(row: Row) -> TenantRow:
    tenant_id, display_name, tier, *rest = row
    return TenantRow(tenant_id, display_name, Tier(tier), QuotaOverrides(*rest[:6]), *rest[6:])


def _params(tenant: TenantRow) -> dict[str, object]:
    own = tenant.own
    return {
        "tenant_id": tenant.tenant_id,
        "display_name": tenant.display_name,
        "tier": int(tenant.tier),
        "max_concurrent_tasks": own.max_concurrent_tasks,
        "max_queue_depth": own.max_queue_depth,
        "rate_limit_per_sec": own.rate_limit_per_sec,
        "rate_burst": own.rate_burst,
        "weight": own.weight,
        "max_storage_bytes": own.max_storage_bytes,
        "suspended": tenant.suspended,
        "queue_paused": tenant.queue_paused,
    }


async def insert(tx: Tx, tenant: TenantRow) -> TenantRow | None:
    """The new tenant; None if the id is taken."""
    row = await tx.fetch_row(statement("insert_tenant"), _params(tenant))
    return _read(row) if row is not None else None


async def find(tx: Tx, tenant_id: str) -> TenantRow | None:
    """The tenant, unlocked."""
    row = await tx.fetch_row(statement("read_tenant"), (tenant_id,))
    return _read(row) if row is not None else None


async def find_all(tx: Tx, tenant_ids: Sequence[str]) -> dict[str, TenantRow]:
    """Those of these tenants that exist, by id."""
    rows = await tx.fetch(statement("read_tenants"), (arrays.texts(tenant_ids),))
    return {row[0]: _read(row) for row in rows}


async def lock(tx: Tx, tenant_id: str) -> TenantRow | None:
    """The tenant, locked until the end of the transaction."""
    row = await tx.fetch_row(statement("lock_tenant"), (tenant_id,))
    return _read(row) if row is not None else None


async def page(tx: Tx, after: str, size: int) -> list[TenantRow]:
    """Up to `size` tenants whose ids follow `after`."""
    return [_read(row) for row in await tx.fetch(statement("list_tenants"), (after, size))]


async def update(tx: Tx, tenant: TenantRow) -> TenantRow:
    """A locked tenant as it is from now on."""
    row = await tx.fetch_row(statement("update_tenant"), _params(tenant))
    assert row is not None, "the tenant is locked"
    return _read(row)


async def delete(tx: Tx, tenant_id: str) -> None:
    """Delete a locked tenant that has no tasks."""
    await tx.execute(statement("delete_tenant"), (tenant_id,))


async def count_children(tx: Tx, tenant_id: str) -> int:
    """Task types and tasks, of the latter at most a thousand."""
    row = await tx.fetch_row(statement("count_children"), {"tenant_id": tenant_id})
    assert row is not None
    count: int = row[0]
    return count


# How long a replica that missed a notice may serve a tenant or its task types from its cache.
TTL = timedelta(seconds=2)
# Tenants of which a process remembers something.
_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Tenant:
    """The facts about a tenant that a submission needs."""

    tenant_id: str
    suspended: bool
    # Whether it has counters; of its limits, those that concern a call as a whole.
    limited: bool = False
    rate_limit_per_sec: int = 0
    rate_burst: int = 0
    # 0 is unlimited.
    max_storage_bytes: int = 0

    @property
    def name(self) -> str:
        """The resource name."""
        return f"tenants/{self.tenant_id}"

    def check_batch(self, size: int) -> None:
        """Raises BatchTooLarge for more new tasks in one call than the bucket could ever admit."""
        Quota(0, 0, self.rate_limit_per_sec, self.rate_burst, 1).check_batch(size)


class TenantCache:
    """Tenants as they were at most `ttl` ago; a missing one is looked for every time."""

    def __init__(self, pool: Pool, ttl: timedelta = TTL) -> None:
        self._pool = pool
        self._ttl = ttl.total_seconds()
        self._cached: BoundedCache[str, tuple[float, Tenant]] = BoundedCache(_KEPT, _KEPT * 1000)

    async def admit(self, tenant_id: str) -> Tenant:
        """The tenant, which may submit work. Raises NotFound or TenantSuspended."""
        found = self._cached.get(tenant_id)
        tenant = (
            found[1] if found is not None and found[0] > time.monotonic() else await self._load(tenant_id)
        )
        if tenant.suspended:
            raise TenantSuspended(tenant.name)
        return tenant

    def forget(self, tenant_id: str | None = None) -> None:
        """Read the tenant, or every one, anew next time, because it has changed."""
        if tenant_id is None:
            self._cached.drop_all(lambda _: True)
        else:
            self._cached.drop(tenant_id)

    async def _load(self, tenant_id: str) -> Tenant:
        async with self._pool.reading() as tx:
            row = await tx.fetch_row(statement("find_tenant"), (tenant_id,))
        if row is None:
            self.forget(tenant_id)
            raise NotFound("tenant", f"tenants/{tenant_id}")
        tenant = Tenant(*row)
        self._cached.put(tenant_id, (time.monotonic() + self._ttl, tenant), 1000)
        return tenant
