"""What there is to do, by tenant: lanes with work, and among them those that somebody connected may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from taskyard_scheduler.domain.fairness import UNLIMITED, Account, TenantShare, lane_offset
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass

# (class, priority, pinned runner): a lane within its tenant.
LaneId = tuple[int, int, str]


@dataclass(slots=True)
class Lane:
    """A lane with claimable work, as far as it is known here; `heard` is when, by the agenda's count."""

    tenant: str
    class_id: int
    priority: int
    pinned: str
    head: float
    backlog: int
    heard: int = 0

    @property
    def id(self) -> LaneId:
        return (self.class_id, self.priority, self.pinned)


class LiveLane(NamedTuple):
    """A lane that somebody may take; the smallest rank goes first."""

    rank: float
    lane: Lane
    wanted: PlacementClass
    offset: float


class TenantAgenda:
    """One tenant's lanes, its share, and which of the lanes are live, worked out when it is asked for."""

    __slots__ = ("_live", "_revivals", "account", "lanes", "share", "stalled_until")

    def __init__(self, share: TenantShare, now: float) -> None:
        self.lanes: dict[LaneId, Lane] = {}
        self._live: list[LiveLane] | None = None
        self._revivals = -1
        self.tell(share, now)

    def tell(self, share: TenantShare, now: float) -> None:
        """taskdb described the tenant."""
        self.share = share
        self.account = Account(max(1, share.weight), share.usage, share.held, now)
        self.stalled_until = 0.0
        self._live = None

    def changed(self) -> None:
        """A lane came, went or moved."""
        self._live = None

    @property
    def may_claim(self) -> bool:
        return not self.share.paused and self.share.claimable != 0

    def idle(self, matches: Matches) -> bool:
        """Whether it is known that nobody may take any of its lanes."""
        return self._live == [] and self._revivals == matches.revivals

    def live(self, classes: Mapping[int, PlacementClass], matches: Matches, strict: bool) -> list[LiveLane]:
        """The lanes that somebody may take, best first."""
        if self._live is None or self._revivals != matches.revivals:
            self._live = sorted(self._choose(classes, matches, strict), key=_rank)
            self._revivals = matches.revivals
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
            yield LiveLane(lane.head - offset, lane, wanted, offset)

    def demand(self, live: Iterable[LiveLane]) -> int:
        """How many of its tasks could start now."""
        waiting = sum(found.lane.backlog for found in live)
        claimable = self.share.claimable
        return waiting if claimable == UNLIMITED else min(waiting, claimable)


def _rank(found: LiveLane) -> float:
    return found.rank


class Agenda:
    """All tenants with work, their shares, and the classes of their lanes."""

    def __init__(self) -> None:
        self.classes: dict[int, PlacementClass] = {}
        self.tenants: dict[str, TenantAgenda] = {}
        # How many lanes with work each class has.
        self.busy: dict[int, int] = {}
        # Tenants without work: their share is kept for when they have some.
        self._resting: dict[str, TenantAgenda] = {}

    def tenant(self, tenant: str, now: float) -> TenantAgenda:
        """The agenda of a tenant, which has or is about to get work."""
        found = self.tenants.get(tenant)
        if found is None:
            found = self._resting.pop(tenant, None) or TenantAgenda(TenantShare(tenant), now)
            self.tenants[tenant] = found
        return found

    def share(self, tenant: str) -> TenantAgenda | None:
        """What is known of a tenant, with work or without."""
        return self.tenants.get(tenant) or self._resting.get(tenant)

    def tell(self, share: TenantShare, now: float) -> None:
        """taskdb described a tenant."""
        found = self.share(share.tenant)
        if found is None:
            self._resting[share.tenant] = TenantAgenda(share, now)
        else:
            found.tell(share, now)

    def put(self, lane: Lane, now: float) -> None:
        """A lane has work."""
        found = self.tenant(lane.tenant, now)
        if lane.id not in found.lanes:
            self.busy[lane.class_id] = self.busy.get(lane.class_id, 0) + 1
        found.lanes[lane.id] = lane
        found.changed()

    def remove(self, tenant: str, lane_id: LaneId) -> bool:
        """A lane has no work any more; whether it was known."""
        found = self.tenants.get(tenant)
        if found is None or lane_id not in found.lanes:
            return False
        del found.lanes[lane_id]
        found.changed()
        self._leave(lane_id[0])
        if not found.lanes:
            self._resting[tenant] = self.tenants.pop(tenant)
        return True

    def clear(self) -> None:
        """Forget everything."""
        self.classes.clear()
        self.tenants.clear()
        self.busy.clear()
        self._resting.clear()

    def _leave(self, class_id: int) -> None:
        self.busy[class_id] -= 1
        if not self.busy[class_id]:
            del self.busy[class_id]
