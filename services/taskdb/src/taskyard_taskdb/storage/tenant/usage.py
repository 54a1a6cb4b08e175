"""Usage of tenants in capacity-seconds, decayed with a half-life of five minutes.

A run uses a place from its start to its end. What runs is read from the leases; what has ended is added up by
each replica in memory and written every few seconds, since a row per report would make reports of one tenant
wait for each other. A replica that dies loses a few seconds of usage, which does not matter.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.statements import statement

HALF_LIFE_SECONDS = 300.0
# Rows written per second at most, by writing those of a crowd of tenants less often.
ROWS_PER_SECOND = 500
ALWAYS = datetime(2000, 1, 1, tzinfo=UTC)


class Use(NamedTuple):
    """Capacity-seconds used as of now, the leases held, and when ended runs were last added."""

    usage: float
    leased_count: int
    update_time: datetime = ALWAYS


NO_USE = Use(0.0, 0)


def worth(seconds: float) -> float:
    """The decayed value of a run of this length at its end; negative values are subtracted."""
    kept: float = 0.5 ** (abs(seconds) / HALF_LIFE_SECONDS)
    return math.copysign((1.0 - kept) * HALF_LIFE_SECONDS / math.log(2), seconds)


def used(transition: Transition) -> float:
    """The seconds of a run that a transition ends or abandons; negative for one that returns."""
    if not transition.changes:
        return 0.0
    now = transition.changes[-1].time
    before, after = _running_since(transition.before), _running_since(transition.task)
    if after is not None:
        # From its start on it is read from its lease again.
        back = transition.before.phase is Phase.REDISTRIBUTING
        return -_seconds(now - after) if back else 0.0
    if before is None and transition.starts:
        before = transition.task.start_time
    return 0.0 if before is None else _seconds(now - before)


def _running_since(task: TaskState) -> datetime | None:
    """When the run started to use a place; None if it uses none, or its holder was abandoned."""
    if task.lease is None or task.phase is Phase.REDISTRIBUTING:
        return None
    return task.lease.start_time


def _seconds(duration: timedelta) -> float:
    return max(0.0, duration.total_seconds())


class UsageLedger:
    """What ended runs of tenants have used and is not written yet."""

    def __init__(self) -> None:
        self._pending: dict[str, float] = {}
        self._due = 0.0
        # A reader sees usage that is being written in exactly one of the two places.
        self._writing = asyncio.Lock()

    def add(self, ended: Iterable[tuple[str, float, int]]) -> None:
        """Add ended runs: tenant, seconds of each, and their number; called after the commit."""
        pending = self._pending
        for tenant_id, seconds, count in ended:
            if seconds:
                pending[tenant_id] = pending.get(tenant_id, 0.0) + count * worth(seconds)

    async def flush(self, pool: Pool) -> int:
        """Write the pending usage; returns the number of tenants."""
        if not self._pending or time.monotonic() < self._due:
            return 0
        async with self._writing:
            tenants = sorted(self._pending)
            taken = [self._pending[tenant_id] for tenant_id in tenants]
            async with pool.single() as tx:
                params = {"tenant_ids": arrays.texts(tenants), "seconds": arrays.floats(taken)}
                await tx.execute(statement("add_usage"), params)
            # What ended meanwhile stays.
            for tenant_id, seconds in zip(tenants, taken, strict=True):
                self._pending[tenant_id] -= seconds
                if abs(self._pending[tenant_id]) < 1e-9:
                    del self._pending[tenant_id]
        self._due = time.monotonic() + len(tenants) / ROWS_PER_SECOND
        return len(tenants)

    async def read(self, tx: Tx, after: datetime) -> dict[str, Use]:
        """The tenants that hold something or whose runs ended after this time."""
        async with self._writing:
            found = await read_uses(tx, after, self._pending)
            for tenant_id, seconds in self._pending.items():
                use = found.get(tenant_id, NO_USE)
                found[tenant_id] = use._replace(usage=max(0.0, use.usage + seconds))
        return found


async def read_uses(tx: Tx, after: datetime, tenant_ids: Collection[str]) -> dict[str, Use]:
    """The tenants that hold something, whose runs ended after this time, or that are named here."""
    params = {"after": after, "tenant_ids": arrays.texts(sorted(tenant_ids))}
    rows = await tx.fetch(statement("read_uses"), params)
    return {
        tenant_id: Use(max(0.0, usage), leased, update_time or ALWAYS)
        for tenant_id, usage, leased, update_time in rows
    }


async def read_use(tx: Tx, tenant_id: str) -> Use:
    """What one tenant uses, as far as it is written."""
    return (await read_uses(tx, datetime.max.replace(tzinfo=UTC), [tenant_id])).get(tenant_id, NO_USE)


async def forget(tx: Tx) -> int:
    """Delete tenants without usage for hours."""
    return await tx.execute(statement("forget_usage"), {})
