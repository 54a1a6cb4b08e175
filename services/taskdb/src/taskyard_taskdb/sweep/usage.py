"""Forgets tenants whose use is worth nothing any more."""

from __future__ import annotations

import math

from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant import usage
from taskyard_taskdb.sweep.leader import Office

FORGET_SECONDS = 600.0


class UsageSweep:
    """Keeps the table of what tenants have used small."""

    name = "usage"
    poll = FORGET_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, office: Office) -> float:
        """Delete what has decayed."""

        async def work(tx: Tx) -> int:
            await office.stand(tx)
            return await usage.forget(tx)

        await self._pool.run(work)
        return math.inf
