"""Large tasks, or tasks that avoid others, beside a stream of small ones: bounded wait at bounded cost."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from services.scheduler.tests.placing import agenda_of, labels, lane, offer, profile, wanted
from taskyard_scheduler.domain.agenda import Agenda, Lane
from taskyard_scheduler.domain.fairness import DEBT_SECONDS, TenantShare
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import Constraint, PlacementClass
from taskyard_scheduler.domain.plan import ListedLane, RunnerPlan, Situation, make_plan
from taskyard_scheduler.domain.reservations import (
    RESERVATION_DELAY_SECONDS,
    RUNNERS_PER_RESERVATION,
    Reservations,
)
from taskyard_scheduler.domain.resources import NO_RESOURCES, Resources
from taskyard_scheduler.domain.rooms import Offer

CORE = 1000
NEVER = 1e9


def cores(count: float, **fields: Any) -> Resources:
    return Resources(cpu_millis=int(count * CORE), **fields)


@dataclass
class Work:
    """Tasks of one lane: a stream that never ends, or so many at a time."""

    tenant: str
    wanted: PlacementClass
    seconds: float
    priority: int = 10
    count: int = 0
    start: float = 0.0
    waiting: deque[float] = field(default_factory=deque)
    # How long each waited.
    waits: list[float] = field(default_factory=list)

    @property
    def stream(self) -> bool:
        return not self.count

    @property
    def lane_id(self) -> tuple[int, int, str]:
        return (self.wanted.class_id, self.priority, "")


@dataclass
class Simulation:
    """Runners with resources in virtual time: the production plan, and claims merged as by taskdb."""

    runners: dict[str, Resources]
    work: list[Work]
    weights: dict[str, int] = field(default_factory=dict)
    reservation_delay: float = RESERVATION_DELAY_SECONDS
    places: int = 8
    seed: int = 1
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.now = 0.0
        self.agenda = Agenda(self.reservation_delay)
        self.matches = Matches()
        self.budgets = dict(self.runners)
        self.types: dict[str, Counter[str]] = {name: Counter() for name in self.runners}
        self.running: Counter[str] = Counter()
        self.busy = dict.fromkeys(self.runners, 0.0)
        self.most_held = 0
        self.served: set[tuple[str, tuple[int, int, str]]] = set()
        self._by_lane = {(found.tenant, found.lane_id): found for found in self.work}
        self._ends: list[tuple[float, int, str, Work]] = []
        self._numbers = itertools.count()
        for name, amount in self.runners.items():
            made = profile(name, capacity=self.places, resources=amount, **self.profiles.get(name, {}))
            self.matches.put(name, made)
        for found in self.work:
            self.agenda.classes[found.wanted.class_id] = found.wanted
            weight = self.weights.get(found.tenant, 1)
            self.agenda.update_share(TenantShare(found.tenant, weight), 0.0)

    def run(self, until: float) -> None:
        arrivals = sorted({found.start for found in self.work})
        while self.now < until:
            self._arrive()
            while self._tick():
                pass
            held = self.agenda.reservations.held
            self.most_held = max(self.most_held, len(held))
            self.served.update(held.values())
            ends = self._ends[0][0] if self._ends else until
            self._pass(min([ends, until, *(time for time in arrivals if time > self.now)]) - self.now)
            while self._ends and self._ends[0][0] <= self.now:
                self._end()

    def _pass(self, seconds: float) -> None:
        for name, amount in self.runners.items():
            self.busy[name] += seconds * (amount.cpu_millis - self.budgets[name].cpu_millis)
        self.now += seconds

    def _arrive(self) -> None:
        for found in self.work:
            if found.start > self.now:
                continue
            while found.stream and len(found.waiting) < 20:
                found.waiting.append(self.now)
            if found.count and not found.waits and not found.waiting:
                found.waiting.extend([self.now] * found.count)
            self._publish(found)

    def _publish(self, found: Work) -> None:
        if found.waiting:
            head, backlog = found.waiting[0], len(found.waiting)
            self.agenda.put(Lane(found.tenant, *found.lane_id, head, backlog), self.now)
        else:
            self.agenda.remove(found.tenant, found.lane_id)

    def _tick(self) -> int:
        offers = [
            Offer(name, name, self.places - used, used, self.places, self.budgets[name])
            for name in self.runners
            if (used := self.types[name].total()) < self.places
        ]
        situation = Situation(
            self.matches,
            self.places * len(self.runners),
            executing=lambda key: {name for name, count in self.types[key].items() if count},
        )
        return sum(self._claim(plan) for plan in make_plan(offers, self.agenda, situation, self.now))

    def _claim(self, plan: RunnerPlan) -> int:
        """What taskdb gives: per tenant the smallest ready_time - offset first, as far as the budget goes."""
        budget, started = plan.offer.budget, 0
        assert budget is not None
        for part in plan.tenants:
            for _ in range(part.count):
                fitting = [
                    (self._by_lane[part.tenant, listed.lane.id].waiting[0] - listed.offset, n, listed)
                    for n, listed in enumerate(part.lanes)
                    if self._by_lane[part.tenant, listed.lane.id].waiting and affords(budget, listed)
                ]
                if fitting:
                    listed = min(fitting)[2]
                    budget = budget.less(listed.cost)
                    self._start(plan.offer.key, self._by_lane[part.tenant, listed.lane.id])
                    started += 1
        return started

    def _start(self, runner: str, found: Work) -> None:
        cost = found.wanted.resources
        assert self.budgets[runner].holds(cost), "more was given than is free"
        assert found.wanted.avoid.task_types.isdisjoint(+self.types[runner]), "an avoided type is running"
        found.waits.append(self.now - found.waiting.popleft())
        self.budgets[runner] = self.budgets[runner].less(cost)
        self.types[runner][found.wanted.task_type] += 1
        self._charge(found.tenant, 1)
        self._publish(found)
        seconds = found.seconds * self.rng.uniform(0.5, 1.0)
        heapq.heappush(self._ends, (self.now + seconds, next(self._numbers), runner, found))

    def _end(self) -> None:
        _, _, runner, found = heapq.heappop(self._ends)
        self.budgets[runner] = self.budgets[runner].less(found.wanted.resources, -1)
        self.types[runner][found.wanted.task_type] -= 1
        self._charge(found.tenant, -1)

    def _charge(self, tenant: str, count: int) -> None:
        share = self.agenda.share(tenant)
        assert share is not None
        share.claim(count, self.now)

    def used(self) -> float:
        """The part of all cores that was in use."""
        total = sum(amount.cpu_millis for amount in self.runners.values())
        return sum(self.busy.values()) / (total * self.now)


def affords(budget: Resources, listed: ListedLane) -> bool:
    # Never below 0 on the way to taskdb.
    return all(max(0, has) >= needed for has, needed in budget._pairs(listed.cost) if needed)


def bound(longest: float, *, ahead: int = 0, rounds: int = 1) -> float:
    """Decision 0010: its turn, the delay, and twice the longest task per reservation up to its own."""
    return DEBT_SECONDS + 2 * longest + RESERVATION_DELAY_SECONDS + 2 * longest * rounds * (1 + ahead)


SMALL = wanted(1, task_type="small", resources=cores(1))


def stream(tenant: str = "t", seconds: float = 3.0, **fields: Any) -> Work:
    return Work(tenant, **{"wanted": SMALL, "seconds": seconds, **fields})


LARGE = wanted(2, resources=cores(4))
APART = wanted(3, avoid=Constraint(task_types=frozenset({"small"})))


@pytest.mark.parametrize("large", [LARGE, APART], ids=["needs all cores", "avoids the type of the stream"])
@pytest.mark.parametrize("tenant", ["t", "u"], ids=["of the same tenant", "of another tenant"])
def test_a_task_that_no_gap_is_large_enough_for_starts_within_the_bound(
    large: PlacementClass, tenant: str
) -> None:
    def simulation(reservation_delay: float) -> tuple[Simulation, Work]:
        rare = Work(tenant, large, 3.0, count=3, start=20.0)
        return Simulation(
            {"a": cores(4), "b": cores(4)}, [stream(), rare], reservation_delay=reservation_delay
        ), rare

    starved, rare = simulation(NEVER)
    starved.run(400.0)
    assert rare.waits == [], "without a reservation it never starts"
    site, rare = simulation(RESERVATION_DELAY_SECONDS)
    site.run(200.0)
    assert len(rare.waits) == 3
    for ahead, waited in enumerate(rare.waits):
        assert RESERVATION_DELAY_SECONDS <= waited <= bound(3.0, ahead=ahead)
    assert site.used() > 0.9 * starved.used()


@pytest.mark.parametrize("seed", range(3))
def test_every_class_and_priority_starts_within_the_bound_and_most_runners_stay_busy(seed: int) -> None:
    gpu = {"gpu": 1}
    runners = {f"r{n}": cores(8, memory_mb=8000, extended=gpu if n < 3 else {}) for n in range(8)}
    streams = [
        stream("a", 4.0),
        stream("b", 2.0, wanted=wanted(11, resources=cores(2, memory_mb=1500)), priority=20),
        stream("b", 2.0, wanted=wanted(12, resources=Resources(memory_mb=500, extended=gpu)), priority=20),
        stream("c", 4.0, wanted=wanted(13, resources=cores(0.5, memory_mb=250)), priority=5),
    ]
    large = [
        Work("a", wanted(21, resources=cores(8)), 4.0, priority=10, count=2, start=30.0),
        Work("b", wanted(22, resources=cores(6, memory_mb=6000)), 4.0, priority=10, count=2, start=30.0),
        Work("c", wanted(23, resources=cores(4, memory_mb=8000)), 4.0, priority=1, count=2, start=40.0),
        Work("d", wanted(24, resources=cores(7, extended=gpu)), 4.0, priority=1, count=2, start=50.0),
        Work("d", wanted(25, required=labels(zone="eu"), resources=cores(8)), 4.0, count=1, start=50.0),
    ]
    zones = {"r5": {"labels": {"zone": "eu"}}}
    weights = {"a": 10, "b": 1, "c": 1, "d": 1}
    site = Simulation(runners, [*streams, *large], weights, places=16, seed=seed, profiles=zones)
    site.run(400.0)
    allowed = len(runners) // RUNNERS_PER_RESERVATION
    assert site.most_held <= allowed
    for found in large:
        assert len(found.waits) == found.count, found
        # A priority of 10 against 20 is worth two minutes of waiting, of 1 against 5 with less.
        aged = 12.0 * (20 - found.priority) if found.tenant in "bc" else 0.0
        rounds = math.ceil(len(large) / allowed)
        for ahead, waited in enumerate(found.waits):
            assert waited <= aged + bound(4.0, ahead=ahead, rounds=rounds), found
    assert site.used() > 0.75


def test_many_large_lanes_of_one_tenant_do_not_delay_another_tenant() -> None:
    greedy = [Work("g", wanted(100 + n, resources=cores(4, disk_mb=n)), 3.0, count=20) for n in range(10)]
    modest = Work("m", LARGE, 3.0, count=1, start=60.0)
    runners = {name: cores(4, disk_mb=100) for name in "abcd"}
    site = Simulation(runners, [stream("s"), *greedy, modest], {"s": 10})
    site.run(260.0)
    assert modest.waits and modest.waits[0] <= bound(3.0, rounds=2)
    assert site.most_held == 1
    assert site.used() > 0.7


def test_lane_that_is_served_now_and_then_gets_no_reservation() -> None:
    pair = Work("t", wanted(2, resources=cores(2)), 1.0, count=800, start=5.0)
    wide = stream(seconds=1.0, wanted=wanted(3, resources=cores(3)))
    site = Simulation({name: cores(16) for name in "abcd"}, [stream(seconds=1.0), wide, pair], places=32)
    site.run(5.0 + 2 * RESERVATION_DELAY_SECONDS)
    assert max(pair.waits) > RESERVATION_DELAY_SECONDS, "it is busy for longer than that"
    assert ("t", pair.lane_id) not in site.served


# ---- one plan


class Single:
    """Lanes and runners for plans one after another."""

    def __init__(self, lanes: list[Lane], classes: list[PlacementClass], **runners: Resources) -> None:
        self.agenda = agenda_of(lanes, classes)
        self.agenda.reservations = Reservations(10.0)
        self.matches = Matches()
        for name, amount in runners.items():
            self.matches.put(name, profile(name, resources=amount))

    def plan(self, now: float, *offers: Offer, **situation: Any) -> dict[str, RunnerPlan]:
        made = make_plan(list(offers), self.agenda, Situation(self.matches, 8, **situation), now)
        return {plan.offer.key: plan for plan in made}

    @property
    def held(self) -> dict[str, Any]:
        return self.agenda.reservations.held


def listed(plan: RunnerPlan) -> list[int]:
    return [found.lane.class_id for part in plan.tenants for found in part.lanes]


FREE = wanted(5, resources=NO_RESOURCES)


def test_reserved_runner_offers_others_what_the_lane_does_not_need() -> None:
    lanes = [lane(2, 1), lane(1, 50, head=5.0), lane(5, 50, head=6.0)]
    site = Single(lanes, [SMALL, LARGE, FREE], a=cores(4, memory_mb=100))
    site.plan(0.0, offer("a", 2, budget=cores(2)))
    plan = site.plan(10.0, offer("a", 2, budget=cores(2)))["a"]
    assert site.held == {"a": ("t", (2, 0, ""))}
    assert plan.count == 1, "one place is for the lane"
    assert plan.offer.budget is not None and plan.offer.budget.cpu_millis < 0, "and every core"
    assert 5 in listed(plan)
    plan = site.plan(11.0, offer("a", 4, budget=cores(4)))["a"]
    assert (plan.count, listed(plan)) == (1, [2]), "once it fits it is claimed alone"
    assert site.held == {}


def test_among_runners_the_one_is_held_back_that_lacks_least() -> None:
    site = Single([lane(2, 1), lane(1, 50, head=5.0)], [SMALL, LARGE], a=cores(8), b=cores(8), c=cores(2))
    offers = [offer("a", 4, budget=cores(1)), offer("b", 4, budget=cores(3)), offer("c", 4, budget=cores(2))]
    site.plan(0.0, *offers)
    plans = site.plan(10.0, *offers)
    assert list(site.held) == ["b"]
    assert set(plans) == {"a", "c"}


def starving(*runners: str) -> Single:
    """A lane for which the first of these runners is held back."""
    site = Single([lane(2, 1), lane(1, 50, head=5.0)], [SMALL, LARGE], **dict.fromkeys(runners, cores(4)))
    for now in (0.0, 10.0):
        site.plan(now, offer(runners[0], 1, budget=cores(1)))
    assert list(site.held) == [runners[0]]
    return site


def test_reservation_is_released_when_its_lane_is_empty() -> None:
    site = starving("a")
    site.agenda.remove("t", (2, 0, ""))
    assert site.held == {}
    assert site.plan(11.0, offer("a", 1, budget=cores(1)))["a"].count == 1


def test_reserved_runner_that_stops_accepting_work_is_replaced() -> None:
    site = starving("a", "b")
    site.plan(11.0, offer("b", 1, budget=cores(1)), accepts_work=lambda key: key != "a")
    assert list(site.held) == ["b"]


def test_full_runner_keeps_its_reservation() -> None:
    site = starving("a", "b")
    site.plan(11.0, offer("b", 1, budget=cores(1)))
    assert list(site.held) == ["a"]


def test_a_tenant_that_may_claim_nothing_holds_nothing_back() -> None:
    site = starving("a")
    site.agenda.update_share(TenantShare("t", claimable=0), 11.0)
    site.plan(11.0, offer("a", 1, budget=cores(1)))
    assert site.held == {}


def test_how_long_a_lane_was_passed_over_outlives_a_full_scan() -> None:
    site = starving("a")
    site.agenda.clear()
    site.agenda.classes.update({1: SMALL, 2: LARGE})
    for found in (lane(2, 1), lane(1, 50, head=5.0)):
        site.agenda.put(found, 12.0)
    assert site.plan(12.0, offer("a", 1, budget=cores(1))) == {}
    assert list(site.held) == ["a"]
