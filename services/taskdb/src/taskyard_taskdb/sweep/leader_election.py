"""Leader election: a replica acquires the leadership, renews it, and checks it in every transaction."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta

from taskyard.errors import TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.storage.housekeeping import leader_lock
from taskyard_taskdb.storage.housekeeping.leader_lock import TTL, LeadershipLost, Term
from taskyard_taskdb.storage.pool import Pool, Tx

log = get_log(__name__)


class Leadership:
    """The leadership of housekeeping, as this replica sees it.

    A new leader expires no lease for `grace`, the length of a lease and a heartbeat.
    """

    def __init__(self, pool: Pool, grace: timedelta, holder: str = "", ttl: timedelta = TTL) -> None:
        self._pool = pool
        self._ttl = ttl
        self._grace = grace.total_seconds()
        self._grace_stored = False
        self.holder = holder or uuid.uuid4().hex
        self.term: Term | None = None
        self._since = 0.0
        self._held_until = 0.0
        self.changed = asyncio.Event()

    @property
    def held(self) -> bool:
        """Whether this replica leads, as far as its own clock shows; the database is not asked."""
        return self.term is not None and time.monotonic() < self._held_until

    @property
    def may_reap(self) -> bool:
        """Whether this replica has led for the grace period, with the database up all the time.

        Every holder that is alive has renewed its lease in that time, so a restart of the control plane
        expires no lease of a live runner.
        """
        return self.held and time.monotonic() - self._since >= self._grace

    @property
    def grace_left(self) -> float:
        """Seconds until leases may be expired."""
        return max(0.0, self._since + self._grace - time.monotonic())

    async def run(self) -> None:
        """Acquire and renew the leadership until cancelled, then release it."""
        try:
            while True:
                await self.acquire()
                await asyncio.sleep(self._ttl.total_seconds() / 2)
        finally:
            await asyncio.shield(self._release())

    async def acquire(self) -> bool:
        """Acquire or renew the leadership; returns whether this replica leads."""
        began = time.monotonic()
        try:
            term = await self._pool.run(
                lambda tx: leader_lock.acquire(tx, self.holder, self._ttl), reserve=True, single=True
            )
        except TaskyardError as error:
            log.failure("leadership_not_renewed", error)
            return self.held
        former, self.term = self.term, term
        if term is None:
            return False
        if not self._same(former, term):
            self._since, self._grace_stored = began, False
        # Counted from before the request, so that it ends here no later than in the database.
        self._held_until = began + self._ttl.total_seconds()
        if former != term:
            log.info("leadership_acquired", term=term.epoch)
            self.changed.set()
        if not self._grace_stored:
            await self._store_grace(term)
        return True

    async def _store_grace(self, term: Term) -> None:
        """Store in the database from when on this term may expire leases; RunDoctor reads it there."""
        left = timedelta(seconds=self.grace_left)
        try:
            await self._pool.run(lambda tx: leader_lock.store_grace(tx, term, left), reserve=True)
            self._grace_stored = True
        except (TaskyardError, LeadershipLost) as error:
            log.info("grace_not_stored", term=term.epoch, error=str(error))

    def _same(self, former: Term | None, term: Term) -> bool:
        return former == term and time.monotonic() < self._held_until

    async def check(self, tx: Tx) -> None:
        """Lock the leadership for the rest of a transaction that writes. Raises LeadershipLost."""
        if self.term is None:
            raise LeadershipLost("no term")
        await leader_lock.check(tx, self.term)
        await failpoints.LEADER_BEFORE_WRITE.reach()

    async def _release(self) -> None:
        term, self.term = self.term, None
        if term is None:
            return
        try:
            async with asyncio.timeout(2):
                await self._pool.run(lambda tx: leader_lock.release(tx, term), reserve=True)
        except (TaskyardError, TimeoutError):
            log.info("leadership_not_released", effect="it expires by itself")
