"""Tenants: read for every submission, and so remembered for a short while."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

from taskyard.errors import NotFound, TenantSuspended
from taskyard_taskdb.domain.quota import Quota
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.statements import statement

# How long a change of a tenant or of its task types may be unknown to a replica that has not heard of it.
TTL = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Tenant:
    """What a submission has to know of its tenant."""

    tenant_id: str
    suspended: bool
    # Whether it has counters; of its limits, those that concern a call as a whole.
    limited: bool = False
    rate_limit_per_sec: int = 0
    rate_burst: int = 0

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
        self._known: dict[str, tuple[float, Tenant]] = {}

    async def admit(self, tenant_id: str) -> Tenant:
        """The tenant, which may submit work. Raises NotFound or TenantSuspended."""
        found = self._known.get(tenant_id)
        tenant = (
            found[1] if found is not None and found[0] > time.monotonic() else await self._load(tenant_id)
        )
        if tenant.suspended:
            raise TenantSuspended(tenant.name)
        return tenant

    def forget(self, tenant_id: str | None = None) -> None:
        """Read the tenant, or every one, anew next time, because it has changed."""
        if tenant_id is None:
            self._known.clear()
        else:
            self._known.pop(tenant_id, None)

    async def _load(self, tenant_id: str) -> Tenant:
        async with self._pool.reading() as tx:
            row = await tx.fetch_row(statement("find_tenant"), (tenant_id,))
        if row is None:
            self.forget(tenant_id)
            raise NotFound("tenant", f"tenants/{tenant_id}")
        tenant = Tenant(*row)
        self._known[tenant_id] = (time.monotonic() + self._ttl, tenant)
        return tenant
