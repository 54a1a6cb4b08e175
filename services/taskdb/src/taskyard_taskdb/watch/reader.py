"""Reads the change log in order: returns a change once every lower id is committed or rolled back."""

from datetime import UTC, datetime

from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.change_log.read import Barrier, LoggedChange
from taskyard_taskdb.storage.pool import Tx

PAGE = 2000
BEGINNING = datetime(1970, 1, 2, tzinfo=UTC)


class LogReader:
    """Reads the log in id order and never passes an id that may still be committed.

    Writers draw ids under a shared lock that they hold until their transaction ends. Once the holders seen
    after reading the sequence have ended, no further id up to its value can be committed. An id that follows
    the last one without a gap can be returned at once.
    """

    def __init__(self, tx: Tx, position: int, time: datetime = BEGINNING) -> None:
        self.position = position
        self.time = time
        self.blocked = False
        # Whether the last step returned everything that was committed when it began.
        self.caught_up = False
        self._tx = tx
        self._horizon = position
        self._barrier: Barrier | None = None

    @classmethod
    async def at_end(cls, tx: Tx) -> "LogReader":
        """Return a reader that starts behind everything that is committed now."""
        decided = await change_reader.settled(tx)
        # A committed id, not the value of the sequence, which may be drawn again after a crash.
        reader = cls(tx, *(await change_reader.newest(tx, decided) or (0, BEGINNING)))
        reader._horizon = decided
        return reader

    async def step(self) -> list[LoggedChange]:
        """Return the next changes; none if there are none, or if an open transaction blocks (`blocked`)."""
        await self._advance_horizon()
        rows = await change_reader.read(self._tx, self.position, self.time, PAGE)
        decided = self._decided(rows)
        self.blocked = len(decided) < len(rows)
        self.caught_up = len(decided) == len(rows) < PAGE
        if decided:
            self.position, self.time = decided[-1].id, decided[-1].time
        if self.blocked and self._barrier is None:
            self._barrier = await change_reader.barrier(self._tx)
        return decided

    async def newest_decided(self) -> tuple[int, datetime] | None:
        """Return the last decided change, for `jump`; None if no later one is certain."""
        if self._barrier is None:
            self._barrier = await change_reader.barrier(self._tx)
        await self._advance_horizon()
        if self._barrier is not None or self._horizon <= self.position:
            return None
        return await change_reader.newest(self._tx, self._horizon)

    def jump(self, place: tuple[int, datetime] | None) -> None:
        """Continue after `place`, skipping the changes before it."""
        if place is not None and place[0] > self.position:
            self.position, self.time = place

    async def _advance_horizon(self) -> None:
        if self._barrier is None:
            return
        self._barrier = await change_reader.left(self._tx, self._barrier)
        if not self._barrier.writers:
            self._horizon, self._barrier = self._barrier.id, None

    def _decided(self, rows: list[LoggedChange]) -> list[LoggedChange]:
        expected = self.position + change_reader.ID_STEP
        for index, row in enumerate(rows):
            if row.id != expected and row.id > self._horizon:
                return rows[:index]
            expected = row.id + change_reader.ID_STEP
        return rows
