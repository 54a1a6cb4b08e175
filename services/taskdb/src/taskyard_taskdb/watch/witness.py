"""What a replica remembers of the log, to prove after a failover that the new server's log continues it.

A seal that this replica has read, found again with the same hash, proves every change up to it: it was stored
after they were committed, and its hash covers them. Above the seal each change that was read is compared with
the row of the new server. A transaction commits out of the order of ids, so a later row alone proves nothing
about earlier ones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.change_log import epoch
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Tx

# Read at a time, where the hub has skipped changes.
PAGE = 20_000
# Seals follow within seconds. If there are none, memory stays bounded and later changes cannot be proved.
MOST_CHANGES = 500_000

NOTHING = -1


class LogWitness:
    """Remembers the newest seal and a fingerprint of each change above it, up to `covered`."""

    def __init__(self) -> None:
        # Id and hash of the seal; every log begins with the empty range up to 0.
        self._seal: tuple[int, bytes] = (0, seals.BEGINNING)
        # The seal before it, in case a failover loses the newest one; changes are remembered from here on.
        self._former_seal = self._seal
        self._ids = array("q")
        self._prints = array("q")
        self.covered = 0

    def add(self, after: int, changes: Sequence[LoggedChange]) -> None:
        """Remember changes that were read; `after` is the position before them."""
        if after > self.covered or len(self._ids) > MOST_CHANGES:
            return
        if changes[0].id <= self.covered:
            # A seal is ahead of this reader.
            changes = [change for change in changes if change.id > self.covered]
        self._ids.extend([change.id for change in changes])
        self._prints.extend(
            [hash((c.id, c.time, c.tenant_id, c.resource_id, c.version, c.event)) for c in changes]
        )
        self.covered = max(self.covered, changes[-1].id if changes else 0)

    async def advance(self, tx: Tx, position: int, *, fill: bool) -> None:
        """Adopt the newest seal; with `fill` also read what was not added up to `position`."""
        seal = await seals.last_seal(tx)
        if seal is not None and seal.last_id > self._seal[0]:
            self._adopt(seal.last_id, seal.hash)
        if fill and self.covered < position and len(self._ids) <= MOST_CHANGES:
            rows = await epoch.identities(tx, self.covered, position, PAGE)
            self._ids.extend([row.id for row in rows])
            self._prints.extend([hash(tuple(row)) for row in rows])
            self.covered = rows[-1].id if len(rows) == PAGE else position

    def _adopt(self, last_id: int, digest: bytes) -> None:
        newest = (last_id, digest)
        # Where changes between both seals were skipped, a comparison cannot begin at the former one.
        self._former_seal = self._seal if self.covered >= last_id else newest
        self._seal = newest
        sealed = bisect_right(self._ids, self._former_seal[0])
        del self._ids[:sealed], self._prints[:sealed]
        self.covered = max(self.covered, last_id)

    async def proved_until(self, tx: Tx) -> int:
        """Return the last id up to which this log has the remembered changes; NOTHING if it lacks the seal.

        It is the id of a change that was found: ids above it may be drawn again by the new server.
        """
        proved = NOTHING
        for sealed, digest in (self._former_seal, self._seal):
            if not sealed or not await seals.check_expected_seal(tx, sealed, digest):
                proved = sealed
        if proved == NOTHING:
            return NOTHING
        while proved < self.covered:
            rows = await epoch.identities(tx, proved, self.covered, PAGE)
            start = bisect_right(self._ids, proved)
            for row, id, fingerprint in zip(rows, self._ids[start:], self._prints[start:], strict=False):
                if row.id != id or hash(tuple(row)) != fingerprint:
                    return proved
                proved = id
            if len(rows) < PAGE:
                break
        return proved
