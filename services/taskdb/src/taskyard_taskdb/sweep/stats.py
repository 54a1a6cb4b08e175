"""Keeps the statistics of tasks up with the change log, a page at a time."""

from __future__ import annotations

import math
import time
from datetime import timedelta

from taskyard_taskdb.storage.change_log.read import Horizon
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.stats import stats as task_stats
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.sweep.leader import Office

FOLD_SECONDS = 5.0
# What a full page is followed by, as a part of the time it took: claims do not feel it, nor does it hold up
# other sweeps.
REST = 2.0
KEPT = timedelta(days=35)
FORGET_SECONDS = 3600.0


class StatsSweep:
    """Counts what has changed. Any replica may: the place in the log is locked by whoever counts."""

    name = "stats"
    poll = FOLD_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._horizon = Horizon()
        self._forget_due = 0.0

    async def run(self, office: Office) -> float:
        began = time.monotonic()
        async with self._pool.reading() as tx:
            horizon = await self._horizon.advance(tx)
        done = await task_stats.fold(self._pool, horizon, pages=1)
        took = time.monotonic() - began
        if time.monotonic() >= self._forget_due:
            await self._pool.run(_forget)
            self._forget_due = time.monotonic() + FORGET_SECONDS
        return math.inf if done else REST * took


async def _forget(tx: Tx) -> int:
    return await task_stats.forget(tx, await database_time(tx) - KEPT)
