"""Expires leases and sessions, redistributes tasks of disconnected runners, enforces deadlines.

Leases are found without locks; each page is then locked, checked again and written under the leadership.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import (
    ActionDeadlinePassed,
    DeadlinePassed,
    Event,
    LeaseExpired,
    LossCause,
    RunnerLost,
)
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.storage.batch import isolate
from taskyard_taskdb.storage.change_log.append import insert_changes
from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.housekeeping.overdue import BEFORE_ALL, OverdueLease
from taskyard_taskdb.storage.lease.sessions import runner_change
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.transition.load import database_time, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.sweep.apply_events import OnCommit, apply_events
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

PAGE = 200
# How long a runner may be disconnected before its tasks with on_runner_lost REDISTRIBUTE are requeued.
DISCONNECT_GRACE = timedelta(seconds=10)
MIN_WAIT_SECONDS = 0.1

Find = Callable[[Tx, Key, int], Awaitable[list[OverdueLease]]]


class LeasePages:
    """Applies an event to every lease that a query finds, a page per transaction."""

    def __init__(self, pool: Pool, on_commit: OnCommit, page: int = PAGE) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._page = page

    async def sweep(
        self, leadership: Leadership, find: Find, event_of: Callable[[OverdueLease], Event]
    ) -> int:
        """Return how many leases were found; a lease that cannot be swept is skipped and blocks no other."""
        after, count = BEFORE_ALL, 0
        while True:
            found = await self._sweep_page(leadership, find, event_of, after)
            count += len(found)
            if len(found) < self._page:
                return count
            after = found[-1].key

    async def _sweep_page(
        self, leadership: Leadership, find: Find, event_of: Callable[[OverdueLease], Event], after: Key
    ) -> list[OverdueLease]:
        async with self._pool.reading() as tx:
            found = await find(tx, after, self._page)
        if found:
            await failpoints.SWEEP_BETWEEN_SELECT_AND_UPDATE.reach()
            await self._apply(leadership, found, event_of)
        return found

    async def _apply(
        self, leadership: Leadership, found: Sequence[OverdueLease], event_of: Callable[[OverdueLease], Event]
    ) -> None:
        async def apply(part: Sequence[OverdueLease]) -> None:
            self._on_commit(await self._pool.run(lambda tx: work(tx, part)))

        async def work(tx: Tx, part: Sequence[OverdueLease]) -> CommitNotice:
            await leadership.check(tx)
            loaded = await load_for_update(tx, [lease.key for lease in part])
            return await write(tx, apply_events(loaded, [(lease.key, event_of(lease)) for lease in part]))

        await isolate(found, apply, _log_failure)


def _log_failure(found: OverdueLease, error: Exception) -> None:
    log.error("lease_expiry_failed", tenant=found.key[0], task=found.key[1], error=repr(error))


class ExpirySweep:
    """Expires leases and sessions, but none during the grace period of a new leader.

    Holders could not renew while there was no leader.
    """

    name = "expiry"
    poll = 5.0

    def __init__(self, pool: Pool, pages: LeasePages) -> None:
        self._pool = pool
        self._pages = pages

    async def run(self, leadership: Leadership) -> float:
        async with self._pool.reading() as tx:
            due, ahead = await overdue.lease_events(tx, DISCONNECT_GRACE)
        if due:
            await self._pages.sweep(
                leadership, _finder("overdue_actions"), lambda found: ActionDeadlinePassed()
            )
            if leadership.may_reap:
                await self._reap(leadership)
        wait = math.inf if ahead is None else max(ahead, MIN_WAIT_SECONDS)
        return wait if leadership.may_reap else min(wait, max(leadership.grace_left, MIN_WAIT_SECONDS))

    async def _reap(self, leadership: Leadership) -> None:
        pages = self._pages
        await pages.sweep(leadership, _finder("expired_leases"), _expired)
        await pages.sweep(leadership, _finder("disconnected_leases", DISCONNECT_GRACE), _disconnected)
        await pages.sweep(leadership, _finder("overdue_runs"), lambda found: DeadlinePassed())
        while len(await self._pool.run(lambda tx: _close_sessions(tx, leadership))) == PAGE:
            pass


def _finder(name: str, patience: timedelta | None = None) -> Find:
    """Return one of the queries for overdue leases."""

    async def find(tx: Tx, after: Key, page: int) -> list[OverdueLease]:
        return await overdue.leases(tx, name, after, page, patience)

    return find


def _expired(found: OverdueLease) -> LeaseExpired:
    return LeaseExpired(generation=found.generation)


def _disconnected(found: OverdueLease) -> RunnerLost:
    return RunnerLost(generation=found.generation, cause=LossCause.DISCONNECTED)


async def _close_sessions(tx: Tx, leadership: Leadership) -> list[str]:
    """Log overdue heartbeats, then close expired sessions: a dead runner has missed a heartbeat before."""
    await leadership.check(tx)
    late = await overdue.miss_heartbeats(tx, PAGE)
    dead = await overdue.expire_sessions(tx, PAGE)
    if late or dead:
        now = await database_time(tx)
        missed = [runner_change(runner, ChangeEvent.RUNNER_HEARTBEAT_MISSED, now, SYSTEM) for runner in late]
        marked = [runner_change(runner, ChangeEvent.RUNNER_MARKED_DEAD, now, SYSTEM) for runner in dead]
        await insert_changes(tx, [*missed, *marked])
    return dead
