"""The leadership of this replica: taken when vacant, renewed while it lasts, and proved in every transaction."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from datetime import timedelta

from taskyard.errors import TaskyardError
from taskyard_taskdb import failpoints
from taskyard_taskdb.storage.housekeeping import leader_lock
from taskyard_taskdb.storage.housekeeping.leader_lock import TTL, LeadershipLost, Term
from taskyard_taskdb.storage.pool import Pool, Tx

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = TTL.total_seconds() / 2


class Leadership:
    """Who may sweep. `grace` is a lease and a heartbeat: nobody is reaped in the first time of a term."""

    def __init__(self, pool: Pool, grace: timedelta, holder: str = "") -> None:
        self._pool = pool
        self._grace = grace.total_seconds()
        self._grace_stored = False
        self.holder = holder or uuid.uuid4().hex
        self.term: Term | None = None
        self._since = 0.0
        self._held_until = 0.0
        self.changed = asyncio.Event()

    @property
    def held(self) -> bool:
        """Whether the leadership is held, as far as this process can tell without asking."""
        return self.term is not None and time.monotonic() < self._held_until

    @property
    def may_reap(self) -> bool:
        """Whether the leadership was held, on one and the same database, for a lease and a heartbeat.

        Whoever could renew a lease in that time has done so; a restart of the control plane reaps nobody.
        """
        return self.held and time.monotonic() - self._since >= self._grace

    @property
    def grace_left(self) -> float:
        """Seconds until somebody may be reaped."""
        return max(0.0, self._since + self._grace - time.monotonic())

    async def run(self) -> None:
        """Seek and keep the leadership until cancelled, then give it up."""
        try:
            while True:
                await self.acquire()
                await asyncio.sleep(RENEWAL_SECONDS)
        finally:
            await asyncio.shield(self._release())

    async def acquire(self) -> bool:
        """Take or renew the leadership; whether it is held."""
        began = time.monotonic()
        try:
            term = await self._pool.run(
                lambda tx: leader_lock.acquire(tx, self.holder), reserve=True, single=True
            )
        except TaskyardError as error:
            logger.warning("the leadership of housekeeping could not be renewed: %s", error)
            return self.held
        former, self.term = self.term, term
        if term is None:
            return False
        if not self._same(former, term):
            self._since, self._grace_stored = began, False
        # The term counts from before the request: the database's clock cannot be behind that.
        self._held_until = began + TTL.total_seconds()
        if former != term:
            logger.info("holding the leadership of housekeeping in term %d", term.epoch)
            self.changed.set()
        if not self._grace_stored:
            await self._store_grace(term)
        return True

    async def _store_grace(self, term: Term) -> None:
        """Note in the database from when on this term may reap: whoever else would, asks there."""
        left = timedelta(seconds=self.grace_left)
        try:
            await self._pool.run(lambda tx: leader_lock.store_grace(tx, term, left), reserve=True)
            self._grace_stored = True
        except (TaskyardError, LeadershipLost) as error:
            logger.info("the grace of term %d was not noted: %s", term.epoch, error)

    def _same(self, former: Term | None, term: Term) -> bool:
        return former == term and time.monotonic() < self._held_until

    async def check(self, tx: Tx) -> None:
        """Keep the leadership for the rest of a transaction that writes. Raises LeadershipLost."""
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
            logger.info("the leadership was not given up; it runs out by itself")
