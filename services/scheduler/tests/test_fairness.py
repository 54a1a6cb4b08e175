"""Fairness between tenants: turns by weight and usage, bounded waits, no delay by unplaceable work."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from services.scheduler.tests.placing import counts, labels, lane, offer, planned, profile, wanted
from taskyard_scheduler.domain.agenda import Agenda, Lane
from taskyard_scheduler.domain.fairness import (
    AHEAD_SECONDS,
    DEBT_SECONDS,
    HALF_LIFE_SECONDS,
    UNLIMITED,
    Account,
    Standings,
    TenantShare,
    Turns,
    decay,
    lane_offset,
)
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.domain.plan import Situation, make_plan
from taskyard_scheduler.domain.rooms import Offer

SHARE_SECONDS = 2.0


def standings(accounts: dict[str, Account]) -> Standings:
    made = Standings()
    for tenant, found in accounts.items():
        made.put(tenant, found, 0.0)
    return made


def divide(free: int, accounts: dict[str, Account], demands: dict[str, int]) -> dict[str, int]:
    """Who gets how much, by turns."""
    turns = Turns(standings(accounts), free, 0.0)
    left, parts = dict(demands), dict.fromkeys(demands, 0)
    while turns and free > 0:
        tenant, count = turns.next()
        requested = min(count, free)
        given = min(requested, left[tenant])
        parts[tenant] += given
        left[tenant] -= given
        free -= given
        if given < requested:
            turns.drop()
        else:
            turns.served(given)
    return parts


def account(weight: int = 1, usage: float = 0.0, held: int = 0) -> Account:
    return Account(weight, usage, held, 0.0)


def test_free_capacity_is_divided_by_weight() -> None:
    parts = divide(60, {"a": account(1), "b": account(2)}, {"a": 1000, "b": 1000})
    assert parts == {"a": 20, "b": 40}


def test_unused_share_of_a_small_demand_goes_to_other_tenants() -> None:
    accounts = {"a": account(), "b": account(), "c": account()}
    assert divide(90, accounts, {"a": 5, "b": 1000, "c": 20}) == {"a": 5, "b": 65, "c": 20}


def test_leases_already_held_count_towards_the_share() -> None:
    parts = divide(10, {"a": account(held=10), "b": account()}, {"a": 99, "b": 99})
    assert parts == {"a": 0, "b": 10}


def test_a_single_place_goes_to_the_tenant_that_used_least_for_its_weight() -> None:
    accounts = {"a": account(1, 10), "b": account(10, 50), "c": account(1, 6)}
    assert divide(1, accounts, dict.fromkeys(accounts, 9)) == {"a": 0, "b": 1, "c": 0}


def test_old_usage_does_not_delay_a_tenant_for_long() -> None:
    capacity = 100
    accounts = {"glutton": account(1, usage=1e9), "newcomer": account(1)}
    turns = Turns(standings(accounts), capacity, 0.0)
    served = 0
    while turns.next()[0] == "newcomer":
        served += turns.next()[1]
        turns.served(turns.next()[1])
    # Two tenants of one weight: half of the debt's time of the whole capacity, in places of AHEAD_SECONDS.
    assert served <= DEBT_SECONDS * capacity / 2 / AHEAD_SECONDS + 1


@pytest.mark.parametrize("seed", range(20))
def test_turns_from_cached_standings_equal_those_from_new_ones(seed: int) -> None:
    rng = random.Random(seed)
    kept, accounts, now = Standings(), dict[str, Account](), 0.0
    for _ in range(200):
        now = max(0.0, now + rng.uniform(-0.1, 5.0))
        for tenant in [*kept.taken, *(f"t{rng.randrange(30)}" for _ in range(3))]:
            found = Account(
                rng.choice((1, 10)), rng.choice((0.0, 5.0, 900.0)), rng.randrange(3), now - rng.random()
            )
            accounts[tenant] = found
            kept.put(tenant, found, now)
        kept.taken.clear()
        gone = f"t{rng.randrange(30)}"
        accounts.pop(gone, None)
        kept.remove(gone)
        fresh = Standings()
        for tenant, found in accounts.items():
            fresh.put(tenant, found, now)
        assert kept.weight == fresh.weight
        assert order(Turns(kept, 10, now), 10) == order(Turns(fresh, 10, now), 10)


def order(turns: Turns, count: int) -> list[tuple[str, int]]:
    """The first turns, each taken as a whole."""
    found: list[tuple[str, int]] = []
    while turns and len(found) < count:
        found.append(turns.next())
        turns.served(found[-1][1])
    return found


def test_stalled_tenant_gets_a_turn_after_its_stall() -> None:
    agenda = Agenda()
    agenda.put(lane(1, tenant="a"), 0.0)
    agenda.tenants["a"].stall(5.0)
    assert agenda.standings(0, 4.0).best(4.0) is None
    best = agenda.standings(0, 5.0).best(5.0)
    assert best is not None and best[1] == "a"


def test_usage_of_runs_ended_since_the_last_share_is_kept() -> None:
    account = Account(1, usage=5.0, held=2, time=0.0)
    for now in (1.0, 1.5):
        account = account.claim(-1, now)
    assert account.standing(10.0) == 5.0 + 2 * 1.0 + 1 * 0.5


def test_limits_only_share_keeps_the_last_usage() -> None:
    agenda = Agenda()
    agenda.update_share(TenantShare("a", 1, usage=8.0, held=1), 0.0)
    agenda.update_share(TenantShare("a", 2, claimable=3, limits_only=True), 4.0)
    found = agenda.share("a")
    assert found is not None and found.share.claimable == 3
    assert found.account.standing(4.0) == (8.0 + 4.0 + AHEAD_SECONDS) / 2


def test_use_loses_half_of_its_worth_in_five_minutes() -> None:
    assert decay(100.0, 0, HALF_LIFE_SECONDS) == pytest.approx(50.0)
    assert decay(0.0, 10, 1.0) == pytest.approx(10.0, rel=0.01)
    steady = 10 * HALF_LIFE_SECONDS / 0.6931471805599453
    assert decay(steady, 10, 1234.0) == pytest.approx(steady)


def test_one_point_of_priority_is_worth_twelve_seconds_of_waiting() -> None:
    assert lane_offset(5, 10) == 600.0
    assert lane_offset(1, 1, strict=True) > 300 * 86400


def test_waiting_makes_up_for_priority_unless_the_order_is_strict() -> None:
    old_low, new_high = lane(1, 1, priority=1, head=0.0), lane(2, 1, priority=5, head=60.0)
    for head, strict, first in ((60.0, False, 1), (40.0, False, 2), (1e6, True, 2)):
        lanes = [old_low, replace(new_high, head=head)]
        (plan,) = planned([offer("a", 1)], lanes, strict=strict).values()
        assert plan.tenants[0].lanes[0].lane.class_id == first


# ---- over time


@dataclass
class Tenant:
    """A tenant with more work than can run."""

    weight: int
    duration: Callable[[random.Random], float]
    waiting: int = 10**9
    class_id: int = 1
    claimable: int = UNLIMITED
    # Since when it has work.
    start: float = 0.0


@dataclass
class Site:
    """Runners and tenants in virtual time: the production plan, and taskdb's account every two seconds."""

    tenants: dict[str, Tenant]
    capacity: dict[str, int]
    seed: int = 1
    profiles: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.now = 0.0
        self.agenda = Agenda()
        self.matches = Matches()
        for name in self.capacity:
            self.matches.put(name, profile(name, capacity=self.capacity[name]))
        self.used: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.on_runner: Counter[str] = Counter()
        self.capacity_seconds: dict[str, float] = dict.fromkeys(self.tenants, 0.0)
        self.starts: dict[str, list[float]] = {name: [] for name in self.tenants}
        self.usage: dict[str, float] = dict.fromkeys(self.tenants, 0.0)
        self._ends: list[tuple[float, int, str, str]] = []
        self._numbers = itertools.count()

    def run(self, until: float) -> None:
        published = 0.0
        self._publish_shares()
        while self.now < until:
            self._tick()
            after = min(self._ends[0][0] if self._ends else until, published + SHARE_SECONDS, until)
            self._pass(after - self.now)
            while self._ends and self._ends[0][0] <= self.now:
                self._end()
            if self.now >= published + SHARE_SECONDS:
                published = self.now
                self._publish_shares()

    def _pass(self, seconds: float) -> None:
        for name, held in self.held.items():
            self.capacity_seconds[name] += held * seconds
            self.usage[name] = decay(self.usage[name], held, seconds)
        for name in self.usage.keys() - self.held.keys():
            self.usage[name] = decay(self.usage[name], 0, seconds)
        self.now += seconds

    def _publish_shares(self) -> None:
        for name, tenant in self.tenants.items():
            claimable = tenant.claimable
            if claimable != UNLIMITED:
                claimable = max(0, claimable - self.held[name])
            share = TenantShare(name, tenant.weight, self.usage[name], claimable, held=self.held[name])
            self.agenda.update_share(share, self.now)
            if tenant.start <= self.now and tenant.waiting:
                self.agenda.classes.setdefault(tenant.class_id, wanted(tenant.class_id))
                backlog = min(1000, tenant.waiting)
                self.agenda.put(Lane(name, tenant.class_id, 10, "", 0.0, backlog), self.now)

    def _tick(self) -> None:
        offers = [
            Offer(name, name, total - self.on_runner[name], self.on_runner[name], total)
            for name, total in self.capacity.items()
            if total > self.on_runner[name]
        ]
        situation = Situation(self.matches, sum(self.capacity.values()))
        for plan in make_plan(offers, self.agenda, situation, self.now):
            for part in plan.tenants:
                for _ in range(part.count):
                    self._start(plan.offer.key, part.tenant)

    def _start(self, runner: str, name: str) -> None:
        tenant = self.tenants[name]
        if not tenant.waiting:
            self.agenda.remove(name, (tenant.class_id, 10, ""))
            return
        tenant.waiting -= 1
        self.starts[name].append(self.now)
        self.held[name] += 1
        self.on_runner[runner] += 1
        found = self.agenda.share(name)
        assert found is not None
        found.claim(1, self.now)
        end = self.now + tenant.duration(self.rng)
        heapq.heappush(self._ends, (end, next(self._numbers), runner, name))

    def _end(self) -> None:
        _, _, runner, name = heapq.heappop(self._ends)
        self.held[name] -= 1
        self.on_runner[runner] -= 1
        found = self.agenda.share(name)
        assert found is not None
        found.claim(-1, self.now)


def about(seconds: float) -> Callable[[random.Random], float]:
    return lambda rng: seconds * rng.uniform(0.5, 1.5)


@pytest.mark.parametrize("places", [20, 111])
@pytest.mark.parametrize(
    "durations",
    [(3.0, 3.0, 3.0), (1.0, 3.0, 10.0), (10.0, 3.0, 2.0), (0.4, 0.4, 0.4), (0.3, 1.0, 3.0)],
    ids=["equal", "rising", "falling", "shorter than the share interval", "the smallest shortest"],
)
def test_tenants_of_weight_1_10_and_100_get_capacity_seconds_by_weight(
    places: int, durations: tuple[float, float, float]
) -> None:
    tenants = {
        f"w{weight}": Tenant(weight, about(seconds))
        for weight, seconds in zip((1, 10, 100), durations, strict=True)
    }
    site = Site(tenants, {"a": places // 2, "b": places - places // 2})
    site.run(400.0)
    total = sum(site.capacity_seconds.values())
    assert total > 0.99 * places * 400
    for (name, tenant), longest in zip(tenants.items(), durations, strict=True):
        part = total * tenant.weight / 111
        # A tenure of one place cannot be divided.
        assert abs(site.capacity_seconds[name] - part) <= 0.1 * part + longest, name


def test_a_tenant_that_comes_later_gets_its_share_soon_and_the_first_keeps_running() -> None:
    tenants = {"old": Tenant(1, about(2.0)), "new": Tenant(1, about(2.0), start=300.0)}
    site = Site(tenants, {"a": 20})
    site.run(302.0)
    site.capacity_seconds = dict.fromkeys(tenants, 0.0)
    site.run(302.0 + 2 * DEBT_SECONDS)
    old, new = site.capacity_seconds["old"], site.capacity_seconds["new"]
    assert new > 0.45 * (old + new)
    gaps = [after - before for before, after in itertools.pairwise(site.starts["old"])]
    assert max(gaps) < DEBT_SECONDS / 2 + 4.0, "it is not starved for what it used before"


def test_every_matchable_task_starts_within_the_bound() -> None:
    """The debt, then as long as its tenant's part of the capacity needs for what is ahead of it."""
    longest, places = 3.0, 12
    tenants = {f"t{n}": Tenant(weight, about(2.0)) for n, weight in enumerate([1, 1, 10, 50, 100, 100])}
    tenants["late"] = Tenant(1, about(2.0), waiting=30, start=200.0)
    site = Site(tenants, {"a": 5, "b": 7})
    weights = sum(tenant.weight for tenant in tenants.values())
    ahead = 30
    bound = DEBT_SECONDS + SHARE_SECONDS + longest * (2 + ahead * weights / places)
    site.run(200.0 + bound)
    assert len(site.starts["late"]) == 30
    assert site.starts["late"][-1] - 200.0 <= bound


def test_more_tenants_than_places_take_turns() -> None:
    tenants = {f"t{n:03}": Tenant(1, about(1.0)) for n in range(200)}
    site = Site(tenants, {"a": 10})
    site.run(60.0)
    starts = Counter({name: len(times) for name, times in site.starts.items()})
    assert min(starts.values()) >= 2
    assert max(starts.values()) <= 3 * min(starts.values())


def test_tenant_at_its_quota_does_not_delay_others() -> None:
    tenants = {"full": Tenant(100, about(1.0), claimable=3), "free": Tenant(1, about(1.0))}
    site = Site(tenants, {"a": 20})
    site.run(60.0)
    assert site.capacity_seconds["full"] == pytest.approx(3 * 60, rel=0.05)
    assert site.capacity_seconds["free"] == pytest.approx(17 * 60, rel=0.05)


def test_a_hundred_thousand_unplaceable_tasks_do_not_delay_others() -> None:
    needs_gpu = wanted(7, required=labels(gpu="yes"))
    tenants = {"stuck": Tenant(100, about(1.0), 100_000, class_id=7), "free": Tenant(1, about(1.0))}
    site = Site(tenants, {"a": 20})
    site.agenda.classes[7] = needs_gpu
    site.run(60.0)
    assert site.starts["stuck"] == []
    assert site.capacity_seconds["free"] > 0.99 * 20 * 60


def test_a_class_that_becomes_matchable_is_served_at_the_next_plan() -> None:
    matches, agenda = Matches(), Agenda()
    agenda.classes[7] = wanted(7, required=labels(gpu="yes"))
    agenda.put(lane(7, 5), 0.0)
    matches.put("a", profile("a"))
    offers = [offer("a")]
    assert make_plan(offers, agenda, Situation(matches, 4), 0.0) == []
    matches.put("a", profile("a", labels={"gpu": "yes"}))
    assert counts({p.offer.key: p for p in make_plan(offers, agenda, Situation(matches, 4), 0.0)}) == {"a": 4}
    matches.put("a", profile("a"))
    assert make_plan(offers, agenda, Situation(matches, 4), 0.0) == []


def test_a_lane_becomes_live_with_its_first_runner_though_another_lane_of_its_tenant_was_live() -> None:
    matches, agenda = Matches(), Agenda()
    agenda.classes.update({1: wanted(1), 7: wanted(7, required=labels(gpu="yes"))})
    for found in (lane(1, 50), lane(7, 2)):
        agenda.put(found, 0.0)
    matches.put("full", profile("full"))
    (first,) = make_plan([offer("full", 1)], agenda, Situation(matches, 4), 0.0)
    assert [listed.lane.class_id for listed in first.tenants[0].lanes] == [1]
    matches.put("new", profile("new", labels={"gpu": "yes"}))
    (plan,) = make_plan([offer("new", 1)], agenda, Situation(matches, 8), 1.0)
    assert {listed.lane.class_id for listed in plan.tenants[0].lanes} == {1, 7}


def test_idle_runners_of_another_kind_do_not_make_a_plan_look_at_every_tenant() -> None:
    looked: list[str] = []

    class Watched(dict[int, PlacementClass]):
        def get(self, class_id: int, default: object = None) -> PlacementClass | None:  # type: ignore[override]
            looked.append("class")
            return super().get(class_id)

    agenda, matches = Agenda(), Matches()
    needs_gpu = wanted(7, required=labels(gpu="yes"))
    agenda.classes = Watched({7: needs_gpu})
    for n in range(1000):
        agenda.put(lane(7, 5, tenant=f"t{n}"), 0.0)
    matches.put("busy", profile("busy", labels={"gpu": "yes"}))
    matches.put("idle", profile("idle"))
    assert make_plan([offer("idle")], agenda, Situation(matches, 8), 0.0) == []
    assert len(looked) == 1
