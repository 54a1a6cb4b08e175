"""The hub: tails the change log once per replica and delivers changes to streams with bounded memory."""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from taskyard.errors import StreamLimit
from taskyard_kit.logs import get_log
from taskyard_taskdb.storage.change_log import epoch as log_epoch
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.change_log.epoch import LogEpoch
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.watch.reader import LogReader
from taskyard_taskdb.watch.subscription import PAGE, Subscription, TaskKey
from taskyard_taskdb.watch.witness import NOTHING, LogWitness

log = get_log(__name__)

STREAMS_PER_TENANT = 10_000
# Poll intervals. Correctness does not depend on a wake-up; a change of another replica is at most this late.
STREAM_POLL_SECONDS = 0.1
IDLE_POLL_SECONDS = 1.0
# While there is no stream and nothing is committed.
RESTING_POLL_SECONDS = 15.0
# A gap closes when the transaction of another writer ends; there is no notification of that.
GAP_POLL_SECONDS = 0.005
RECONNECT_SECONDS = 0.5
EPOCH_SECONDS = 2.0
# A pause lets changes accumulate, so that each stream gets fewer, larger messages.
SHORTEST_PAUSE = 0.003
LONGEST_PAUSE = 0.05
PAUSE_PER_DELIVERY = 20e-6


SESSION_SECONDS = 3600.0

Prepare = Callable[[Tx, Sequence[LoggedChange]], Awaitable[None]]
"""Reads once what many streams need for the same changes."""


def session_seconds() -> float:
    """Return how long a stream lasts until it must reconnect; randomised, so that reconnects spread out."""
    return SESSION_SECONDS * random.uniform(0.9, 1.1)


class Hub:
    """Tails the log and wakes every stream that a change concerns."""

    def __init__(self, pool: Pool) -> None:
        self.position = 0
        self.time = datetime.fromtimestamp(0, UTC)
        self.epoch = 0
        self.closing = False
        self._pool = pool
        self._wake = asyncio.Event()
        self._ready = asyncio.Event()
        self._by_task: defaultdict[TaskKey, set[Subscription]] = defaultdict(set)
        self._by_tenant: defaultdict[str | None, set[Subscription]] = defaultdict(set)
        self._streams: defaultdict[str | None, int] = defaultdict(int)
        # Without a subscription the log is skipped, not read.
        self._subscriptions = 0
        self._committed = False
        self._resting = False
        self._flushes: list[asyncio.Future[None]] = []
        self._prepare: Prepare | None = None
        self._epoch_due = 0.0
        self._history = ""
        self._witness = LogWitness()

    def before_waking(self, prepare: Prepare) -> None:
        """Set a function to call with the changes of tasks that streams send, before the streams wake."""
        self._prepare = prepare

    async def run(self) -> None:
        """Tail the log until cancelled; after a lost connection it continues without skipping a change."""
        while True:
            try:
                await self._tail()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # whatever ended it, the log must be tailed again
                log.failure("change_log_reader_lost", error)
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _tail(self) -> None:
        async with self._pool.following() as tx:
            reader = await self._open(tx)
            while await self._same_log(tx):
                self._wake.clear()
                if self._subscriptions or self._flushes:
                    await self._read(tx, reader)
                else:
                    await self._pass_over(reader)

    async def _open(self, tx: Tx) -> LogReader:
        epoch = await log_epoch.read(tx)
        if self._ready.is_set() and (epoch.number == self.epoch or await self._continues(tx, epoch)):
            return LogReader(tx, self.position, self.time)
        reader = await LogReader.at_end(tx)
        self._witness = LogWitness()
        self.epoch, self.position, self.time = epoch.number, reader.position, reader.time
        self._history = epoch.history
        self._ready.set()
        self._wake_all()
        return reader

    async def _continues(self, tx: Tx, epoch: LogEpoch) -> bool:
        """Whether the log of another timeline has everything that was read here; its streams then go on.

        What is proved is recorded, so that every replica accepts the tokens of before.
        """
        if epoch.history != self._history:
            return False
        proved = await self._witness.proved_until(tx)
        fields = {"epoch": epoch.number, "timeline": epoch.timeline, "proved": proved, "read": self.position}
        if proved > NOTHING:
            await log_epoch.record_continuation(tx, self.epoch, epoch.number, proved)
        if proved < self.position:
            log.warning("watch.log_replaced", **fields)
            return False
        log.info("watch.log_continued", **fields)
        self.epoch = epoch.number
        for subscription in self._all_subscriptions():
            subscription.continue_log(proved)
        return True

    async def _same_log(self, tx: Tx) -> bool:
        """Whether the log still has the epoch that was opened; a restore does not notify connections."""
        now = time.monotonic()
        if now < self._epoch_due:
            return True
        self._epoch_due = now + EPOCH_SECONDS
        if (await log_epoch.read(tx)).number != self.epoch:
            return False
        await self._witness.advance(tx, self.position, fill=bool(self._subscriptions))
        return True

    async def _read(self, tx: Tx, reader: LogReader) -> None:
        pending_flushes = len(self._flushes)
        rows = await reader.step()
        changes = change_reader.expanded(rows)
        delivered = 0
        if changes:
            await self._prepare_streams(tx, changes)
            delivered = self._publish(changes)
            self._witness.add(self.position, rows)
            self.position, self.time = reader.position, reader.time
        if reader.caught_up:
            self._answer_flushes(pending_flushes)
        if changes and not self._flushes:
            await asyncio.sleep(min(LONGEST_PAUSE, SHORTEST_PAUSE + delivered * PAUSE_PER_DELIVERY))
        elif not changes:
            await self._sleep(GAP_POLL_SECONDS if reader.blocked else STREAM_POLL_SECONDS)

    async def _pass_over(self, reader: LogReader) -> None:
        place = await reader.newest_decided()
        if not (self._subscriptions or self._flushes):
            # Checked again: a stream that has subscribed meanwhile would miss the skipped changes.
            reader.jump(place)
            self.position, self.time = reader.position, reader.time
            await self._rest()

    async def _rest(self) -> None:
        """Sleep until there is a subscription or a commit; bounded, so that catching up stays short."""
        self._committed = False
        await self._sleep(IDLE_POLL_SECONDS)
        self._resting = not self._committed
        if self._resting:
            await self._sleep(RESTING_POLL_SECONDS)
            self._resting = False

    def _answer_flushes(self, pending_flushes: int) -> None:
        for flush in self._flushes[:pending_flushes]:
            if not flush.done():
                flush.set_result(None)
        del self._flushes[:pending_flushes]

    async def _sleep(self, seconds: float) -> None:
        # Not wait_for, which loses a cancellation that meets the wake-up (Python 3.11).
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def wake(self) -> None:
        """Record a commit and read the log now; a lost wake-up costs at most a poll interval."""
        self._committed = True
        if self._subscriptions or self._resting:
            self._wake.set()

    async def flush(self) -> None:
        """Return once every change that is committed now was delivered to its streams."""
        flush = asyncio.get_running_loop().create_future()
        self._flushes.append(flush)
        self._wake.set()
        await flush

    def wake_task(self, key: TaskKey) -> None:
        """Wake the streams of one task, because its logs have grown."""
        for subscription in self._by_task.get(key, ()):
            subscription.wake()

    def close(self) -> None:
        """Ask every stream to end, because the server is about to."""
        self.closing = True
        self._wake_all()

    def _wake_all(self) -> None:
        for subscription in self._all_subscriptions():
            subscription.wake()

    def _all_subscriptions(self) -> set[Subscription]:
        found: set[Subscription] = set()
        return found.union(*self._by_task.values(), *self._by_tenant.values())

    async def ready(self) -> None:
        """Wait until the hub has a position in the log."""
        await self._ready.wait()

    def subscribe(
        self, tenant_id: str | None, keys: frozenset[TaskKey] = frozenset(), *, shows_tasks: bool = False
    ) -> Subscription:
        """Return a subscription to one tenant (None: all), or to the given tasks only.

        Raises StreamLimit when the tenant has too many of them.
        """
        self._count(tenant_id)
        subscription = Subscription(self, tenant_id, keys, shows_tasks=shows_tasks)
        self._subscriptions += 1
        for key in keys:
            self._by_task[key].add(subscription)
        if not keys:
            self._by_tenant[tenant_id].add(subscription)
        # An idle hub sleeps longer than the poll interval of streams, and has skipped what it did not read.
        if self._subscriptions == 1:
            self._epoch_due = 0.0
        self._wake.set()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._uncount(subscription.tenant_id)
        self._subscriptions -= 1
        for key in subscription.keys:
            self._by_task[key].discard(subscription)
            if not self._by_task[key]:
                del self._by_task[key]
        if not subscription.keys:
            self._by_tenant[subscription.tenant_id].discard(subscription)
            if not self._by_tenant[subscription.tenant_id]:
                del self._by_tenant[subscription.tenant_id]

    @contextmanager
    def counted(self, tenant_id: str) -> Iterator[None]:
        """Count a stream that needs no changes; raises StreamLimit as subscribe does."""
        self._count(tenant_id)
        try:
            yield
        finally:
            self._uncount(tenant_id)

    def _count(self, tenant_id: str | None) -> None:
        if self._streams[tenant_id] >= STREAMS_PER_TENANT:
            raise StreamLimit(f"tenants/{tenant_id or '-'}", str(STREAMS_PER_TENANT))
        self._streams[tenant_id] += 1

    def _uncount(self, tenant_id: str | None) -> None:
        self._streams[tenant_id] -= 1
        if not self._streams[tenant_id]:
            del self._streams[tenant_id]

    async def replay(
        self, after: int, until: int, since: datetime, tenant_id: str | None
    ) -> list[LoggedChange]:
        """Return a page of the log, for a stream that is behind."""
        # A start that came with its success has the id before that of their row, which may be `until`.
        async with self._pool.reading() as tx:
            rows = await change_reader.read_range(tx, after, until + 1, since, tenant_id, PAGE)
        return [change for change in change_reader.expanded(rows, after) if change.id <= until]

    async def _prepare_streams(self, tx: Tx, changes: list[LoggedChange]) -> None:
        """Read once for all streams; nothing is delivered meanwhile, so a new subscription misses nothing."""
        if self._prepare is not None:
            shown = [change for change in changes if self._is_shown(change)]
            if shown:
                await self._prepare(tx, shown)

    def _is_shown(self, change: LoggedChange) -> bool:
        if change.tenant_id in self._by_tenant or None in self._by_tenant:
            return True
        watching = self._by_task.get((change.tenant_id, change.resource_id), ())
        return any(subscription.shows_tasks for subscription in watching)

    def _publish(self, changes: list[LoggedChange]) -> int:
        """Deliver changes to the subscriptions they concern; returns the number of deliveries."""
        wanted: defaultdict[Subscription, list[LoggedChange]] = defaultdict(list)
        tenants: defaultdict[str, list[LoggedChange]] = defaultdict(list)
        for change in changes:
            for subscription in self._by_task.get((change.tenant_id, change.resource_id), ()):
                wanted[subscription].append(change)
            if change.tenant_id in self._by_tenant:
                tenants[change.tenant_id].append(change)
        for tenant_id, batch in tenants.items():
            wanted.update(dict.fromkeys(self._by_tenant[tenant_id], batch))
        wanted.update(dict.fromkeys(self._by_tenant.get(None, ()), changes))
        for subscription, batch in wanted.items():
            subscription.offer(batch)
        return sum(map(len, wanted.values()))
