"""Plans of one tick: how many tasks of which lanes each runner claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.tests.placing import counts, labels, lane, offer, planned, profile, wanted
from taskyard_scheduler.domain.fairness import TenantShare
from taskyard_scheduler.domain.placement import Constraint, Preference
from taskyard_scheduler.domain.resources import Resources


@pytest.mark.seed("S4.31")
def test_few_tasks_go_to_the_least_loaded() -> None:
    plans = planned([offer("a", 4, used=4), offer("b", 8), offer("c", 8)], [lane(backlog=4)])
    assert counts(plans) == {"b": 2, "c": 2}


def test_many_tasks_fill_every_runner() -> None:
    assert counts(planned([offer("a", 3), offer("b", 5)], [lane(backlog=100)])) == {"a": 3, "b": 5}


def test_preferred_runner_gets_the_task_and_others_do_not_claim_it() -> None:
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
    needs_gpu = wanted(1, required=labels(gpu="yes"))
    lanes = [lane(1, 50), lane(2, 50, tenant="u")]
    people = {"a": profile("a", labels={"gpu": "yes"})}
    plans = planned([offer("a", 10), offer("b", 10)], lanes, [needs_gpu], people)
    assert counts(plans) == {"a": 10, "b": 10}


def test_class_that_depends_on_running_types_is_claimed_alone_and_one_by_one() -> None:
    spread = wanted(1, task_type="db", avoid=Constraint(task_types=frozenset({"db"})))
    plans = planned([offer("a", 4), offer("b", 4)], [lane(1, 5, head=-10.0), lane(2, 50)], [spread])
    assert counts(plans) == {"a": 1, "b": 1}
    for plan in plans.values():
        assert [listed.lane.class_id for listed in plan.tenants[0].lanes] == [1]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40), st.sampled_from("tuv")), max_size=10),
)
@pytest.mark.seed("S0.85")
def test_plan_is_bounded_by_free_capacity_and_by_backlog(
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
