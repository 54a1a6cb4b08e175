"""Holds back what waits of quarantined specs; a pop does so by itself with what it meets."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.quarantine import quarantined_specs
from taskyard_taskdb.storage.quarantine.quarantined_specs import Quarantine
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.sweep.leader import Office
from taskyard_taskdb.sweep.pages import Told

PAGE = 500
# More would be a sign of something else: the rest is held back when these are released.
MOST = 1000
PERIOD_SECONDS = 5.0


class QuarantineSweep:
    """Pauses tasks that wait and would run what is quarantined; usually there is nothing to look for."""

    name = "quarantine"
    poll = PERIOD_SECONDS

    def __init__(self, pool: Pool, told: Told) -> None:
        self._pool = pool
        self._told = told

    async def run(self, office: Office) -> float:
        async with self._pool.reading() as tx:
            held = await quarantined_specs.page(tx, None, ("", ""), MOST)
        for quarantine in held:
            after: str | None = ""
            while after is not None:
                async with self._pool.reading() as tx:
                    found, after = await quarantine_holds.find_waiting(tx, quarantine, after, PAGE)
                if found:
                    await self._hold(office, quarantine, found)
        return math.inf

    async def _hold(self, office: Office, quarantine: Quarantine, found: Sequence[Key]) -> None:
        async def work(tx: Tx) -> CommitNotice:
            await office.stand(tx)
            return await quarantine_holds.hold(tx, quarantine.tenant_id, quarantine.digest, found)

        self._told(await self._pool.run(work))
