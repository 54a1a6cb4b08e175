"""Adds up the counts of groups, completes groups, and cancels the tasks of cancelled ones."""

from __future__ import annotations

import math

from taskyard_taskdb import failpoints
from taskyard_taskdb.storage.group import counts
from taskyard_taskdb.storage.group.counts import FOLD_PAGE
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.sweep.apply_events import OnCommit, apply_events
from taskyard_taskdb.sweep.leader_election import Leadership

GROUP_SECONDS = 0.5
# Transactions of one run, so that a long backlog does not delay timers.
MOST_PAGES = 5


class GroupSweep:
    """Folds deltas page by page; a group becomes complete in the same transaction, under the epoch."""

    name = "groups"
    poll = GROUP_SECONDS

    def __init__(self, pool: Pool, on_commit: OnCommit, page: int = FOLD_PAGE) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._page = page

    async def run(self, leadership: Leadership) -> float:
        async def fold(tx: Tx) -> tuple[int, CommitNotice]:
            await leadership.check(tx)
            folded = await counts.fold(tx, self._page)
            if folded.completed:
                await counts.announce(tx, folded.completed)
                await failpoints.GROUP_BEFORE_COMMIT.reach()
            awaited = any(group.awaited for group in folded.completed)
            notice = CommitNotice(changed=bool(folded.completed), dependencies=awaited)
            return folded.count + len(folded.completed), notice

        async def cancel(tx: Tx) -> tuple[bool, CommitNotice]:
            await leadership.check(tx)
            page = await counts.next_to_cancel(tx, counts.CANCEL_PAGE)
            if page is None:
                return False, CommitNotice()
            loaded = await load_for_update(tx, [key for key, _ in page.events])
            notice = await write(tx, apply_events(loaded, page.events))
            await counts.continue_cancel(tx, page)
            return True, notice

        for _ in range(MOST_PAGES):
            async with self._pool.reading() as tx:
                if not await counts.exists(tx):
                    return math.inf
            cancelled, notice = await self._pool.run(cancel)
            self._on_commit(notice)
            done, notice = await self._pool.run(fold)
            if notice.changed:
                await failpoints.GROUP_AFTER_COMMIT.reach()
            self._on_commit(notice)
            if not done and not cancelled:
                # What is left is locked by a task that is about to wait for its group.
                return self.poll / 5
        return 0.0
