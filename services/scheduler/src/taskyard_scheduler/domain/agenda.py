"""The work by tenant: lanes with work, and which of them a connected claimant may take."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from taskyard_scheduler.domain.fairness import UNLIMITED, Account, Standings, TenantShare, lane_offset
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.domain.reservations import RESERVATION_DELAY_SECONDS, LaneId, Reservations


@dataclass(slots=True)
class Lane:
    """A lane with claimable work, as of `seen_version` of the lane board."""

    tenant: str
    class_id: int
    priority: int
    pinned: str
    head: float
    backlog: int
    seen_version: int = 0

    @property
    def id(self) -> LaneId:
        return (self.class_id, self.priority, self.pinned)


class LiveLane(NamedTuple):
    """A lane that some claimant may take; the smallest head - offset goes first."""

    lane: Lane
    wanted: PlacementClass
    offset: float


class TenantAgenda:
    """One tenant's lanes, its share, and its live lanes, which are computed on demand.

    It adds its name to `changed` whenever its position in the order of turns may have changed.
    """

    __slots__ = (
        "_changed",
        "_live",
        "_ordered",
        "_stalled_until",
        "account",
        "blocked_until",
        "lanes",
        "share",
    )

    def __init__(self, share: TenantShare, now: float, changed: set[str]) -> None:
        self._changed = changed
        self.lanes: dict[LaneId, Lane] = {}
        self._live: list[LiveLane] | None = None
        self._ordered = False
        self.share = share
        self.account = Account(1, 0.0, 0, now)
        self.update_share(share, now)

    def update_share(self, share: TenantShare, now: float) -> None:
        """Applies a share published by taskdb; a change of usage alone leaves the lanes unchanged."""
        former, self.share = self.share, share
        weight = max(1, share.weight)
        if share.limits_only:
            self.account = replace(self.account, weight=weight)
        else:
            self.account = Account(weight, share.usage, share.held, now)
        self._stalled_until = 0.0
        if (former.weight, former.paused_task_types) == (share.weight, share.paused_task_types):
            self._block()
        else:
            self._reset()

    def put(self, lane: Lane) -> bool:
        """Adds or updates a lane; returns whether it is new. Ends a stall: its tasks may be claimable now."""
        existing = self.lanes.get(lane.id)
        if self._stalled_until:
            self.stall(0.0)
        if existing is None:
            self.lanes[lane.id] = lane
            self._reset()
            return True
        # Usually an existing lane moved: it stays live, only the order may change.
        existing.head, existing.backlog, existing.seen_version = lane.head, lane.backlog, lane.seen_version
        self._ordered = False
        return False

    def remove(self, lane_id: LaneId) -> None:
        """Removes a lane without work."""
        del self.lanes[lane_id]
        self._reset()

    def claim(self, count: int, now: float) -> None:
        """Counts claimed tasks, or ended ones if negative."""
        self.account = self.account.claim(count, now)
        self._changed.add(self.share.tenant)
        if self.share.claimable != UNLIMITED:
            self.share = replace(self.share, claimable=max(0, self.share.claimable - count))
            self._block()

    def stall(self, until: float) -> None:
        """Skips the tenant until then."""
        self._stalled_until = until
        self._block()

    def revive(self) -> None:
        """Recomputes the live lanes if some lanes had no claimant."""
        if self._live is not None and len(self._live) < len(self.lanes):
            self._reset()

    def _reset(self) -> None:
        self._live = None
        self._block()

    def _block(self) -> None:
        """Sets the time until which the tenant gets no turn; infinite while nothing of it may be claimed."""
        closed = self.share.paused or self.share.claimable == 0 or self._live == []
        self.blocked_until = math.inf if closed else self._stalled_until
        self._changed.add(self.share.tenant)

    def live(self, classes: Mapping[int, PlacementClass], matches: Matches, strict: bool) -> list[LiveLane]:
        """The lanes that some claimant may take, best first."""
        if self._live is None:
            self._live = list(self._choose(classes, matches, strict))
            self._ordered = False
            self._block()
        if not self._ordered:
            self._live.sort(key=_rank)
            self._ordered = True
        return self._live

    def _choose(
        self, classes: Mapping[int, PlacementClass], matches: Matches, strict: bool
    ) -> Iterator[LiveLane]:
        share = self.share
        for lane in self.lanes.values():
            wanted = classes.get(lane.class_id)
            if wanted is None or wanted.task_type in share.paused_task_types or not matches.any(wanted):
                continue
            offset = lane_offset(lane.priority, share.weight, strict=strict)
            yield LiveLane(lane, wanted, offset)

    def demand(self, live: Iterable[LiveLane]) -> int:
        """How many of its tasks could start now."""
        waiting = sum(found.lane.backlog for found in live)
        claimable = self.share.claimable
        return waiting if claimable == UNLIMITED else min(waiting, claimable)


def _rank(found: LiveLane) -> float:
    return found.lane.head - found.offset


class Agenda:
    """All tenants with work, their shares, and the classes of their lanes."""

    def __init__(self, reservation_delay: float = RESERVATION_DELAY_SECONDS) -> None:
        self.reservations = Reservations(reservation_delay)
        self.classes: dict[int, PlacementClass] = {}
        self.tenants: dict[str, TenantAgenda] = {}
        # How many lanes with work each class has.
        self.busy: dict[int, int] = {}
        # Tenants without work; their share is kept until they have some.
        self._idle: dict[str, TenantAgenda] = {}
        self._revivals = 0
        self._changed: set[str] = set()
        self._standings = Standings()
        # The times until which tenants are blocked; outdated entries are dropped when they are due.
        self._blocked: list[tuple[float, str]] = []

    def standings(self, revivals: int, now: float) -> Standings:
        """The tenants whose turn may come; `revivals` are those of the matches."""
        if revivals != self._revivals:
            self._revivals = revivals
            for found in self.tenants.values():
                found.revive()
        while self._blocked and self._blocked[0][0] <= now:
            self._changed.add(heapq.heappop(self._blocked)[1])
        self._changed.update(self._standings.taken)
        self._standings.taken.clear()
        for name in self._changed:
            self._rank(name, now)
        self._changed.clear()
        return self._standings

    def _rank(self, tenant: str, now: float) -> None:
        found = self.tenants.get(tenant)
        if found is not None and found.blocked_until <= now:
            self._standings.put(tenant, found.account, now)
            return
        self._standings.remove(tenant)
        if found is not None and found.blocked_until < math.inf:
            heapq.heappush(self._blocked, (found.blocked_until, tenant))

    def tenant(self, tenant: str, now: float) -> TenantAgenda:
        """The agenda of a tenant, which has or is about to get work."""
        found = self.tenants.get(tenant)
        if found is None:
            found = self._idle.pop(tenant, None) or self._new(TenantShare(tenant), now)
            self.tenants[tenant] = found
        return found

    def share(self, tenant: str) -> TenantAgenda | None:
        """The agenda of a tenant, with work or without; None if unknown."""
        return self.tenants.get(tenant) or self._idle.get(tenant)

    def update_share(self, share: TenantShare, now: float) -> None:
        """Applies a share published by taskdb."""
        found = self.share(share.tenant)
        if found is None:
            self._idle[share.tenant] = self._new(share, now)
        else:
            found.update_share(share, now)

    def put(self, lane: Lane, now: float) -> None:
        """Adds or updates a lane with work."""
        if self.tenant(lane.tenant, now).put(lane):
            self.busy[lane.class_id] = self.busy.get(lane.class_id, 0) + 1

    def remove(self, tenant: str, lane_id: LaneId) -> bool:
        """Removes a lane without work; returns whether it existed."""
        found = self.tenants.get(tenant)
        if found is None or lane_id not in found.lanes:
            return False
        found.remove(lane_id)
        self.reservations.forget(tenant, lane_id)
        self._leave(lane_id[0])
        if not found.lanes:
            self._idle[tenant] = self.tenants.pop(tenant)
        return True

    def clear(self) -> None:
        """Clears everything except how long lanes have been passed over; a full update follows."""
        self.reservations.prune(self._has_lane)
        self._changed.clear()
        self._blocked.clear()
        self._standings = Standings()
        self.classes.clear()
        self.tenants.clear()
        self.busy.clear()
        self._idle.clear()

    def _has_lane(self, tenant: str, lane_id: LaneId) -> bool:
        found = self.tenants.get(tenant)
        return found is not None and lane_id in found.lanes

    def _new(self, share: TenantShare, now: float) -> TenantAgenda:
        return TenantAgenda(share, now, self._changed)

    def _leave(self, class_id: int) -> None:
        self.busy[class_id] -= 1
        if not self.busy[class_id]:
            del self.busy[class_id]
