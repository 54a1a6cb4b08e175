"""Small chores of the leader: stored reports left behind, old revocations, runners that are drained."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.sweep.leader import Office

INBOX_SECONDS = 5.0
TIDY_SECONDS = 60.0
DRAIN_SECONDS = 5.0
DRAIN_PAGE = 500


class InboxSweep:
    """Applies reports of external tasks that a process accepted and did not come to."""

    name = "inbox"
    poll = INBOX_SECONDS

    def __init__(self, apply_all: Callable[[], Awaitable[int]]) -> None:
        self._apply_all = apply_all

    async def run(self, office: Office) -> float:
        return 0.0 if await self._apply_all() else math.inf


class RevocationSweep:
    """Forgets revocations that holders are not told any more."""

    name = "revocations"
    poll = TIDY_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, office: Office) -> float:
        async def work(tx: Tx) -> int:
            await office.stand(tx)
            return await overdue.forget_revocations(tx)

        await self._pool.run(work)
        return math.inf


class DrainSweep:
    """Notes when a runner that is to be drained holds nothing any more."""

    name = "drains"
    poll = DRAIN_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, office: Office) -> float:
        async def work(tx: Tx) -> int:
            await office.stand(tx)
            return await runner_admin.note_drained(tx, DRAIN_PAGE)

        return 0.0 if await self._pool.run(work) == DRAIN_PAGE else math.inf
