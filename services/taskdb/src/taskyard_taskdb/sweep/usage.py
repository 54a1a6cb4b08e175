"""Samples what tenants hold, so that schedulers of every replica share capacity by the same figures."""

from __future__ import annotations

from taskyard_taskdb.storage import usage
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.leader import Office

SAMPLE_SECONDS = 2.0
# While nobody holds anything.
IDLE_SECONDS = 10.0
# Rows written per second at most, by sampling a crowd of tenants less often.
ROWS_PER_SECOND = 500
_FORGET_EVERY = 300


class UsageSweep:
    """Keeps the capacity-seconds of tenants."""

    name = "usage"

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._count = 0

    async def run(self, office: Office) -> float:
        """Take a sample."""
        self._count += 1
        forgets = self._count % _FORGET_EVERY == 0

        async def work(tx: Tx) -> int:
            await office.stand(tx)
            if forgets:
                await usage.forget(tx)
            return await usage.sample(tx)

        found = await self._pool.run(work)
        return max(SAMPLE_SECONDS, found / ROWS_PER_SECOND) if found else IDLE_SECONDS
