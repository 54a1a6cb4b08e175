"""The changes of one stream: a bounded buffer filled by the hub, or read again from the log."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from taskyard.errors import LogEpochChanged
from taskyard_taskdb.storage.change_log.read import LoggedChange

BUFFER = 2000
PAGE = 500
# How many ids a stream that is behind scans at a time, however few of them concern it.
WINDOW = 20_000

TaskKey = tuple[str, str]


class Log(Protocol):
    """The part of the hub that a subscription uses: its position, and the log itself."""

    position: int
    time: datetime
    epoch: int

    async def replay(
        self, after: int, until: int, since: datetime, tenant_id: str | None
    ) -> list[LoggedChange]:
        """Return a page of the log: PAGE changes or more if there may be more of them."""
        ...


class Subscription:
    """The changes that a stream has not read yet. Batches are shared between streams and never modified."""

    __slots__ = (
        "_batches",
        "_count",
        "_log",
        "_overflowed",
        "_waiter",
        "epoch",
        "keys",
        "position",
        "shows_tasks",
        "tenant_id",
        "time",
    )

    def __init__(
        self, log: Log, tenant_id: str | None, keys: frozenset[TaskKey], *, shows_tasks: bool = False
    ) -> None:
        self.tenant_id = tenant_id
        self.keys = keys
        # Whether its stream sends the tasks themselves; the hub reads them before it wakes the stream.
        self.shows_tasks = shows_tasks
        self.position = log.position
        self.time = log.time
        self.epoch = log.epoch
        self._log = log
        # Allocated on demand: thousands of streams wait for a change of one task.
        self._batches: deque[Sequence[LoggedChange]] | None = None
        self._count = 0
        self._overflowed = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def behind(self) -> bool:
        """Whether `next` can return changes without waiting."""
        return self._overflowed or self._count > 0

    def offer(self, batch: Sequence[LoggedChange]) -> None:
        """Buffer changes in the order of their ids, or mark that the stream must read the log again."""
        if batch[0].id <= self.position:
            # The stream resumed from a token of a replica that is ahead of this one.
            batch = [change for change in batch if change.id > self.position]
        if not batch:
            return
        if self._count + len(batch) > BUFFER:
            self._overflowed = True
            self._clear()
        if not self._overflowed:
            if self._batches is None:
                self._batches = deque()
            self._batches.append(batch)
            self._count += len(batch)
        self.wake()

    def wake(self) -> None:
        """Wake the waiting stream."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, timeout: float) -> list[LoggedChange]:
        """Return the next changes, at most a page of them; none after the timeout or a wake-up.

        Raises LogEpochChanged for a stream of tasks if the log was replaced. Other streams read anew what
        they show; they only continue at the end of the new log.
        """
        if not self.behind:
            await self._wait(timeout)
        if self.epoch != self._log.epoch:
            if self.shows_tasks:
                raise LogEpochChanged(str(self.epoch), str(self._log.epoch))
            self.epoch, self.position, self.time = self._log.epoch, self._log.position, self._log.time
            self._overflowed = False
            self._clear()
        return await self._catch_up() if self._overflowed else self._take()

    def continue_log(self, proved: int) -> None:
        """Go on in the log of another timeline, if it has the same changes up to where this stream is."""
        if self.position <= proved:
            self.epoch = self._log.epoch

    def rewind(self, position: int, time: datetime) -> None:
        """Start after `position` instead of at the position of the hub."""
        self.position, self.time, self._overflowed = position, time, position < self._log.position

    async def _wait(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        # Not asyncio.timeout: its exception costs more than the rest of an idle stream's bookmark.
        timer = loop.call_later(timeout, self.wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _take(self) -> list[LoggedChange]:
        page: list[LoggedChange] = []
        while self._batches:
            batch = self._batches[0]
            room = PAGE - len(page)
            page += batch[:room]
            if len(batch) > room:
                self._batches[0] = batch[room:]
                break
            self._batches.popleft()
        self._count -= len(page)
        if page:
            self.position, self.time = page[-1].id, page[-1].time
        if not self._count:
            self._batches = None
            if self._log.position > self.position:
                # No change up to the hub's position is left for this stream, so its token can advance.
                self.position, self.time = self._log.position, self._log.time
        return page

    async def _catch_up(self) -> list[LoggedChange]:
        """Read from the log what did not fit the buffer; every id up to the hub's position is decided."""
        end = self._log.position
        until = min(end, self.position + WINDOW)
        rows = await self._log.replay(self.position, until, self.time, self.tenant_id)
        if len(rows) >= PAGE:
            self.position, self.time = rows[-1].id, rows[-1].time
        else:
            self.position = max(until, self.position)
            if rows:
                self.time = rows[-1].time
        if self.position >= end == self._log.position:
            # The stream has caught up; later changes are buffered again.
            self._overflowed = False
            self.time = self._log.time
            self._clear()
        return [row for row in rows if not self.keys or (row.tenant_id, row.resource_id) in self.keys]

    def _clear(self) -> None:
        self._batches, self._count = None, 0
