"""What a taskdb process does uncalled: the sweeps of the leader, and what each replica does for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from taskyard_kit.shutdown import end_tasks
from taskyard_taskdb.storage.bridge import Bridge
from taskyard_taskdb.storage.lanes import Lanes
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.sweep.due import TimerSweep
from taskyard_taskdb.sweep.expiry import ExpirySweep
from taskyard_taskdb.sweep.leader import Office
from taskyard_taskdb.sweep.pages import LeasePages, Told
from taskyard_taskdb.sweep.seals import SealSweep
from taskyard_taskdb.sweep.slots import SlotSweep
from taskyard_taskdb.sweep.sweeper import Sweeper, repeat
from taskyard_taskdb.sweep.tidy import InboxSweep, PartitionSweep, RequestSweep, RevocationSweep
from taskyard_taskdb.sweep.usage import UsageSweep

BOUNDS_SECONDS = 3.0


class Housekeeping:
    """Started and stopped with the process. `leads` false leaves the office to other replicas."""

    def __init__(
        self,
        url: str,
        pool: Pool,
        lanes: Lanes,
        told: Told,
        apply_reports: Callable[[], Awaitable[int]],
        *,
        grace: timedelta,
        leads: bool = True,
    ) -> None:
        self._pool = pool
        self._lanes = lanes
        self._leads = leads
        self._bridge = Bridge(url, pool, lanes)
        self.office = Office(pool, grace)
        sweeps = (
            TimerSweep(pool, told),
            ExpirySweep(pool, LeasePages(pool, told)),
            SlotSweep(pool, told),
            InboxSweep(apply_reports),
            RevocationSweep(pool),
            RequestSweep(pool),
            PartitionSweep(pool),
            SealSweep(pool),
            UsageSweep(pool),
        )
        self.sweeper = Sweeper(self.office, sweeps)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin in the running loop."""
        work = [self._bridge.send(), self._bridge.receive(), repeat(self.repair_bounds, BOUNDS_SECONDS)]
        if self._leads:
            work.append(self.sweeper.run())
        self._tasks = [asyncio.create_task(coroutine) for coroutine in work]

    async def stop(self) -> None:
        """End; the office is given up."""
        await end_tasks(self._tasks)

    async def repair_bounds(self) -> int:
        """Look below the lanes' bounds, which are this process's own."""
        if not self._lanes.bounds:
            return 0
        async with self._pool.reading() as tx:
            return await self._lanes.repair(tx)
