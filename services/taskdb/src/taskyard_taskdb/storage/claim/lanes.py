"""What this process knows of lanes beyond the database: bounds, and whom to tell what has changed.

A bound is where reading a lane begins: what was popped last less a second, so that dead entries are not
visited. What is committed below it later is found by `Bounds.repair`, never by a pop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.claim.lane import Filling, LaneKey, join_fillings
from taskyard_taskdb.storage.claim.merge import BEGINNING
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant.usage import Ledger
from taskyard_taskdb.storage.transition.task_rows import Key

COUNT_LIMIT = 1000
# Rows that are counted in all when lanes are read again, and of each at least.
_COUNTED = 2000
_COUNTED_EACH = 4
_SLACK = timedelta(seconds=1)
# No transaction lasts as long: after this time nothing can be committed below a bound any more.
_FORGET_SECONDS = 120.0


@dataclass(slots=True)
class News:
    """What has changed since it was last taken. `everything` asks for a full reading."""

    everything: bool = False
    lanes: set[LaneKey] = field(default_factory=set)
    # Lanes that gained tasks, with all there is to tell; and those that lost some, which nobody waits for.
    filled: dict[LaneKey, Filling] = field(default_factory=dict)
    faded: set[LaneKey] = field(default_factory=set)
    holders: set[Key] = field(default_factory=set)
    runners: set[str] = field(default_factory=set)
    # Tenants whose share changed, and those whose settings or task types did.
    tenants: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    # Something else was committed: whoever rests while nothing happens looks again.
    stirred: bool = False

    def __bool__(self) -> bool:
        return self.stirred or self.is_for_listeners()

    def is_for_listeners(self) -> bool:
        """Whether there is more to tell than that something was committed."""
        told = (
            self.lanes,
            self.appended,
            self.faded,
            self.holders,
            self.runners,
            self.tenants,
            self.settings,
        )
        return self.everything or any(told)

    def add(self, other: News) -> None:
        """Take over what another has."""
        self.everything |= other.everything
        self.stirred |= other.stirred
        self.lanes |= other.lanes
        join_fillings(self.appended, other.appended.items())
        self.faded |= other.faded
        self.holders |= other.holders
        self.runners |= other.runners
        self.tenants |= other.tenants
        self.settings |= other.settings


class Inbox:
    """The news of one listener, put together until it takes them."""

    def __init__(self) -> None:
        self._news = News()
        self._arrived = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, news: News) -> None:
        """Add news."""
        self._news.add(news)
        self.wake()

    def wake(self) -> None:
        """Let the listener look, news or not."""
        self._arrived = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self, seconds: float) -> News | None:
        """Wait for news, for so long at most, and take them all; None if there are none.

        One future and no task: whoever waits goes on in the next round of the loop.
        """
        if not self._arrived:
            await self._wait(seconds)
        if not self._arrived:
            return None
        self._arrived = False
        news, self._news = self._news, News()
        return news

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _end, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Lanes:
    """One per process: told after each commit, heard by the queue watches and by the other replicas."""

    def __init__(self) -> None:
        self.bounds: dict[LaneKey, datetime] = {}
        self.ledger = Ledger()
        self._bound_ages: dict[LaneKey, float] = {}
        self._inboxes: set[Inbox] = set()
        self._forwarder: Inbox | None = None
        self._has_others: Callable[[], bool] = lambda: True
        self._calls: list[Callable[[], None]] = []
        self._settings_calls: list[Callable[[str | None], None]] = []

    def touch(self, lanes: Iterable[tuple[str, int, int, str]]) -> None:
        """Say that lanes gained or lost work."""
        self.tell(News(lanes={LaneKey(*lane) for lane in lanes}))

    def touch_leases(self, keys: Iterable[Key]) -> None:
        """Say that the holders of these tasks must act."""
        self.tell(News(holders=set(keys)))

    def touch_runners(self, runner_ids: Iterable[str]) -> None:
        """Say that drain, labels or deletion of runners changed."""
        self.tell(News(runners=set(runner_ids)))

    def touch_tenants(self, tenant_ids: Iterable[str]) -> None:
        """Say that the use that tenants make of their limits changed."""
        self.tell(News(tenants=set(tenant_ids)))

    def reconfigured(self, tenant_ids: Iterable[str]) -> None:
        """Say that settings, limits or task types of tenants changed."""
        self.tell(News(tenants=set(tenant_ids), settings=set(tenant_ids)))

    def committed(self, notice: CommitNotice) -> None:
        """Tell what a transaction of transitions has changed."""
        lanes, holders, tenants = set(notice.lanes), set(notice.holders), set(notice.tenants)
        self.ledger.add(notice.used)
        news = News(lanes=lanes, filled=dict(notice.appended), holders=holders, tenants=tenants)
        news.stirred = notice.changed
        self.tell(news)

    def stir(self) -> None:
        """Say that something was committed, to those who only want to know that much."""
        for call in self._calls:
            call()

    def on_news(self, call: Callable[[], None]) -> None:
        """Have this called after every commit that is told or heard of."""
        self._calls.append(call)

    def on_settings(self, call: Callable[[str | None], None]) -> None:
        """Have this called with a tenant whose settings or task types changed; None stands for all."""
        self._settings_calls.append(call)

    def tell(self, news: News) -> None:
        """Tell listeners here and, where there is a forwarder, in the other replicas."""
        self.hear(news)
        if self._forwarder is not None and news and self._has_others():
            self._forwarder.put(news)

    def hear(self, news: News) -> None:
        """Tell listeners here what another replica told."""
        if news:
            self.stir()
        if news.everything or news.settings:
            self._tell_settings({None} if news.everything else news.settings)
        if news.is_for_listeners():
            for inbox in self._inboxes:
                inbox.put(news)

    def _tell_settings(self, tenant_ids: Iterable[str | None]) -> None:
        for tenant_id in tenant_ids:
            for call in self._settings_calls:
                call(tenant_id)

    def listen(self) -> Inbox:
        """A new listener; whoever asks for one gives it back with `leave`."""
        inbox = Inbox()
        self._inboxes.add(inbox)
        return inbox

    def leave(self, inbox: Inbox) -> None:
        """End a listener."""
        self._inboxes.discard(inbox)

    def forward(self, has_others: Callable[[], bool]) -> Inbox:
        """The inbox of what is told in this process while there are others; there is one forwarder."""
        self._forwarder, self._has_others = Inbox(), has_others
        return self._forwarder

    def popped(
        self, taken: Iterable[tuple[LaneKey, datetime]], skipped: Iterable[tuple[LaneKey, datetime]]
    ) -> None:
        """Raise the bounds to what was popped, but not above what was passed over."""
        raised: dict[LaneKey, datetime] = {}
        for lane, ready_time in taken:
            raised[lane] = max(raised.get(lane, BEGINNING), ready_time)
        for lane, ready_time in skipped:
            raised[lane] = min(raised.get(lane, ready_time), ready_time)
        now = time.monotonic()
        for lane, ready_time in raised.items():
            self.bounds[lane] = max(self.bounds.get(lane, BEGINNING), ready_time - _SLACK)
            self._bound_ages[lane] = now
        self.tell(News(faded=set(raised)))

    async def repair(self, tx: Tx) -> int:
        """Lower bounds that have rows below them and forget old ones; returns how many were lowered."""
        self._forget()
        bounds = dict(self.bounds)
        if not bounds:
            return 0
        lowered = set()
        lanes = list(bounds)
        params = lane_arrays(lanes) | {"after_times": arrays.timestamps(list(bounds.values()))}
        for n, ready_time in await tx.fetch(statement("below_bounds"), params):
            lane = lanes[n - 1]
            self.bounds[lane] = min(self.bounds.get(lane, ready_time), ready_time - _SLACK)
            lowered.add(lane)
        self.touch(lowered)
        return len(lowered)

    def _forget(self) -> None:
        oldest = time.monotonic() - _FORGET_SECONDS
        for lane in [lane for lane, age in self._bound_ages.items() if age < oldest]:
            del self._bound_ages[lane]
            self.bounds.pop(lane, None)


@dataclass(frozen=True, slots=True)
class LaneHead:
    """A lane, the ready_time of its first task (None: empty), and how many it has, perhaps more."""

    lane: LaneKey
    ready_time: datetime | None
    backlog: int
    more: bool


async def read_all(tx: Tx) -> list[LaneHead]:
    """Every lane that has work."""
    rows = await tx.fetch(statement("all_lanes"), {"count_limit": COUNT_LIMIT})
    return [LaneHead(LaneKey(*row[:4]), row[4], row[5], row[5] >= COUNT_LIMIT) for row in rows]


async def read_heads(tx: Tx, lanes: Iterable[LaneKey], bounds: Mapping[LaneKey, datetime]) -> list[LaneHead]:
    """The heads of these lanes, empty ones included. Of many lanes each is counted a little only."""
    wanted = list(lanes)
    limit = min(COUNT_LIMIT, max(_COUNTED_EACH, _COUNTED // max(1, len(wanted))))
    after = arrays.timestamps([bounds.get(lane, BEGINNING) for lane in wanted])
    params = lane_arrays(wanted) | {"after_times": after, "count_limit": limit}
    rows = await tx.fetch(statement("lane_heads"), params)
    return [LaneHead(wanted[n - 1], ready_time, count, count >= limit) for n, ready_time, count in rows]


def lane_arrays(lanes: Iterable[LaneKey]) -> dict[str, object]:
    """The columns of lane keys."""
    keys = list(lanes)
    return {
        "tenant_ids": arrays.texts([lane.tenant_id for lane in keys]),
        "class_ids": arrays.bigints([lane.class_id for lane in keys]),
        "priorities": arrays.smallints([lane.priority for lane in keys]),
        "pinned_runners": arrays.texts([lane.pinned_runner for lane in keys]),
    }
