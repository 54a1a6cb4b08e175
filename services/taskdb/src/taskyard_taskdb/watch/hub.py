"""The hub: one tail of the change log per replica, fanned out to streams with bounded memory."""

import asyncio
import logging
from collections import defaultdict, deque
from contextlib import suppress
from datetime import UTC, datetime

from taskyard.errors import StreamLimit
from taskyard_taskdb.storage import changelog
from taskyard_taskdb.storage.changelog import LoggedChange
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.watch.reader import LogReader

logger = logging.getLogger(__name__)

BUFFER = 2000
PAGE = 500
STREAMS_PER_TENANT = 10_000
# Nothing depends on a wake-up: this is how late a lost one makes the log.
IDLE_POLL_SECONDS = 1.0
# A gap closes when a transaction of another writer ends, which nobody tells.
GAP_POLL_SECONDS = 0.005
RECONNECT_SECONDS = 0.5

TaskKey = tuple[str, str]


class Subscription:
    """One stream's share of the log: a bounded buffer that asks for a replay when it overflows."""

    def __init__(self, hub: "Hub", tenant_id: str | None, keys: frozenset[TaskKey]) -> None:
        self.tenant_id = tenant_id
        self.keys = keys
        self.position = hub.position
        self.time = hub.time
        self._hub = hub
        self._buffer: deque[LoggedChange] = deque()
        self._overflowed = False
        self._wake = asyncio.Event()

    def offer(self, change: LoggedChange) -> None:
        """Take a change in, or remember that it has to be read again."""
        if change.id <= self.position:
            return  # a token of a replica that is ahead of this one covers it
        if len(self._buffer) >= BUFFER:
            self._overflowed = True
            self._buffer.clear()
        if not self._overflowed:
            self._buffer.append(change)
        self._wake.set()

    @property
    def behind(self) -> bool:
        """Whether changes are at hand that `next` has not returned."""
        return self._overflowed or bool(self._buffer)

    def wake(self) -> None:
        """Let the waiting stream look again."""
        self._wake.set()

    async def next(self, timeout: float) -> list[LoggedChange]:
        """Return the next changes, at most a page of them; none when the time is up or the hub woke it."""
        if self._overflowed:
            return await self._catch_up()
        if not self._buffer:
            self._wake.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                return []
            if self._overflowed:
                return await self._catch_up()
        page = [self._buffer.popleft() for _ in range(min(PAGE, len(self._buffer)))]
        if page:
            self.position, self.time = page[-1].id, page[-1].time
        return page

    def rewind(self, position: int, time: datetime) -> None:
        """Start behind `position` instead of at the hub's place."""
        self.position, self.time, self._overflowed = position, time, position < self._hub.position

    async def _catch_up(self) -> list[LoggedChange]:
        """Read from the log what the buffer could not hold; every id up to the hub's place is decided."""
        end = self._hub.position
        rows = await self._hub.replay(self.position, end, self.time, self.tenant_id)
        if rows and len(rows) == PAGE:
            self.position, self.time = rows[-1].id, rows[-1].time
        else:
            # All up to `end` is read; what came later is in the buffer only if it is taken in from now on.
            self._resume(end)
        return [row for row in rows if not self.keys or (row.tenant_id, row.resource_id) in self.keys]

    def _resume(self, end: int) -> None:
        self.position = end
        self._buffer.clear()
        self._overflowed = self._hub.position != end
        if not self._overflowed:
            self.time = self._hub.time


class Hub:
    """Tails the log while it runs and wakes every stream that a change concerns."""

    def __init__(self, pool: Pool) -> None:
        self.position = 0
        self.time = datetime.now(UTC)
        self.epoch = 0
        self.closing = False
        self._pool = pool
        self._wake = asyncio.Event()
        self._ready = asyncio.Event()
        self._by_task: defaultdict[TaskKey, set[Subscription]] = defaultdict(set)
        self._by_tenant: defaultdict[str | None, set[Subscription]] = defaultdict(set)
        self._streams: defaultdict[str | None, int] = defaultdict(int)
        # Without a stream nobody needs the log at once: it is read at the idle poll only.
        self._subscriptions = 0
        self._looks: list[asyncio.Future[None]] = []

    async def run(self) -> None:
        """Tail the log until cancelled; a lost connection is replaced and nothing is skipped."""
        while True:
            try:
                await self._tail()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # the log must be tailed again whatever ended it
                logger.warning("watch.reader_lost", extra={"error": str(error)})
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _tail(self) -> None:
        async with self._pool.reading() as tx:
            epoch = await changelog.epoch(tx)
            if self._ready.is_set() and epoch == self.epoch:
                reader = LogReader(tx, self.position, self.time)
            else:
                reader = await LogReader.at_end(tx)
            self.epoch, self.position, self.time = epoch, reader.position, reader.time
            self._ready.set()
            while True:
                self._wake.clear()
                asked = len(self._looks)
                changes = await reader.step()
                if changes:
                    self._publish(changes)
                    self.position, self.time = reader.position, reader.time
                if reader.caught_up:
                    self._answer_looks(asked)
                if not changes:
                    await self._sleep(GAP_POLL_SECONDS if reader.blocked else IDLE_POLL_SECONDS)

    def _answer_looks(self, asked: int) -> None:
        for look in self._looks[:asked]:
            if not look.done():
                look.set_result(None)
        del self._looks[:asked]

    async def _sleep(self, seconds: float) -> None:
        # Not wait_for, which loses a cancellation that meets the wake-up (Python 3.11).
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def wake(self) -> None:
        """Say that something was committed; losing this costs at most the idle poll."""
        if self._subscriptions:
            self._wake.set()

    async def look(self) -> None:
        """Return once everything that is committed now was handed to the streams that want it."""
        look = asyncio.get_running_loop().create_future()
        self._looks.append(look)
        self._wake.set()
        await look

    def wake_task(self, key: TaskKey) -> None:
        """Let the streams of one task look again, because its logs have grown."""
        for subscription in self._by_task.get(key, ()):
            subscription.wake()

    def close(self) -> None:
        """Ask every stream to end, because the server is about to."""
        self.closing = True
        for subscriptions in (*self._by_task.values(), *self._by_tenant.values()):
            for subscription in subscriptions:
                subscription.wake()

    async def ready(self) -> None:
        """Wait until the hub knows its place in the log."""
        await self._ready.wait()

    def subscribe(self, tenant_id: str | None, keys: frozenset[TaskKey] = frozenset()) -> Subscription:
        """Return a subscription to one tenant (None: all), or to the given tasks only.

        Raises StreamLimit when the tenant has too many of them.
        """
        if self._streams[tenant_id] >= STREAMS_PER_TENANT:
            raise StreamLimit(f"tenants/{tenant_id or '-'}", str(STREAMS_PER_TENANT))
        subscription = Subscription(self, tenant_id, keys)
        self._streams[tenant_id] += 1
        self._subscriptions += 1
        for key in keys:
            self._by_task[key].add(subscription)
        if not keys:
            self._by_tenant[tenant_id].add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        self._streams[subscription.tenant_id] -= 1
        self._subscriptions -= 1
        for key in subscription.keys:
            self._by_task[key].discard(subscription)
            if not self._by_task[key]:
                del self._by_task[key]
        self._by_tenant[subscription.tenant_id].discard(subscription)

    async def replay(
        self, after: int, until: int, since: datetime, tenant_id: str | None
    ) -> list[LoggedChange]:
        """Return a page of the log itself, for a stream that is behind."""
        async with self._pool.reading() as tx:
            return await changelog.read_range(tx, after, until, since, tenant_id, PAGE)

    def _publish(self, changes: list[LoggedChange]) -> None:
        everything = self._by_tenant.get(None, ())
        for change in changes:
            for subscription in self._by_task.get((change.tenant_id, change.resource_id), ()):
                subscription.offer(change)
            for subscription in self._by_tenant.get(change.tenant_id, ()):
                subscription.offer(change)
            for subscription in everything:
                subscription.offer(change)
