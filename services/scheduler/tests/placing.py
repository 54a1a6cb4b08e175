"""Runners, classes, lanes and plans for tests of the pure policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskyard_scheduler.domain.agenda import Agenda, Lane
from taskyard_scheduler.domain.fairness import TenantShare
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import (
    Constraint,
    Operator,
    PlacementClass,
    Requirement,
    RunnerProfile,
)
from taskyard_scheduler.domain.plan import RunnerPlan, Situation, make_plan
from taskyard_scheduler.domain.resources import Resources
from taskyard_scheduler.domain.rooms import Offer

COMMAND, SCRIPT, FUNCTION = 1, 2, 5


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
    return PlacementClass(**{"class_id": class_id, "kind": COMMAND, **fields})


def labels(**pairs: str) -> Constraint:
    return Constraint(labels=tuple(Requirement(k, Operator.IN, frozenset({v})) for k, v in pairs.items()))


def offer(name: str, free: int = 4, used: int = 0, budget: Resources | None = None, **fields: Any) -> Offer:
    return Offer(name, name, free, used, free + used, budget, **fields)


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


def agenda_of(
    lanes: Sequence[Lane], classes: Sequence[PlacementClass] = (), shares: Sequence[TenantShare] = ()
) -> Agenda:
    """The lanes with their classes; a class that is not given has no requirements."""
    agenda = Agenda()
    for share in shares:
        agenda.update_share(share, 0.0)
    for found in lanes:
        agenda.classes.setdefault(found.class_id, wanted(found.class_id))
        agenda.put(found, 0.0)
    agenda.classes.update((wanted_class.class_id, wanted_class) for wanted_class in classes)
    return agenda


def planned(
    offers: Sequence[Offer],
    lanes: Sequence[Lane],
    classes: Sequence[PlacementClass] = (),
    profiles: Mapping[str, RunnerProfile] | None = None,
    shares: Sequence[TenantShare] = (),
    **situation: Any,
) -> dict[str, RunnerPlan]:
    """The plan by runner; a runner whose profile is not given takes every command."""
    matches = Matches()
    for found in offers:
        matches.put(found.key, (profiles or {}).get(found.key) or profile(found.runner_id))
    capacity = sum(found.capacity for found in offers)
    agenda = agenda_of(lanes, classes, shares)
    plans = make_plan(offers, agenda, Situation(matches, capacity, **situation), 0.0)
    return {plan.offer.key: plan for plan in plans}


def counts(plans: Mapping[str, RunnerPlan]) -> dict[str, int]:
    return {name: plan.count for name, plan in plans.items()}
