"""The plan of one tick: how many tasks of which lanes each runner claims.

taskdb merges the lanes of a tenant by ready_time - offset, so a plan fixes counts and lanes, not tasks. The
counts spread few tasks over the least loaded of the preferred runners. The lanes are the best by head, since
the first n tasks can only be in the n lanes with the best heads. Work is visited in the order of the tenants'
turns and only while there is free capacity, so that the number of tenants and lanes costs little.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from taskyard_scheduler.domain.agenda import Agenda, Lane, LiveLane, TenantAgenda
from taskyard_scheduler.domain.fairness import Turns
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass, judge
from taskyard_scheduler.domain.reservations import LaneName
from taskyard_scheduler.domain.resources import Resources
from taskyard_scheduler.domain.rooms import Offer, Room

# Extra lanes listed beyond the number of tasks, because heads may be slightly outdated.
SPARE_LANES = 8
MAX_LANES = 1000


class ListedLane(NamedTuple):
    """A lane that a runner may take from, with its advantage in seconds and what one task costs."""

    lane: Lane
    offset: float
    cost: Resources


@dataclass(slots=True)
class TenantPlan:
    """What one runner claims of one tenant."""

    tenant: str
    count: int = 0
    lanes: list[ListedLane] = field(default_factory=list)


@dataclass(slots=True)
class RunnerPlan:
    """What one runner claims; tenants in the order in which they are served."""

    offer: Offer
    tenants: list[TenantPlan]
    # One task of a class that depends on running task types, which may change before it is sent.
    depends_on_running_types: bool = False

    @property
    def count(self) -> int:
        return sum(tenant.count for tenant in self.tenants)


# Whether a claimant may get tasks of this tenant and class now, beyond what its matches decide.
Permits = Callable[[str, str, PlacementClass], bool]
# The task types that a claimant executes.
Executing = Callable[[str], Collection[str]]
# Whether a claimant accepts work; it may be full.
AcceptsWork = Callable[[str], bool]


def _permit(key: str, tenant: str, wanted: PlacementClass) -> bool:
    return True


def _executes_nothing(key: str) -> Collection[str]:
    return ()


def _accepts_work(key: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of a plan besides the work: the claimants, and the capacity that tenants share."""

    matches: Matches
    capacity: int
    permits: Permits = _permit
    executing: Executing = _executes_nothing
    accepts_work: AcceptsWork = _accepts_work
    strict: bool = False


def make_plan(offers: Sequence[Offer], agenda: Agenda, situation: Situation, now: float) -> list[RunnerPlan]:
    """What each runner should claim; runners that get nothing are omitted."""
    situation.matches.revive()
    placing = _Placing(offers, agenda, situation, now)
    if not placing.open:
        return placing.plans()
    standings = agenda.standings(situation.matches.revivals, now)
    turns = Turns(standings, max(situation.capacity, placing.free), now)
    while turns and placing.free > 0 and placing.open:
        tenant, count = turns.next()
        requested = min(count, placing.free)
        count_placed = placing.give(tenant, requested)
        if count_placed < requested:
            turns.drop()
        else:
            turns.served(count_placed)
    return placing.plans()


@dataclass(slots=True)
class _Queue:
    """The live lanes of one tenant, what is left of each, and how many tasks it may still have."""

    lanes: list[LiveLane]
    left: list[int]
    allowed: int
    # Lanes before this one are placed, or no runner has free capacity for them.
    position: int = 0


# The rooms for a lane, as a heap of (-score, load, order, key); loads only grow during a plan.
_Heap = list[tuple[int, float, int, str]]


class _Placing:
    """Places tasks in rooms. `open` are the classes that some room may still take."""

    def __init__(self, offers: Sequence[Offer], agenda: Agenda, situation: Situation, now: float) -> None:
        ordered = sorted(offers, key=lambda offer: (offer.since, offer.key))
        self.rooms = {
            offer.key: Room(offer, n, offer.free, offer.budget)
            for n, offer in enumerate(ordered)
            if offer.free > 0
        }
        self._agenda = agenda
        self._situation = situation
        self._now = now
        self._limited = any(offer.limited for offer in offers)
        self._by_runner: dict[str, list[Room]] = {}
        for room in self.rooms.values():
            self._by_runner.setdefault(room.offer.runner_id, []).append(room)
        self._queues: dict[str, _Queue] = {}
        self._heaps: dict[tuple[int, str, str], _Heap] = {}
        # Rooms that lanes of a class and pin may use once they have drained.
        self._usable: dict[tuple[int, str, str], list[Room]] = {}
        if agenda.reservations:
            self._reserve()
        self.free = sum(room.free for room in self.rooms.values() if not room.closed)
        self.open = {class_id for class_id in agenda.busy if self._reachable(class_id)}

    def _reachable(self, class_id: int) -> bool:
        wanted = self._agenda.classes.get(class_id)
        if wanted is None:
            return False
        found = self._situation.matches.of(wanted)
        fewer, more = (found, self.rooms) if len(found) < len(self.rooms) else (self.rooms, found)
        return any(key in more and self.rooms[key].fits(wanted) for key in fewer)

    # ---- one tenant's turn

    def give(self, tenant: str, count: int) -> int:
        """Places up to `count` tasks of a tenant; returns how many. Fewer means that no more fit now."""
        queue = self._queues.get(tenant) or self._enqueue(tenant)
        count = min(count, queue.allowed)
        placed = 0
        while placed < count and queue.position < len(queue.lanes):
            index = queue.position
            requested = min(queue.left[index], count - placed)
            found = self._place(tenant, index, queue.lanes[index], requested)
            queue.left[index] -= found
            placed += found
            if requested:
                self._note(tenant, queue.lanes[index], found)
            if found < requested or not queue.left[index]:
                queue.position += 1
        queue.allowed -= placed
        self.free -= placed
        return placed

    def _enqueue(self, tenant: str) -> _Queue:
        found: TenantAgenda = self._agenda.tenants[tenant]
        situation = self._situation
        live = found.live(self._agenda.classes, situation.matches, situation.strict)
        queue = _Queue(live, [entry.lane.backlog for entry in live], found.demand(live))
        self._queues[tenant] = queue
        return queue

    def _place(self, tenant: str, index: int, entry: LiveLane, count: int) -> int:
        """Places up to `count` tasks of a lane in the best rooms; returns how many were placed."""
        lane, wanted = entry.lane, entry.wanted
        if count <= 0 or lane.class_id not in self.open:
            return 0
        heap = self._heap(tenant, lane, wanted)
        # Steps instead of single tasks keep a large count cheap and still even.
        step = max(1, count // (4 * len(heap))) if heap else 1
        left = count
        while left > 0 and heap:
            rank, load, order, key = heap[0]
            room = self.rooms[key]
            fits = room.fits(wanted)
            if not fits:
                heapq.heappop(heap)
            elif room.load > load:
                heapq.heapreplace(heap, (rank, room.load, order, key))
            else:
                count_placed = min(step, fits, left)
                room.take(wanted, tenant, index, count_placed)
                left -= count_placed
        if left and not lane.pinned and not (self._limited and self._reachable(lane.class_id)):
            self.open.discard(lane.class_id)
        return count - left

    def _heap(self, tenant: str, lane: Lane, wanted: PlacementClass) -> _Heap:
        key = (lane.class_id, lane.pinned, tenant if self._limited else "")
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = [
                (-score, room.load, room.order, room.offer.key)
                for score, room in self._fitting(tenant, lane, wanted)
            ]
            heapq.heapify(heap)
        return heap

    def _fitting(self, tenant: str, lane: Lane, wanted: PlacementClass) -> Iterator[tuple[int, Room]]:
        rooms = self._by_runner.get(lane.pinned, ()) if lane.pinned else self.rooms.values()
        claimants = self._situation.matches.of(wanted)
        for room in rooms:
            if room.offer.key not in claimants or not room.fits(wanted):
                continue
            score = self._score(room, tenant, wanted)
            if score is not None:
                yield score, room

    def _score(self, room: Room, tenant: str, wanted: PlacementClass) -> int | None:
        situation, key = self._situation, room.offer.key
        score = situation.matches.of(wanted).get(key)
        if score is None or (room.offer.limited and not situation.permits(key, tenant, wanted)):
            return None
        if not wanted.depends_on_running_types:
            return score
        verdict = judge(situation.matches.profiles[key], wanted, situation.executing(key))
        return verdict.score if verdict.eligible else None

    # ---- rooms that are held back

    def _note(self, tenant: str, entry: LiveLane, found: int) -> None:
        """Records the turn of a lane: it was placed, or passed over although a claimant could take it."""
        if not (entry.wanted.resources or entry.wanted.checks_running_types):
            return
        book, lane = self._agenda.reservations, entry.lane
        if found:
            book.forget(tenant, lane.id)
            return
        if self._find_usable(tenant, entry):
            book.pass_over(tenant, lane.id, self._now)

    def _reserve(self) -> None:
        """Uses or keeps the reserved rooms, then reserves others for the lanes that are due."""
        book = self._agenda.reservations
        for key, name in list(book.held.items()):
            self._keep(key, name)
        left = book.allowed(len(self._situation.matches.profiles))
        for name in book.line(self._now)[:MAX_LANES] if left > 0 else ():
            found = self._find(name)
            if found is None:
                continue
            usable = [r for r in self._find_usable(name[0], found[1]) if r.offer.key not in book.held]
            if usable:
                best = min(usable, key=lambda room: (room.lacks(found[1].wanted), room.load, room.order))
                book.reserve(best.offer.key, name)
                self._keep(best.offer.key, name)
                left -= 1
            if left <= 0:
                return

    def _keep(self, key: str, name: LaneName) -> None:
        """Starts the task for which a room is reserved if it fits now; otherwise keeps the reservation."""
        book, room = self._agenda.reservations, self.rooms.get(key)
        if room is None and self._situation.accepts_work(key):
            # The runner is full: there is nothing to decide.
            return
        found = self._find(name)
        if room is None or found is None or not self._may_use(key, name[0], found[1]):
            book.release(key)
            return
        (index, entry), queue = found, self._queues[name[0]]
        stalled = self._agenda.tenants[name[0]].blocked_until > self._now
        if stalled or not room.fits(entry.wanted) or self._score(room, name[0], entry.wanted) is None:
            room.hold(entry.wanted)
            return
        room.take(entry.wanted, name[0], index, 1)
        # Of the tenant's lanes this one has to be claimed from, whatever the order among them.
        room.closed = True
        queue.left[index] -= 1
        queue.allowed -= 1
        book.honour(key)

    def _find(self, name: LaneName) -> tuple[int, LiveLane] | None:
        """A lane that could be claimed from now, with its index among the lanes of its tenant."""
        tenant, lane_id = name
        found = self._agenda.tenants.get(tenant)
        if found is None or lane_id not in found.lanes or found.blocked_until == math.inf:
            return None
        queue = self._queues.get(tenant) or self._enqueue(tenant)
        for index, entry in enumerate(queue.lanes):
            if entry.lane.id == lane_id:
                return (index, entry) if queue.allowed > 0 and queue.left[index] > 0 else None
        return None

    def _find_usable(self, tenant: str, entry: LiveLane) -> list[Room]:
        """The rooms that may take the lane once they have drained."""
        lane = entry.lane
        kind = (lane.class_id, lane.pinned, tenant if self._limited else "")
        if kind not in self._usable:
            matching = self._situation.matches.of(entry.wanted)
            keys = matching if len(matching) < len(self.rooms) else self.rooms
            self._usable[kind] = [
                self.rooms[key] for key in keys if key in self.rooms and self._may_use(key, tenant, entry)
            ]
        return self._usable[kind]

    def _may_use(self, key: str, tenant: str, entry: LiveLane) -> bool:
        """Whether a claimant may take a task of the lane once enough of its running tasks have ended."""
        situation, (lane, wanted, _) = self._situation, entry
        if key not in situation.matches.of(wanted) or not situation.accepts_work(key):
            return False
        profile = situation.matches.profiles[key]
        if lane.pinned and lane.pinned != profile.runner_id:
            return False
        if not wanted.required.met_by(profile, situation.executing(key)):
            return False
        return situation.permits(key, tenant, wanted)

    # ---- the result

    def plans(self) -> list[RunnerPlan]:
        """The tasks placed in each room; tenants in the order of their first turn."""
        return [
            RunnerPlan(
                room.offer,
                [
                    TenantPlan(tenant, room.taken[tenant], self._lanes_for(room, tenant))
                    for tenant in room.taken
                ],
                room.closed,
            )
            for room in self.rooms.values()
            if room.taken
        ]

    def _lanes_for(self, room: Room, tenant: str) -> list[ListedLane]:
        """The lanes a runner lists: those placed on it, and lanes with more tasks than all runners take."""
        queue = self._queues[tenant]
        placed = set(room.lanes[tenant])
        spare = 0 if room.closed else room.taken[tenant] + SPARE_LANES
        listed: list[ListedLane] = []
        for index, entry in enumerate(queue.lanes):
            if len(listed) >= MAX_LANES or not (placed or spare):
                break
            if index in placed:
                placed.discard(index)
            elif spare and self._shares(room, tenant, queue.left[index], entry):
                spare -= 1
            else:
                continue
            listed.append(ListedLane(entry.lane, entry.offset, entry.wanted.resources))
        return listed

    def _shares(self, room: Room, tenant: str, left: int, entry: LiveLane) -> bool:
        """Whether the runner may take of a lane that has more than was placed."""
        lane, wanted = entry.lane, entry.wanted
        if (
            left <= 0
            or wanted.depends_on_running_types
            or (lane.pinned and lane.pinned != room.offer.runner_id)
        ):
            return False
        if wanted.task_type in room.barred:
            return False
        return self._score(room, tenant, wanted) is not None
