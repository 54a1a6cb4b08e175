"""Admits tasks that wait for limits that open by time, were raised or deleted, or that outcomes left."""

from __future__ import annotations

import math

from taskyard_taskdb.storage.limit import backlog
from taskyard_taskdb.storage.limit.admission import SWEEP_PAGE, Page
from taskyard_taskdb.storage.limit.backlog import Progress
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.apply_events import OnCommit
from taskyard_taskdb.sweep.leader_election import Leadership

LIMIT_SECONDS = 1.0
# Transactions of one run.
MOST_PAGES = 20


class LimitSweep:
    """Looks at the limits that are due, page by page."""

    name = "limits"
    poll = LIMIT_SECONDS

    def __init__(self, pool: Pool, on_commit: OnCommit, page: Page = SWEEP_PAGE) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._page = page

    async def run(self, leadership: Leadership) -> float:
        async def work(tx: Tx) -> Progress:
            await leadership.check(tx)
            return await backlog.advance(tx, self._page)

        for _ in range(MOST_PAGES):
            async with self._pool.reading() as tx:
                due = await backlog.next_due(tx)
            if due.seconds is None:
                return math.inf
            if due.seconds > 0:
                return due.seconds
            progress = await self._pool.run(work)
            self._on_commit(progress.notice)
        return 0.0
