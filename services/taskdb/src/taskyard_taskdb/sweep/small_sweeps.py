"""Small sweeps of the leader: inbox, revocations, drains, tenant usage, slots, quarantines, statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from taskyard_taskdb.storage.change_log.read import Horizon
from taskyard_taskdb.storage.housekeeping import overdue
from taskyard_taskdb.storage.housekeeping.overdue import BEFORE_ALL
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.quarantine import quarantined_specs
from taskyard_taskdb.storage.quarantine.quarantined_specs import Quarantine
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.storage.slot.repair import repair
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.storage.stats import stats as task_stats
from taskyard_taskdb.storage.stats.stats import OnFolded
from taskyard_taskdb.storage.tenant import usage
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.sweep.apply_events import OnCommit
from taskyard_taskdb.sweep.leader_election import Leadership

INBOX_SECONDS = 5.0
REVOCATION_SECONDS = 60.0
DRAIN_SECONDS = 5.0
DRAIN_PAGE = 500


class InboxSweep:
    """Applies reports of external tasks that a process accepted but did not apply before it ended."""

    name = "inbox"
    poll = INBOX_SECONDS

    def __init__(self, apply_all: Callable[[], Awaitable[int]]) -> None:
        self._apply_all = apply_all

    async def run(self, leadership: Leadership) -> float:
        return 0.0 if await self._apply_all() else math.inf


class RevocationSweep:
    """Deletes revocations that are too old to be sent to holders."""

    name = "revocations"
    poll = REVOCATION_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, leadership: Leadership) -> float:
        async def work(tx: Tx) -> int:
            await leadership.check(tx)
            return await overdue.delete_old_revocations(tx)

        await self._pool.run(work)
        return math.inf


class DrainSweep:
    """Marks a draining runner as drained once it holds no lease."""

    name = "drains"
    poll = DRAIN_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, leadership: Leadership) -> float:
        async def work(tx: Tx) -> int:
            await leadership.check(tx)
            return await runner_admin.note_drained(tx, DRAIN_PAGE)

        return 0.0 if await self._pool.run(work) == DRAIN_PAGE else math.inf


USAGE_SECONDS = 600.0


class UsageSweep:
    """Deletes usage of tenants that has decayed to nothing."""

    name = "usage"
    poll = USAGE_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, leadership: Leadership) -> float:
        async def work(tx: Tx) -> int:
            await leadership.check(tx)
            return await usage.forget(tx)

        await self._pool.run(work)
        return math.inf


SLOT_PAGE = 200
SLOT_SECONDS = 30.0


class SlotSweep:
    """Finds slots whose head does not hold them, locks and checks them again, and promotes the next task."""

    name = "slots"
    poll = SLOT_SECONDS

    def __init__(self, pool: Pool, on_commit: OnCommit) -> None:
        self._pool = pool
        self._on_commit = on_commit

    async def run(self, leadership: Leadership) -> float:
        async with self._pool.reading() as tx:
            orphans = await overdue.awaited_slots_without_row(tx, SLOT_PAGE)
        await self._repair(leadership, orphans)
        after = BEFORE_ALL
        while True:
            async with self._pool.reading() as tx:
                found = await overdue.slots_without_holder(tx, after, SLOT_PAGE)
            await self._repair(leadership, found)
            if len(found) < SLOT_PAGE:
                return math.inf
            after = found[-1]

    async def _repair(self, leadership: Leadership, found: Sequence[SlotKey]) -> None:
        async def work(tx: Tx) -> CommitNotice:
            await leadership.check(tx)
            return await repair(tx, found)

        if found:
            self._on_commit(await self._pool.run(work))


QUARANTINE_PAGE = 500
# An upper bound per run; the tasks of further quarantines are held once some of these are released.
MOST_QUARANTINES = 1000
QUARANTINE_SECONDS = 5.0


class QuarantineSweep:
    """Pauses queued tasks of quarantined specs; a claim pauses those that it meets itself."""

    name = "quarantine"
    poll = QUARANTINE_SECONDS

    def __init__(self, pool: Pool, on_commit: OnCommit) -> None:
        self._pool = pool
        self._on_commit = on_commit

    async def run(self, leadership: Leadership) -> float:
        async with self._pool.reading() as tx:
            held = await quarantined_specs.page(tx, None, ("", ""), MOST_QUARANTINES)
        for quarantine in held:
            after: str | None = ""
            while after is not None:
                async with self._pool.reading() as tx:
                    found, after = await quarantine_holds.find_waiting(tx, quarantine, after, QUARANTINE_PAGE)
                if found:
                    await self._hold(leadership, quarantine, found)
        return math.inf

    async def _hold(self, leadership: Leadership, quarantine: Quarantine, found: Sequence[Key]) -> None:
        async def work(tx: Tx) -> CommitNotice:
            await leadership.check(tx)
            return await quarantine_holds.hold(tx, quarantine.tenant_id, quarantine.digest, found)

        self._on_commit(await self._pool.run(work))


STATS_SECONDS = 5.0
# The pause after a full page, as a multiple of the time it took, so that folding does not delay claims and
# other sweeps.
STATS_PAUSE_FACTOR = 2.0
STATS_RETENTION = timedelta(days=35)
STATS_DELETE_SECONDS = 3600.0


class StatsSweep:
    """Folds new changes into the statistics; a row lock lets one replica at a time do so."""

    name = "stats"
    poll = STATS_SECONDS

    def __init__(self, pool: Pool, on_folded: OnFolded) -> None:
        self._pool = pool
        self._on_folded = on_folded
        self._horizon = Horizon()
        self._delete_due = 0.0

    async def run(self, leadership: Leadership) -> float:
        began = time.monotonic()
        async with self._pool.reading() as tx:
            horizon = await self._horizon.advance(tx)
        done = await task_stats.fold(self._pool, horizon, 1, self._on_folded)
        took = time.monotonic() - began
        if time.monotonic() >= self._delete_due:
            await self._pool.run(_delete_old_stats)
            self._delete_due = time.monotonic() + STATS_DELETE_SECONDS
        return math.inf if done else STATS_PAUSE_FACTOR * took


async def _delete_old_stats(tx: Tx) -> int:
    return await task_stats.delete_before(tx, await database_time(tx) - STATS_RETENTION)
