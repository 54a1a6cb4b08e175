"""Fires due timers: delayed and retried tasks become ready, queue and total timeouts end tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain.event import (
    Due,
    Event,
    QueueTimeoutPassed,
    ReportTimeoutPassed,
    TotalTimeoutPassed,
)
from taskyard_taskdb.domain.words import TimerKind
from taskyard_taskdb.storage.batch import isolate
from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.transition import timers
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.timers import Timer
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.sweep.apply_events import OnCommit, apply_events
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

PAGE = 500

_EVENTS: dict[TimerKind, type[Event]] = {
    TimerKind.DUE: Due,
    TimerKind.QUEUE_TIMEOUT: QueueTimeoutPassed,
    TimerKind.TOTAL_TIMEOUT: TotalTimeoutPassed,
    TimerKind.REPORT_TIMEOUT: ReportTimeoutPassed,
}


class TimerSweep:
    """Fires timers, oldest first."""

    name = "timers"
    # A timer set by another replica is noticed after this time at most.
    poll = 1.0

    def __init__(self, pool: Pool, on_commit: OnCommit, page: int = PAGE) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._page = page
        # Timers whose task cannot be written; they are skipped for the rest of this run.
        self._failed: set[Timer] = set()

    async def run(self, leadership: Leadership) -> float:
        self._failed.clear()
        while True:
            async with self._pool.reading() as tx:
                ahead = await overdue.next_timer(tx)
                if ahead is None or ahead > 0:
                    return math.inf if ahead is None else ahead
                found = await timers.due_page(tx, self._page + len(self._failed))
            fresh = [timer for timer in found if timer not in self._failed]
            if not fresh:
                return self.poll
            await failpoints.SWEEP_BETWEEN_SELECT_AND_UPDATE.reach()
            await self._fire(leadership, fresh)

    async def _fire(self, leadership: Leadership, found: Sequence[Timer]) -> None:
        async def apply(part: Sequence[Timer]) -> None:
            self._on_commit(await self._pool.run(lambda tx: work(tx, part)))

        async def work(tx: Tx, part: Sequence[Timer]) -> CommitNotice:
            await leadership.check(tx)
            return await fire(tx, part)

        await isolate(found, apply, self._log_failure)

    def _log_failure(self, timer: Timer, error: Exception) -> None:
        log.error("timer_failed", timer=repr(timer), error=repr(error))
        self._failed.add(timer)


async def fire(tx: Tx, found: Sequence[Timer]) -> CommitNotice:
    """Fire the timers that have not changed since they were read; each is deleted or replaced."""
    keys = sorted({timer.key for timer in found})
    loaded = await load_for_update(tx, keys)
    wanted = set(found)
    unchanged = [timer for timer in await timers.of_tasks(tx, keys) if timer in wanted]
    # Deleted before the write, which may set timers of the same kind again.
    await overdue.delete_timers(tx, unchanged)
    events = [(timer.key, _EVENTS[timer.kind]()) for timer in unchanged]
    notice = await write(tx, apply_events(loaded, events))
    await failpoints.TIMER_BEFORE_COMMIT.reach()
    return notice
