"""Releases dependents that outcomes left: beyond their page, of tasks that ended with them, or locked."""

from __future__ import annotations

import math

from taskyard_taskdb.storage.dependency import backlog
from taskyard_taskdb.storage.dependency.backlog import Progress
from taskyard_taskdb.storage.dependency.release import SWEEP_PAGE
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.apply_events import OnCommit
from taskyard_taskdb.sweep.leader_election import Leadership

DEPENDENCY_SECONDS = 1.0
# Transactions of one run, so that a long cascade does not delay timers.
MOST_PAGES = 5


class DependencySweep:
    """Works off the backlog of dependencies, page by page."""

    name = "dependencies"
    poll = DEPENDENCY_SECONDS

    def __init__(self, pool: Pool, on_commit: OnCommit, page: int = SWEEP_PAGE) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._page = page

    async def run(self, leadership: Leadership) -> float:
        async def work(tx: Tx) -> Progress:
            await leadership.check(tx)
            return await backlog.advance(tx, self._page)

        for _ in range(MOST_PAGES):
            async with self._pool.reading() as tx:
                if not await backlog.exists(tx):
                    return math.inf
            progress = await self._pool.run(work)
            if not progress.count:
                return self.poll / 10
            self._on_commit(progress.notice)
        return 0.0
