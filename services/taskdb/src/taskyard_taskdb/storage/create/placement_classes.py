"""Placement classes: stored once, before the first task of a class, and then remembered."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta

from taskyard.errors import PlacementClassLimit
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.statements import statement

MAX_CLASSES = 1000
_MAX_KNOWN = 100_000

ClassKey = tuple[str, int]
"""Tenant and class."""


class ClassCache:
    """Which classes the database has, as far as this process has seen within `ttl`.

    Classes without live tasks are removed when a tenant reaches its limit, and only those older than `ttl`
    twice, so that none is removed that a process still takes for stored.
    """

    def __init__(self, pool: Pool, ttl: timedelta = timedelta(minutes=5)) -> None:
        self._pool = pool
        self._ttl = ttl
        self._known: dict[ClassKey, float] = {}

    def knows(self, tenant_id: str, class_id: int) -> bool:
        """Whether `ensure` would find this class stored, without asking the database."""
        return self._known.get((tenant_id, class_id), 0.0) > time.monotonic()

    async def ensure(self, classes: Iterable[tuple[str, int, bytes]]) -> dict[ClassKey, PlacementClassLimit]:
        """Stores what is not stored yet; classes that their tenant may not add come back with the error."""
        now = time.monotonic()
        missing = {
            (tenant, class_id): definition
            for tenant, class_id, definition in classes
            if self._known.get((tenant, class_id), 0.0) <= now
        }
        if not missing:
            return {}
        refused = await self._pool.run(lambda tx: self._store(tx, missing))
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        for key in missing.keys() - refused.keys():
            self._known[key] = now + self._ttl.total_seconds()
        return refused

    async def ensure_one(self, tx: Tx, tenant_id: str, class_id: int, definition: bytes) -> None:
        """Stores a class in the caller's transaction; raises PlacementClassLimit."""
        refused = await self._store(tx, {(tenant_id, class_id): definition})
        for error in refused.values():
            raise error

    async def _store(self, tx: Tx, missing: dict[ClassKey, bytes]) -> dict[ClassKey, PlacementClassLimit]:
        refused: dict[ClassKey, PlacementClassLimit] = {}
        for tenant in sorted({tenant for tenant, _ in missing}):
            own = {key: definition for key, definition in missing.items() if key[0] == tenant}
            if (
                await self._insert(tx, tenant, own) > MAX_CLASSES
                and await self._prune(tx, tenant) > MAX_CLASSES
            ):
                # The new ones are taken back; those of other tenants stay.
                await tx.execute(statement("delete_new_classes"), (tenant, _ids(own)))
                stored = {row[0] for row in await tx.fetch(statement("find_classes"), (tenant, _ids(own)))}
                limit = PlacementClassLimit(f"tenants/{tenant}", str(MAX_CLASSES))
                refused |= {key: limit for key in own if key[1] not in stored}
        return refused

    async def _insert(self, tx: Tx, tenant: str, own: dict[ClassKey, bytes]) -> int:
        values = (tenant, _ids(own), arrays.byteas(list(own.values())))
        await tx.execute(statement("insert_classes"), values)
        row = await tx.fetch_row(statement("count_classes"), (tenant, MAX_CLASSES + len(own) + 1))
        assert row is not None
        count: int = row[0]
        return count

    async def _prune(self, tx: Tx, tenant: str) -> int:
        await tx.execute(statement("delete_dead_classes"), {"tenant": tenant, "age": self._ttl * 2})
        row = await tx.fetch_row(statement("count_classes"), (tenant, MAX_CLASSES + 1))
        assert row is not None
        count: int = row[0]
        return count


def _ids(classes: dict[ClassKey, bytes]) -> object:
    return arrays.bigints([class_id for _, class_id in classes])
