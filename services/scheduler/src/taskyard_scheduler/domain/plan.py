"""The plan of one tick: which runner asks for how many tasks of which lanes.

taskdb merges the lanes of a tenant by ready_time - offset, so a plan fixes counts and lanes, not tasks. The
counts spread few tasks over the least loaded of the preferred runners; the lanes are the best by head, since
the n tasks that go first can only lie in the n lanes with the best heads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from taskyard_scheduler.domain.fairness import UNLIMITED, Demand, TenantShare, divide, lane_offset
from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.domain.resources import Resources

# Lanes listed beyond the number of tasks asked for, because heads are known a little late.
SPARE_LANES = 8
MAX_LANES = 1000


@dataclass(slots=True)
class Lane:
    """A lane with claimable work, as far as it is known here."""

    tenant: str
    class_id: int
    priority: int
    pinned: str
    head: float
    backlog: int

    @property
    def class_key(self) -> ClassKey:
        return (self.tenant, self.class_id)

    @property
    def id(self) -> LaneId:
        return (self.class_id, self.priority, self.pinned)


ClassKey = tuple[str, int]
# (class, priority, pinned runner): a lane within its tenant.
LaneId = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """What one runner, or one waiting claim of a pull worker, could take now."""

    key: str
    runner_id: str
    free: int
    used: int
    capacity: int
    budget: Resources | None = None


class ListedLane(NamedTuple):
    """A lane that a runner may take from, with its advantage in seconds and what one task costs."""

    lane: Lane
    offset: float
    cost: Resources


@dataclass(slots=True)
class TenantPlan:
    """What one runner takes of one tenant."""

    tenant: str
    count: int = 0
    lanes: list[ListedLane] = field(default_factory=list)


@dataclass(slots=True)
class RunnerPlan:
    """What one runner asks for; tenants in the order in which they are served."""

    offer: Offer
    tenants: list[TenantPlan]

    @property
    def count(self) -> int:
        return sum(tenant.count for tenant in self.tenants)


# The score of a runner for a class, None if it may not take it.
Scores = Callable[[str, PlacementClass], int | None]


@dataclass(slots=True)
class _Room:
    """An offer while it is being filled."""

    offer: Offer
    free: int
    budget: Resources | None
    taken: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, list[int]] = field(default_factory=dict)
    # Filled by a class that looks at what the runner executes: nothing goes with it.
    closed: bool = False

    @property
    def load(self) -> float:
        given = self.offer.free - self.free
        return (self.offer.used + given) / max(1, self.offer.capacity)

    def fits(self, wanted: PlacementClass) -> int:
        if self.closed or self.free <= 0:
            return 0
        if wanted.moody:
            return 0 if self.taken else 1
        if self.budget is None or not wanted.resources:
            return self.free
        return self.budget.times(wanted.resources, self.free)

    def take(self, wanted: PlacementClass, tenant: str, lane: int, count: int) -> None:
        self.free -= count
        self.taken[tenant] = self.taken.get(tenant, 0) + count
        listed = self.lanes.setdefault(tenant, [])
        if not listed or listed[-1] != lane:
            listed.append(lane)
        if self.budget is not None and wanted.resources:
            self.budget = self.budget.less(wanted.resources, count)
        self.closed = self.closed or wanted.moody


@dataclass(slots=True)
class _Queue:
    """The lanes of one tenant that some offer may take, best first, and what is left of each."""

    share: TenantShare
    lanes: list[tuple[float, Lane, PlacementClass]]
    left: list[int]
    demand: int
    placed: int = 0


def make_plan(
    offers: Sequence[Offer],
    lanes: Mapping[str, Sequence[Lane]],
    shares: Mapping[str, TenantShare],
    classes: Mapping[ClassKey, PlacementClass],
    score: Scores,
    *,
    strict: bool = False,
) -> list[RunnerPlan]:
    """What each runner should ask for; runners that get nothing are left out."""
    rooms = {offer.key: _Room(offer, offer.free, offer.budget) for offer in offers if offer.free > 0}
    if not rooms:
        return []
    matcher = _Matcher(rooms, score)
    queues = [
        queue
        for tenant, found in lanes.items()
        if (queue := _queue(found, shares.get(tenant) or TenantShare(tenant), classes, matcher, strict))
    ]
    capacity = sum(room.free for room in rooms.values())
    parts = divide(capacity, [Demand(queue.share, queue.demand) for queue in queues])
    by_tenant = {queue.share.tenant: queue for queue in queues}
    _fill(by_tenant, parts, matcher)
    if any(room.free > 0 for room in rooms.values()):
        # Capacity that one tenant's part could not use because of its selectors goes to whoever can.
        rest = {tenant: by_tenant[tenant].demand - by_tenant[tenant].placed for tenant in parts}
        _fill(by_tenant, rest, matcher)
    return [
        _runner_plan(room, list(parts), by_tenant, matcher, strict) for room in rooms.values() if room.taken
    ]


class _Matcher:
    """The offers that may take a lane, with their score; asked once per class in a plan."""

    def __init__(self, rooms: Mapping[str, _Room], score: Scores) -> None:
        self._rooms = rooms
        self._score = score
        self._found: dict[ClassKey, dict[str, int]] = {}

    def of(self, lane: Lane, wanted: PlacementClass) -> dict[str, int]:
        found = self._found.get(lane.class_key)
        if found is None:
            found = {key: s for key in self._rooms if (s := self._score(key, wanted)) is not None}
            self._found[lane.class_key] = found
        if lane.pinned:
            return {k: s for k, s in found.items() if self._rooms[k].offer.runner_id == lane.pinned}
        return found

    def rooms(self, lane: Lane, wanted: PlacementClass) -> list[tuple[int, _Room]]:
        return [(score, self._rooms[key]) for key, score in self.of(lane, wanted).items()]


def _queue(
    lanes: Sequence[Lane],
    share: TenantShare,
    classes: Mapping[ClassKey, PlacementClass],
    matcher: _Matcher,
    strict: bool,
) -> _Queue | None:
    if share.paused or share.claimable == 0:
        return None
    found: list[tuple[float, Lane, PlacementClass]] = []
    for lane in lanes:
        wanted = classes.get(lane.class_key)
        if wanted is None or lane.backlog <= 0 or wanted.task_type in share.paused_task_types:
            continue
        if matcher.of(lane, wanted):
            offset = lane_offset(lane.priority, share.weight, strict=strict)
            found.append((lane.head - offset, lane, wanted))
    if not found:
        return None
    found.sort(key=lambda entry: entry[0])
    left = [lane.backlog for _, lane, _ in found]
    demand = sum(left) if share.claimable == UNLIMITED else min(sum(left), share.claimable)
    return _Queue(share, found, left, demand)


def _fill(queues: Mapping[str, _Queue], parts: Mapping[str, int], matcher: _Matcher) -> None:
    for tenant, part in parts.items():
        queue = queues[tenant]
        for index, (_, lane, wanted) in enumerate(queue.lanes):
            if part <= 0:
                break
            placed = _place(min(queue.left[index], part), index, lane, wanted, matcher)
            queue.left[index] -= placed
            queue.placed += placed
            part -= placed


def _place(count: int, index: int, lane: Lane, wanted: PlacementClass, matcher: _Matcher) -> int:
    """Put up to `count` tasks of a lane onto rooms; how many found one."""
    fitting = [(score, room, n) for score, room in matcher.rooms(lane, wanted) if (n := room.fits(wanted))]
    space = sum(n for _, _, n in fitting)
    if count <= 0 or not fitting:
        return 0
    if space <= count:
        for _, room, n in fitting:
            room.take(wanted, lane.tenant, index, n)
        return space
    # Steps instead of single tasks keep a large count cheap and still even.
    step = max(1, count // (4 * len(fitting)))
    heap = [(-score, room.load, i, n) for i, (score, room, n) in enumerate(fitting)]
    heapq.heapify(heap)
    left = count
    while left > 0 and heap:
        rank, _, i, n = heapq.heappop(heap)
        given = min(step, n, left)
        room = fitting[i][1]
        room.take(wanted, lane.tenant, index, given)
        left -= given
        if n > given:
            heapq.heappush(heap, (rank, room.load, i, n - given))
    return count - left


def _runner_plan(
    room: _Room, order: Sequence[str], queues: Mapping[str, _Queue], matcher: _Matcher, strict: bool
) -> RunnerPlan:
    tenants = []
    for tenant in order:
        count = room.taken.get(tenant, 0)
        if count:
            lanes = _lanes_for(room, count, queues[tenant], matcher, strict)
            tenants.append(TenantPlan(tenant, count, lanes))
    return RunnerPlan(room.offer, tenants)


def _lanes_for(room: _Room, count: int, queue: _Queue, matcher: _Matcher, strict: bool) -> list[ListedLane]:
    """The lanes a runner lists: those placed on it, and those that the runners together could not take up."""
    placed = set(room.lanes[queue.share.tenant])
    spare = count + SPARE_LANES
    listed: list[ListedLane] = []
    for index, (_, lane, wanted) in enumerate(queue.lanes):
        if len(listed) >= MAX_LANES:
            break
        if index not in placed:
            shared = spare > 0 and queue.left[index] > 0 and not room.closed and not wanted.moody
            if not shared or room.offer.key not in matcher.of(lane, wanted):
                continue
            spare -= 1
        offset = lane_offset(lane.priority, queue.share.weight, strict=strict)
        listed.append(ListedLane(lane, offset, wanted.resources))
    return listed
