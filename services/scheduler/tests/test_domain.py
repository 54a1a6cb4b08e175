"""The pure policy: resources, placement, fairness, capacity and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard_scheduler.domain.capacity import Capacity, Run, RunKey
from taskyard_scheduler.domain.fairness import Demand, TenantShare, divide, lane_offset
from taskyard_scheduler.domain.placement import (
    Constraint,
    Obstacle,
    Operator,
    PlacementClass,
    Preference,
    Requirement,
    RunnerProfile,
    judge,
    scope_permits,
    serves_type,
)
from taskyard_scheduler.domain.plan import Lane, Offer, RunnerPlan, make_plan
from taskyard_scheduler.domain.resources import Resources

COMMAND, FUNCTION = 1, 5


def profile(runner_id: str = "r1", **fields: Any) -> RunnerProfile:
    values: dict[str, Any] = {
        "labels": {},
        "kinds": frozenset({COMMAND}),
        "task_types": ("*",),
        "functions": frozenset(),
        "capacity": 4,
    }
    return RunnerProfile(runner_id, **{**values, **fields})


def wanted(class_id: int = 1, **fields: Any) -> PlacementClass:
    return PlacementClass(**{"tenant": "t", "class_id": class_id, "kind": COMMAND, **fields})


def labels(**pairs: str) -> Constraint:
    return Constraint(labels=tuple(Requirement(k, Operator.IN, frozenset({v})) for k, v in pairs.items()))


# ---- placement


def test_the_worked_example_of_selectors() -> None:
    required = Constraint(
        labels=(
            Requirement("zone", Operator.IN, frozenset({"eu"})),
            Requirement("gpu", Operator.EXISTS),
        )
    )
    found = {
        name: judge(profile(labels=carried), wanted(required=required)).obstacle
        for name, carried in {
            "eu with gpu": {"zone": "eu", "gpu": "h100"},
            "us with gpu": {"zone": "us", "gpu": "a100"},
            "eu without": {"zone": "eu"},
        }.items()
    }
    assert found == {"eu with gpu": None, "us with gpu": Obstacle.REQUIRED, "eu without": Obstacle.REQUIRED}


@pytest.mark.parametrize(
    ("operator", "values", "carried", "met"),
    [
        (Operator.IN, {"a"}, {"k": "a"}, True),
        (Operator.IN, {"a"}, {"k": "b"}, False),
        (Operator.IN, {"a"}, {}, False),
        (Operator.NOT_IN, {"a"}, {"k": "b"}, True),
        (Operator.NOT_IN, {"a"}, {}, True),
        (Operator.NOT_IN, {"a"}, {"k": "a"}, False),
        (Operator.EXISTS, set(), {"k": ""}, True),
        (Operator.EXISTS, set(), {}, False),
        (Operator.DOES_NOT_EXIST, set(), {}, True),
        (Operator.DOES_NOT_EXIST, set(), {"k": "x"}, False),
    ],
)
def test_operators(operator: Operator, values: set[str], carried: dict[str, str], met: bool) -> None:
    assert Requirement("k", operator, frozenset(values)).met_by(carried) is met


@pytest.mark.parametrize(
    ("runner", "class_", "obstacle"),
    [
        (profile(kinds=frozenset({2})), wanted(), Obstacle.KIND),
        (profile(task_types=("render",)), wanted(task_type="encode"), Obstacle.TASK_TYPE),
        (profile(kinds=frozenset({FUNCTION})), wanted(kind=FUNCTION, function="f"), Obstacle.TASK_TYPE),
        (profile(tenants=frozenset({"other"})), wanted(), Obstacle.SCOPE),
        (profile(), wanted(runner_id_pattern=r"^worker-\d{3}$"), Obstacle.SCOPE),
        (profile(), wanted(required=Constraint(runner_ids=frozenset({"r2"}))), Obstacle.REQUIRED),
        (profile(), wanted(avoid=Constraint(runner_ids=frozenset({"r1"}))), Obstacle.AVOID),
        (profile(labels={"spot": "yes"}), wanted(avoid=labels(spot="yes")), Obstacle.AVOID),
        (profile(resources=Resources(1000)), wanted(resources=Resources(2000)), Obstacle.RESOURCES),
        (profile(resources=Resources(2000)), wanted(resources=Resources(2000)), None),
        (profile(), wanted(resources=Resources(2000)), None),
        (profile("worker-007"), wanted(runner_id_pattern=r"^worker-\d{3}$"), None),
        (profile(), wanted(runner_id_pattern="("), Obstacle.SCOPE),
    ],
)
def test_obstacles(runner: RunnerProfile, class_: PlacementClass, obstacle: Obstacle | None) -> None:
    assert judge(runner, class_).obstacle is obstacle


def test_avoid_excludes_only_a_runner_with_all_of_its_labels() -> None:
    avoid = labels(zone="eu", spot="yes")
    assert judge(profile(labels={"zone": "eu"}), wanted(avoid=avoid)).eligible
    assert not judge(profile(labels={"zone": "eu", "spot": "yes"}), wanted(avoid=avoid)).eligible


def test_preferences_add_up() -> None:
    class_ = wanted(preferred=(Preference(50, labels(zone="eu")), Preference(30, labels(disk="ssd"))))
    assert judge(profile(labels={"zone": "eu", "disk": "ssd"}), class_).score == 80
    assert judge(profile(labels={"disk": "ssd"}), class_).score == 30
    assert judge(profile(), class_).score == 0


def test_what_a_runner_executes_counts_where_a_class_asks_for_it() -> None:
    together = wanted(required=Constraint(task_types=frozenset({"cache"})))
    apart = wanted(avoid=Constraint(task_types=frozenset({"heavy"})))
    assert together.moody and apart.moody and not wanted().moody
    assert judge(profile(), together).obstacle is Obstacle.REQUIRED
    assert judge(profile(), together, {"cache"}).eligible
    assert judge(profile(), apart, {"heavy"}).obstacle is Obstacle.AVOID


def test_type_patterns_and_scopes() -> None:
    assert serves_type(["render"], "render") and not serves_type(["render"], "render2")
    assert serves_type(["ren*"], "render") and serves_type(["*"], "")
    assert not serves_type(["render"], "")
    assert scope_permits("", "any") and scope_permits("edge-*", "edge-1") and scope_permits("one", "one")
    assert not scope_permits("edge-*", "core-1") and not scope_permits("one", "one2")


# ---- fairness


def demand(tenant: str, count: int, weight: int = 1, usage: float = 0.0) -> Demand:
    return Demand(TenantShare(tenant, weight, usage), count)


def test_capacity_is_divided_by_weight() -> None:
    assert divide(60, [demand("a", 1000, 1), demand("b", 1000, 2)]) == {"a": 20, "b": 40}


def test_what_a_small_demand_leaves_is_divided_again() -> None:
    assert divide(90, [demand("a", 5), demand("b", 1000), demand("c", 20)]) == {"a": 5, "c": 20, "b": 65}


def test_a_single_place_goes_to_the_tenant_that_used_least_for_its_weight() -> None:
    parts = divide(1, [demand("a", 9, 1, usage=10), demand("b", 9, 10, usage=50), demand("c", 9, 1, usage=6)])
    assert parts == {"b": 1, "c": 0, "a": 0}
    assert list(parts) == ["b", "c", "a"]


@given(
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 100), st.floats(0, 1e6)), max_size=8),
)
def test_division_uses_all_it_can_and_never_more(capacity: int, given_: list[tuple[int, int, float]]) -> None:
    demands = [demand(f"t{n}", count, weight, usage) for n, (count, weight, usage) in enumerate(given_)]
    parts = divide(capacity, demands)
    assert sum(parts.values()) == min(capacity, sum(d.count for d in demands))
    assert all(parts[d.share.tenant] <= d.count for d in demands)


def test_one_point_of_priority_is_worth_twelve_seconds_of_waiting() -> None:
    assert lane_offset(5, 10) == 600.0
    assert lane_offset(1, 1, strict=True) > 300 * 86400


# ---- capacity (rule 3)


def key(n: int) -> RunKey:
    return (f"tenants/t/tasks/{n}", 1)


def test_room_is_what_the_runner_said_less_what_was_sent_since() -> None:
    capacity = Capacity(4, 2)
    capacity.hear(4, None, [])
    assert capacity.room(0) == 6
    capacity.send(key(1), Run(expire_time=10))
    assert capacity.room(0) == 5
    capacity.hear(4, None, [])
    assert capacity.room(0) == 5, "a heartbeat that does not list it was composed before it arrived"
    capacity.hear(3, None, [(key(1), False)])
    assert capacity.room(0) == 5
    capacity.end(key(1))
    assert capacity.room(0) == 6
    capacity.hear(4, None, [], [key(1)])
    assert capacity.room(0) == 6


def test_an_end_that_the_heartbeat_told_already_is_not_counted_again() -> None:
    capacity = Capacity(2, 0)
    capacity.hear(2, None, [])
    capacity.send(key(1), Run(expire_time=10))
    capacity.hear(2, None, [(key(1), True)])
    capacity.end(key(1))
    assert capacity.room(0) == 2


def test_an_assignment_never_listed_frees_its_place_when_its_first_lease_is_over() -> None:
    capacity = Capacity(1, 0)
    capacity.hear(1, None, [])
    capacity.send(key(1), Run(expire_time=15.0))
    assert capacity.room(14.9) == 0
    assert capacity.room(15.0) == 1


def test_a_budget_follows_what_is_sent_and_ends() -> None:
    capacity = Capacity(10, 0)
    capacity.hear(10, Resources(2000), [])
    capacity.send(key(1), Run(cost=Resources(600), expire_time=9))
    assert capacity.budget == Resources(1400, extended={})
    capacity.hear(10, Resources(2000), [])
    assert capacity.budget == Resources(1400, extended={})
    capacity.end(key(1))
    assert capacity.budget == Resources(2000, extended={})


@given(st.lists(st.sampled_from(["send", "list", "end", "ack", "cross"]), max_size=60), st.integers(0, 3))
def test_whatever_happens_the_runner_never_holds_more_than_capacity_and_prefetch(
    steps: Sequence[str], prefetch: int
) -> None:
    """Drives the accounting with a model of an honest agent and a network that delays assignments."""
    limit = 3
    capacity = Capacity(limit, prefetch)
    capacity.hear(limit, None, [], full=True)
    flying: list[RunKey] = []
    held: dict[RunKey, bool] = {}
    count = 0
    for step in steps:
        live = [k for k, ended in held.items() if not ended]
        if step == "send" and capacity.room(0) > 0:
            count += 1
            capacity.send(key(count), Run(expire_time=1e9))
            flying.append(key(count))
        elif step == "list" or step == "cross":
            if step == "list":
                held.update((k, False) for k in flying)
                flying.clear()
            free = max(0, limit - sum(not ended for ended in held.values()))
            capacity.hear(free, None, list(held.items()))
        elif step == "end" and live:
            held[live[0]] = True
            capacity.end(live[0])
        elif step == "ack":
            gone = [k for k, ended in held.items() if ended]
            held = {k: e for k, e in held.items() if not e}
            free = max(0, limit - len(held))
            capacity.hear(free, None, list(held.items()), gone)
        assert sum(not ended for ended in held.values()) + len(flying) <= limit + prefetch


# ---- plans


def offer(name: str, free: int = 4, used: int = 0, budget: Resources | None = None) -> Offer:
    return Offer(name, name, free, used, free + used, budget)


def lane(
    class_id: int = 1,
    backlog: int = 1,
    *,
    tenant: str = "t",
    priority: int = 0,
    head: float = 0.0,
    pinned: str = "",
) -> Lane:
    return Lane(tenant, class_id, priority, pinned, head, backlog)


def planned(
    offers: Sequence[Offer],
    lanes: Sequence[Lane],
    classes: Sequence[PlacementClass] = (),
    profiles: Mapping[str, RunnerProfile] | None = None,
    shares: Sequence[TenantShare] = (),
) -> dict[str, RunnerPlan]:
    by_tenant: dict[str, list[Lane]] = {}
    for found in lanes:
        by_tenant.setdefault(found.tenant, []).append(found)
    known = {(c.tenant, c.class_id): c for c in classes}
    for found in lanes:
        known.setdefault(found.class_key, wanted(found.class_id, tenant=found.tenant))
    people = profiles or {}

    def score(name: str, class_: PlacementClass) -> int | None:
        verdict = judge(people.get(name) or profile(name), class_)
        return verdict.score if verdict.eligible else None

    plans = make_plan(offers, by_tenant, {s.tenant: s for s in shares}, known, score)
    return {plan.offer.key: plan for plan in plans}


def counts(plans: Mapping[str, RunnerPlan]) -> dict[str, int]:
    return {name: plan.count for name, plan in plans.items()}


def test_few_tasks_go_to_the_least_loaded() -> None:
    plans = planned([offer("a", 4, used=4), offer("b", 8), offer("c", 8)], [lane(backlog=4)])
    assert counts(plans) == {"b": 2, "c": 2}


def test_many_tasks_fill_everybody() -> None:
    assert counts(planned([offer("a", 3), offer("b", 5)], [lane(backlog=100)])) == {"a": 3, "b": 5}


def test_a_preferred_runner_gets_the_task_and_others_do_not_ask_for_it() -> None:
    class_ = wanted(preferred=(Preference(10, labels(zone="eu")),))
    plans = planned([offer("a"), offer("b")], [lane()], [class_], {"b": profile("b", labels={"zone": "eu"})})
    assert counts(plans) == {"b": 1}


def test_a_preference_holds_beside_other_work() -> None:
    prefers_b = wanted(1, preferred=(Preference(10, labels(zone="eu")),))
    plans = planned(
        [offer("a", 1), offer("b", 1)],
        [lane(1), lane(2)],
        [prefers_b],
        {"b": profile("b", labels={"zone": "eu"})},
    )
    assert [listed.lane.class_id for listed in plans["b"].tenants[0].lanes] == [1]
    assert [listed.lane.class_id for listed in plans["a"].tenants[0].lanes] == [2]


def test_the_budget_bounds_the_count() -> None:
    class_ = wanted(resources=Resources(500, 100))
    plans = planned([offer("a", 10, budget=Resources(1600, 10_000))], [lane(backlog=50)], [class_])
    assert counts(plans) == {"a": 3}


def test_a_pinned_lane_is_for_its_runner() -> None:
    plans = planned([offer("a"), offer("b")], [lane(pinned="b", backlog=3)])
    assert counts(plans) == {"b": 3}


def test_lanes_are_listed_best_first_and_no_more_than_can_matter() -> None:
    lanes = [lane(n, 5, head=float(1000 - n)) for n in range(100)]
    (tenant,) = planned([offer("a", 2)], lanes)["a"].tenants
    listed = [found.lane.class_id for found in tenant.lanes]
    assert listed[:2] == [99, 98]
    assert len(listed) < 20


def test_a_tenant_at_its_quota_or_paused_gets_nothing() -> None:
    shares = [
        TenantShare("t", claimable=2),
        TenantShare("full", claimable=0),
        TenantShare("off", paused=True),
    ]
    lanes = [lane(backlog=9, tenant=tenant) for tenant in ("t", "full", "off")]
    plans = planned([offer("a", 10)], lanes, shares=shares)
    assert [(part.tenant, part.count) for part in plans["a"].tenants] == [("t", 2)]


def test_capacity_that_one_tenant_cannot_use_goes_to_another() -> None:
    needs_gpu = wanted(1, tenant="t", required=labels(gpu="yes"))
    lanes = [lane(1, 50), lane(2, 50, tenant="u")]
    people = {"a": profile("a", labels={"gpu": "yes"})}
    plans = planned([offer("a", 10), offer("b", 10)], lanes, [needs_gpu], people)
    assert counts(plans) == {"a": 10, "b": 10}


def test_a_class_that_looks_at_what_a_runner_executes_is_claimed_alone_and_one_by_one() -> None:
    spread = wanted(1, task_type="db", avoid=Constraint(task_types=frozenset({"db"})))
    plans = planned([offer("a", 4), offer("b", 4)], [lane(1, 5, head=-10.0), lane(2, 50)], [spread])
    assert counts(plans) == {"a": 1, "b": 1}
    for plan in plans.values():
        assert [listed.lane.class_id for listed in plan.tenants[0].lanes] == [1]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40), st.sampled_from("tuv")), max_size=10),
)
def test_a_plan_asks_for_neither_more_than_is_free_nor_more_than_there_is(
    free: list[int], queued: list[tuple[int, int, str]]
) -> None:
    offers = [offer(f"r{n}", count) for n, count in enumerate(free)]
    lanes = [lane(c, b, tenant=t, priority=n) for n, (c, b, t) in enumerate(queued)]
    plans = planned(offers, lanes)
    assert all(plan.count <= plan.offer.free for plan in plans.values())
    assert sum(counts(plans).values()) == min(sum(free), sum(found.backlog for found in lanes))
    for plan in plans.values():
        for tenant in plan.tenants:
            assert tenant.count >= 1 and tenant.lanes
            assert all(listed.lane.tenant == tenant.tenant for listed in tenant.lanes)
