"""Repair of slots: one that is waited for and headed by nobody gets its next head."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.housekeeping.overdue import BEFORE_ALL
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.slot.repair import repair
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.sweep.leader import Office
from taskyard_taskdb.sweep.pages import Told

PAGE = 200
PERIOD_SECONDS = 30.0


class SlotSweep:
    """Finds slots in doubt, locks them, and looks again."""

    name = "slots"
    poll = PERIOD_SECONDS

    def __init__(self, pool: Pool, told: Told) -> None:
        self._pool = pool
        self._told = told

    async def run(self, office: Office) -> float:
        async with self._pool.reading() as tx:
            orphans = await overdue.headless_waiters(tx, PAGE)
        await self._repair(office, orphans)
        after = BEFORE_ALL
        while True:
            async with self._pool.reading() as tx:
                found = await overdue.doubtful_slots(tx, after, PAGE)
            await self._repair(office, found)
            if len(found) < PAGE:
                return math.inf
            after = found[-1]

    async def _repair(self, office: Office, found: Sequence[SlotKey]) -> None:
        async def work(tx: Tx) -> CommitNotice:
            await office.stand(tx)
            return await repair(tx, found)

        if found:
            self._told(await self._pool.run(work))
