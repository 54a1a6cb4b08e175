"""The office of this replica: taken when vacant, renewed while it lasts, and proved in every transaction."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from datetime import timedelta

from taskyard.errors import TaskyardError
from taskyard_taskdb import failpoints
from taskyard_taskdb.storage.housekeeping import leader_lock
from taskyard_taskdb.storage.housekeeping.leader_lock import TTL, Deposed, Term
from taskyard_taskdb.storage.pool import Pool, Tx

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = TTL.total_seconds() / 2


class Office:
    """Who may sweep. `grace` is a lease and a heartbeat: nobody is reaped in the first time of a term."""

    def __init__(self, pool: Pool, grace: timedelta, holder: str = "") -> None:
        self._pool = pool
        self._grace = grace.total_seconds()
        self._told = False
        self.holder = holder or uuid.uuid4().hex
        self.term: Term | None = None
        self._since = 0.0
        self._held_until = 0.0
        self.changed = asyncio.Event()

    @property
    def held(self) -> bool:
        """Whether the office is held, as far as this process can tell without asking."""
        return self.term is not None and time.monotonic() < self._held_until

    @property
    def may_reap(self) -> bool:
        """Whether the office was held, on one and the same database, for a lease and a heartbeat.

        Whoever could renew a lease in that time has done so; a restart of the control plane reaps nobody.
        """
        return self.held and time.monotonic() - self._since >= self._grace

    @property
    def grace_left(self) -> float:
        """Seconds until somebody may be reaped."""
        return max(0.0, self._since + self._grace - time.monotonic())

    async def run(self) -> None:
        """Seek and keep the office until cancelled, then give it up."""
        try:
            while True:
                await self.seek()
                await asyncio.sleep(RENEWAL_SECONDS)
        finally:
            await asyncio.shield(self._leave())

    async def seek(self) -> bool:
        """Take or renew the office; whether it is held."""
        began = time.monotonic()
        try:
            term = await self._pool.run(
                lambda tx: leader_lock.hold(tx, self.holder), reserve=True, single=True
            )
        except TaskyardError as error:
            logger.warning("the office of housekeeping could not be renewed: %s", error)
            return self.held
        former, self.term = self.term, term
        if term is None:
            return False
        if not self._same(former, term):
            self._since, self._told = began, False
        # The term counts from before the request: the database's clock cannot be behind that.
        self._held_until = began + TTL.total_seconds()
        if former != term:
            logger.info("holding the office of housekeeping in term %d", term.epoch)
            self.changed.set()
        if not self._told:
            await self._tell(term)
        return True

    async def _tell(self, term: Term) -> None:
        """Note in the database from when on this term may reap: whoever else would, asks there."""
        left = timedelta(seconds=self.grace_left)
        try:
            await self._pool.run(lambda tx: leader_lock.note_grace(tx, term, left), reserve=True)
            self._told = True
        except (TaskyardError, Deposed) as error:
            logger.info("the grace of term %d was not noted: %s", term.epoch, error)

    def _same(self, former: Term | None, term: Term) -> bool:
        return former == term and time.monotonic() < self._held_until

    async def stand(self, tx: Tx) -> None:
        """Keep the office for the rest of a transaction that writes. Raises Deposed."""
        if self.term is None:
            raise Deposed("no term")
        await leader_lock.stand(tx, self.term)
        await failpoints.LEADER_BEFORE_WRITE.reach()

    async def _leave(self) -> None:
        term, self.term = self.term, None
        if term is None:
            return
        try:
            async with asyncio.timeout(2):
                await self._pool.run(lambda tx: leader_lock.leave(tx, term), reserve=True)
        except (TaskyardError, TimeoutError):
            logger.info("the office was not given up; it runs out by itself")
