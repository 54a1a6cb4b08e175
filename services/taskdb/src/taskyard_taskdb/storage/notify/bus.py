"""The event bus of a process: commit notices are published here and reach callbacks and subscriptions.

Callbacks run at once (wake the hub, drop cached settings, add up usage). A subscription merges notices until
its reader takes them. The forwarder is the subscription of the other replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from taskyard_taskdb.storage.claim.lanes import Appended, LaneKey, merge_appended

TaskKey = tuple[str, str]


@dataclass(slots=True)
class CommitNotice:
    """What changed; `everything` asks subscribers for a full read."""

    everything: bool = False
    # Lanes to read again.
    lanes: set[LaneKey] = field(default_factory=set)
    # Lanes that gained tasks: the notice carries all that a subscriber needs, so nothing is read.
    appended: dict[LaneKey, Appended] = field(default_factory=dict)
    # Lanes that lost tasks to a claim: read again without hurry.
    shrunk: set[LaneKey] = field(default_factory=set)
    # Tasks whose holder must act: a cancel or pause is requested, or the lease was revoked.
    holders: set[TaskKey] = field(default_factory=set)
    # Runners whose drain, labels or deletion changed.
    runners: set[str] = field(default_factory=set)
    # Tenants whose use of their limits changed.
    tenants: set[str] = field(default_factory=set)
    # Tenants whose settings, limits or task types changed.
    settings: set[str] = field(default_factory=set)
    # Tenants with the seconds that each of their ended runs took, and the number of those; for this
    # process only.
    used: list[tuple[str, float, int]] = field(default_factory=list)
    # Tasks whose logs have grown.
    logs: set[TaskKey] = field(default_factory=set)
    # Something else was committed: idle loops of other replicas look again.
    changed: bool = False
    # Dependents were left to the sweep.
    dependencies: bool = False
    # Tasks that wait for limits were left to the sweep.
    limits: bool = False

    def __bool__(self) -> bool:
        return self.changed or bool(self.used) or self.is_for_subscribers()

    def is_for_subscribers(self) -> bool:
        """Whether a subscriber has more to learn than that something was committed."""
        fields = (
            self.lanes,
            self.appended,
            self.shrunk,
            self.holders,
            self.runners,
            self.tenants,
            self.settings,
        )
        return self.everything or any(fields)

    @classmethod
    def of_settings(cls, tenant_id: str) -> CommitNotice:
        """Settings, limits or task types of a tenant changed."""
        return cls(tenants={tenant_id}, settings={tenant_id})

    def add(self, other: CommitNotice) -> None:
        """Merge another notice into this one."""
        self.everything |= other.everything
        self.changed |= other.changed
        self.dependencies |= other.dependencies
        self.limits |= other.limits
        self.lanes |= other.lanes
        merge_appended(self.appended, other.appended.items())
        self.shrunk |= other.shrunk
        self.holders |= other.holders
        self.runners |= other.runners
        self.tenants |= other.tenants
        self.settings |= other.settings
        self.used += other.used
        self.logs |= other.logs


Callback = Callable[[CommitNotice], None]


class Subscription:
    """Notices for one reader, merged until it takes them."""

    def __init__(self) -> None:
        self._notice = CommitNotice()
        self._arrived = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, notice: CommitNotice) -> None:
        """Add a notice and wake the reader."""
        self._notice.add(notice)
        self.wake()

    def wake(self) -> None:
        """Wake the reader, whether or not there is a notice."""
        self._arrived = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self, seconds: float) -> CommitNotice | None:
        """All notices as one, after waiting at most this long; None if none arrived.

        It waits on one future and makes no task, so the reader continues in the next round of the loop.
        """
        if not self._arrived:
            await self._wait(seconds)
        if not self._arrived:
            return None
        self._arrived = False
        notice, self._notice = self._notice, CommitNotice()
        return notice

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


class Bus:
    """One per process. Every commit that others may wait for is published here."""

    def __init__(self) -> None:
        self._callbacks: list[Callback] = []
        self._log_callbacks: list[Callback] = []
        self._subscriptions: set[Subscription] = set()
        self._forwarder: Subscription | None = None
        self._has_replicas: Callable[[], bool] = lambda: True

    def publish(self, notice: CommitNotice) -> None:
        """Deliver a notice of this process, here and to the other replicas."""
        self.receive(notice)
        forwarded = notice.changed or notice.logs or notice.is_for_subscribers()
        if self._forwarder is not None and forwarded and self._has_replicas():
            self._forwarder.put(notice)

    def receive(self, notice: CommitNotice) -> None:
        """Deliver a notice here; another replica has published it."""
        if notice:
            for call in self._callbacks:
                call(notice)
        if notice.logs or notice.everything:
            for call in self._log_callbacks:
                call(notice)
        if notice.is_for_subscribers():
            for subscription in self._subscriptions:
                subscription.put(notice)

    def on_commit(self, call: Callback) -> None:
        """Call this with every notice, of this replica and of the others."""
        self._callbacks.append(call)

    def on_logs(self, call: Callback) -> None:
        """Call this with every notice of grown logs; output of tasks wakes nothing else."""
        self._log_callbacks.append(call)

    def subscribe(self) -> Subscription:
        """A new subscription; the caller ends it with `unsubscribe`."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription."""
        self._subscriptions.discard(subscription)

    def forward(self, has_replicas: Callable[[], bool]) -> Subscription:
        """The subscription that collects notices for other replicas while there are any; a bus has one."""
        self._forwarder, self._has_replicas = Subscription(), has_replicas
        return self._forwarder


def invalidation(*forget: Callable[[str | None], None]) -> Callback:
    """A callback that drops cached settings of changed tenants; None stands for all tenants."""

    def drop(notice: CommitNotice) -> None:
        tenant_ids = {None} if notice.everything else notice.settings
        for tenant_id in tenant_ids:
            for call in forget:
                call(tenant_id)

    return drop
