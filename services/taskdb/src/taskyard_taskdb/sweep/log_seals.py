"""Seals the change log: writes a hash chain over committed changes to the database and the process log."""

from __future__ import annotations

import math
import time

from taskyard_kit.logs import get_log
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.audit.seals import Seal
from taskyard_taskdb.storage.change_log.read import Horizon
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

SEAL_SECONDS = 10.0
# The pause after a full seal, as a multiple of the time it took, so that sealing a large backlog does not
# slow claims down.
PAUSE_FACTOR = 2.0


class SealSweep:
    """Makes one seal per run; after a full seal the next run follows a short pause."""

    name = "seals"
    poll = SEAL_SECONDS

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._horizon = Horizon()
        self._made: Seal | None = None

    async def run(self, leadership: Leadership) -> float:
        began = time.monotonic()
        async with self._pool.reading() as tx:
            horizon = await self._horizon.advance(tx)
            former = await seals.last_seal(tx)
            self._compare(former)
            seal = await seals.next_seal(tx, former, horizon)
        if seal is None:
            return math.inf

        async def work(tx: Tx) -> bool:
            await leadership.check(tx)
            return await seals.store(tx, seal)

        if not await self._pool.run(work):
            # The former leader has already sealed the range.
            self._made = None
            return math.inf
        self._made = seal
        # A copy outside the database shows if the end of the log is deleted together with its seals.
        log.info("audit.sealed", **_fields(seal))
        full = seal.change_count >= seals.MOST_CHANGES
        return PAUSE_FACTOR * (time.monotonic() - began) if full else math.inf

    def _compare(self, found: Seal | None) -> None:
        """Log an error if the seal that this process made last has disappeared."""
        made = self._made
        if made is not None and (found is None or found.last_id < made.last_id):
            log.error("audit.truncated", **_fields(made))
            self._made = None


def _fields(seal: Seal) -> dict[str, object]:
    return {
        "after_id": seal.after_id,
        "last_id": seal.last_id,
        "change_count": seal.change_count,
        "previous_hash": seal.previous_hash.hex(),
        "hash": seal.hash.hex(),
    }
