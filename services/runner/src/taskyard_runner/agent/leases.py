"""The leases of this agent: when they expire, and the changes that heartbeats carry.

Times are boot times of this host. A lease counts from the sending of the heartbeat that renewed it, so a
slow acknowledgement makes it shorter, never longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from taskyard.v1.common_pb2 import Progress
from taskyard.v1.lease_pb2 import LeaseRef
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_ACCEPTED,
    HELD_STATE_ENDED,
    Heartbeat,
    HeldState,
    HeldTask,
)

RunKey = tuple[str, int]

# FORBID work is killed this fraction of its lease early, because killing takes time and clocks drift.
_SAFETY_FRACTION = 0.05
_SAFETY_MAX_SECONDS = 1.0
# An assignment may count from a heartbeat that was acknowledged meanwhile, never from a much older one.
_REMEMBERED_SECONDS = 120.0


def key_of(lease: LeaseRef) -> RunKey:
    """Names the run."""
    return lease.task, lease.generation


def lease_end(sent: float, duration: float) -> float:
    """The time until which the holder may rely on a lease."""
    return sent + duration - min(duration * _SAFETY_FRACTION, _SAFETY_MAX_SECONDS)


@dataclass
class Held:
    """A lease of this agent."""

    lease: LeaseRef
    run: str
    until: float
    state: HeldState.ValueType = HELD_STATE_ACCEPTED
    progress: Progress | None = None
    # The spool's sequence number of the outcome.
    outcome_seq: int | None = None
    version: int = 1
    acked_version: int = 0
    # The first heartbeat of this session that listed it; 0 = hello.
    listed: int | None = None
    # Progress that no report has carried yet; heartbeats carry it too, but rarely.
    progress_unreported: bool = False
    # The warden enforces the lease: it runs the work, or kills it at expiry.
    guarded: bool = True
    table: Leases | None = field(default=None, repr=False, compare=False)
    key: RunKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = key_of(self.lease)

    @property
    def active(self) -> bool:
        """Whether it uses one of the runner's slots."""
        return self.state != HELD_STATE_ENDED

    def change(self, state: HeldState.ValueType | None = None, progress: Progress | None = None) -> None:
        """Record a change for the next heartbeat."""
        if state is not None and state != self.state:
            if self.table is not None:
                self.table.count(self, state)
            self.state = state
        if progress is not None:
            self.progress = progress
            self.progress_unreported = True
            if self.table is not None:
                self.table.unreported_progress[self.key] = self
        self.version += 1

    def message(self) -> HeldTask:
        """As hello and heartbeats list it."""
        return HeldTask(lease=self.lease, state=self.state, progress=self.progress)


@dataclass
class _Sent:
    """The contents of one heartbeat."""

    time: float
    versions: dict[RunKey, int] = field(default_factory=dict)
    dropped: list[RunKey] = field(default_factory=list)


class Leases:
    """The table of held leases and the heartbeats of the session. The caller passes the time."""

    def __init__(self) -> None:
        self._held: dict[RunKey, Held] = {}
        self._active = 0
        self._unlisted: set[RunKey] = set()
        # Leases with progress that no report has carried.
        self.unreported_progress: dict[RunKey, Held] = {}
        self._dropped: dict[RunKey, LeaseRef] = {}
        self._sent: dict[int, _Sent] = {}
        self._times: dict[int, float] = {}
        self._last_id = 0
        self._session_until = 0.0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._held.values()))

    def get(self, key: RunKey) -> Held | None:
        return self._held.get(key)

    def add(self, held: Held) -> None:
        # Held again before the drop was sent: the heartbeat lists it as held only.
        key = held.key
        self._dropped.pop(key, None)
        self._forget(self._held.get(key))
        self._held[key] = held
        held.table = self
        self._active += held.active
        if held.listed is None:
            self._unlisted.add(key)

    def drop(self, key: RunKey) -> None:
        """The lease is over: its outcome was acknowledged, or it was lost."""
        held = self._held.pop(key, None)
        self._forget(held)
        if held is not None and held.listed is not None:
            self._dropped[key] = held.lease

    def _forget(self, held: Held | None) -> None:
        if held is None:
            return
        key = held.key
        held.table = None
        self._active -= held.active
        self._unlisted.discard(key)
        self.unreported_progress.pop(key, None)

    def count(self, held: Held, state: HeldState.ValueType) -> None:
        """Update the counts before a lease changes its state."""
        self._active += (state != HELD_STATE_ENDED) - held.active

    def report_dropped(self, lease: LeaseRef) -> None:
        """The scheduler named a lease that is not held here; the next heartbeat lists it as dropped."""
        if key_of(lease) not in self._held:
            self._dropped[key_of(lease)] = lease

    @property
    def active_count(self) -> int:
        """Runs that take up capacity."""
        return self._active

    # -- hello and heartbeats

    def begin_session(self, now: float) -> list[HeldTask]:
        """A new session: hello is being sent and lists everything."""
        self._sent = {0: _Sent(now, {key: held.version for key, held in self._held.items()})}
        self._times = {0: now}
        self._last_id = 0
        self._dropped.clear()
        self._unlisted.clear()
        for held in self._held.values():
            held.listed = 0
            held.acked_version = 0
        return [held.message() for held in self._held.values()]

    def welcomed(self, duration: float) -> list[Held]:
        """The session is open: the leases listed in hello count from its sending."""
        return self.acknowledge(0, duration)

    def heartbeat(self, now: float, *, full: bool) -> Heartbeat:
        """The next heartbeat, to be sent now."""
        self._last_id += 1
        chosen = [held for held in self._held.values() if full or held.version > held.acked_version]
        for held in chosen:
            if held.listed is None:
                held.listed = self._last_id
        self._unlisted.clear()
        versions = {held.key: held.version for held in chosen}
        self._sent[self._last_id] = _Sent(now, versions, list(self._dropped))
        self._times[self._last_id] = now
        self._times = {n: time for n, time in self._times.items() if time > now - _REMEMBERED_SECONDS}
        return Heartbeat(
            heartbeat_id=self._last_id,
            changed=[held.message() for held in chosen],
            dropped=self._dropped.values(),
            held_count=len(self._held),
            full=full,
        )

    def acknowledge(self, heartbeat_id: int, duration: float) -> list[Held]:
        """Apply a stored renewal and return the renewed leases. An ack covers every earlier heartbeat."""
        sent = self._sent.get(heartbeat_id)
        if sent is None:
            return []
        for earlier in [number for number in self._sent if number <= heartbeat_id]:
            self._settle(self._sent.pop(earlier))
        self._session_until = lease_end(sent.time, duration)
        return list(self._renew(heartbeat_id, self._session_until))

    def _settle(self, sent: _Sent) -> None:
        for key, version in sent.versions.items():
            if (held := self._held.get(key)) is not None:
                held.acked_version = max(held.acked_version, version)
        for key in sent.dropped:
            self._dropped.pop(key, None)

    def _renew(self, heartbeat_id: int, until: float) -> Iterator[Held]:
        for held in self._held.values():
            if held.listed is not None and held.listed <= heartbeat_id:
                held.until = until
                yield held

    def first_lease(self, heartbeat_id: int, duration: float) -> float | None:
        """The end of an assignment's first lease; None if this session sent no such heartbeat.

        Its start makes it follow the session, so it never counts for longer than that.
        """
        sent = self._times.get(heartbeat_id)
        return None if sent is None else min(lease_end(sent, duration), self._session_until)

    def sent_time(self, heartbeat_id: int) -> float:
        """When that heartbeat was sent."""
        return self._times[heartbeat_id]

    @property
    def unlisted(self) -> bool:
        """Whether the scheduler has not yet received some lease."""
        return bool(self._unlisted)

    @property
    def oldest_unacked(self) -> float | None:
        """When the oldest unacknowledged heartbeat was sent."""
        return min((sent.time for sent in self._sent.values()), default=None)
