"""The bytes that tenants with a limit store: measured now and then, with what is created in between added.

A tenant without a limit costs nothing. What other replicas create since the last measurement is not known
here, so that a tenant may exceed its limit by what they admit within MEASURE_SECONDS.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from taskyard.errors import StorageQuotaExceeded, TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.names import tenant_name
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.statements import statement

MEASURE_SECONDS = 30.0
RETRY_AFTER = timedelta(seconds=30)
# Tenants whose bytes a process remembers.
_KEPT = 10_000

log = get_log(__name__)


@dataclass(slots=True)
class _Measured:
    """The bytes of a tenant, when they are to be measured again, and the measurement under way."""

    size: int
    due: float
    running: asyncio.Task[None] | None = None
    # Admitted since the measurement under way began: it may or may not have seen them.
    since: int = 0


class StoredBytes:
    """Admits new tasks of tenants with a limit."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._measured: BoundedCache[str, _Measured] = BoundedCache(_KEPT, _KEPT * 500)

    async def admit(self, tenant_id: str, limit: int, size: int) -> None:
        """Count new tasks of `size` bytes. Raises StorageQuotaExceeded if they exceed the limit."""
        found = self._measured.get(tenant_id)
        if found is None:
            measured = await self._measure(tenant_id)
            # Of concurrent measurements the first counts.
            found = self._measured.get(tenant_id)
            if found is None:
                found = _Measured(measured, time.monotonic() + MEASURE_SECONDS)
                self._measured.put(tenant_id, found, 500)
        elif found.due <= time.monotonic() and found.running is None:
            found.since = 0
            found.running = asyncio.create_task(self._refresh(tenant_id, found))
        if found.size + size > limit:
            raise StorageQuotaExceeded(tenant_name(tenant_id), str(limit), retry_after=RETRY_AFTER)
        found.size += size
        found.since += size

    async def _refresh(self, tenant_id: str, found: _Measured) -> None:
        try:
            found.size = await self._measure(tenant_id) + found.since
        except TaskyardError as error:
            log.warning("storage_not_measured", tenant=tenant_id, error=str(error))
        finally:
            found.due = time.monotonic() + MEASURE_SECONDS
            found.running = None

    async def _measure(self, tenant_id: str) -> int:
        async with self._pool.reading(planned=True) as tx:
            row = await tx.fetch_row(statement("stored_bytes"), {"tenant_id": tenant_id})
        assert row is not None, "an aggregate has a row"
        size: int = row[0]
        return size
