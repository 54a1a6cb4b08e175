"""Which runner may take which class, and its score: every filter, selector and preference by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from services.scheduler.tests.placing import (
    COMMAND,
    FUNCTION,
    SCRIPT,
    counts,
    labels,
    lane,
    offer,
    planned,
    profile,
    wanted,
)
from taskyard.v1 import lease_service_pb2, runner_pb2
from taskyard_kit import patterns
from taskyard_scheduler import convert
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
    without_running_types,
)
from taskyard_scheduler.domain.resources import Resources

IN, NOT_IN, EXISTS, ABSENT = Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST
TAGGED = Operator.TAGGED
GPU = {"zone": "eu", "gpu": "h100"}


def need(*requirements: tuple[str, Operator, set[str]], **fields: Any) -> Constraint:
    found = tuple(Requirement(key, operator, frozenset(values)) for key, operator, values in requirements)
    return Constraint(labels=found, **fields)


def ids(*names: str) -> Constraint:
    return Constraint(runner_ids=frozenset(names))


def types(*names: str) -> Constraint:
    return Constraint(task_types=frozenset(names))


WORKED_EXAMPLE = need(("zone", IN, {"eu"}), ("gpu", EXISTS, set()))

# What is required, the runner's labels, what it executes, and whether it may.
REQUIRED: Sequence[tuple[Constraint, dict[str, str], set[str], bool]] = [
    # S4.43: zone = eu and gpu Exists.
    (WORKED_EXAMPLE, {"zone": "eu", "gpu": "h100"}, set(), True),
    (WORKED_EXAMPLE, {"zone": "us", "gpu": "a100"}, set(), False),
    (WORKED_EXAMPLE, {"zone": "eu"}, set(), False),
    # S2.53, S2.56: a list of tags, each a key or a value of a label.
    (
        need(("gpu", TAGGED, set()), ("us-west-2", TAGGED, set())),
        {"gpu": "", "region": "us-west-2"},
        set(),
        True,
    ),
    (
        need(("gpu", TAGGED, set()), ("us-west-2", TAGGED, set())),
        {"hardware": "gpu", "us-west-2": ""},
        set(),
        True,
    ),
    (need(("gpu", TAGGED, set()), ("us-west-2", TAGGED, set())), {"gpu": "", "region": "eu"}, set(), False),
    # No requirement.
    (Constraint(), {}, set(), True),
    (Constraint(), GPU, {"any"}, True),
    # In
    (need(("k", IN, {"a"})), {"k": "a"}, set(), True),
    (need(("k", IN, {"a"})), {"k": "b"}, set(), False),
    (need(("k", IN, {"a"})), {}, set(), False),
    (need(("k", IN, {"a", "b"})), {"k": "b"}, set(), True),
    (need(("k", IN, {""})), {"k": ""}, set(), True),
    (need(("k", IN, {""})), {}, set(), False),
    (need(("k", IN, {"A"})), {"k": "a"}, set(), False),
    # NotIn
    (need(("k", NOT_IN, {"a"})), {"k": "b"}, set(), True),
    (need(("k", NOT_IN, {"a"})), {"k": "a"}, set(), False),
    (need(("k", NOT_IN, {"a"})), {}, set(), True),
    (need(("k", NOT_IN, {"a", "b"})), {"k": "b"}, set(), False),
    (need(("k", NOT_IN, {"a", "b"})), {"k": "c"}, set(), True),
    # Exists
    (need(("k", EXISTS, set())), {"k": "x"}, set(), True),
    (need(("k", EXISTS, set())), {"k": ""}, set(), True),
    (need(("k", EXISTS, set())), {"j": "x"}, set(), False),
    # DoesNotExist
    (need(("k", ABSENT, set())), {"j": "x"}, set(), True),
    (need(("k", ABSENT, set())), {"k": "x"}, set(), False),
    (need(("k", ABSENT, set())), {"k": ""}, set(), False),
    # All of them together.
    (need(("a", IN, {"1"}), ("b", NOT_IN, {"2"})), {"a": "1", "b": "3"}, set(), True),
    (need(("a", IN, {"1"}), ("b", NOT_IN, {"2"})), {"a": "1", "b": "2"}, set(), False),
    (need(("a", IN, {"1"}), ("b", NOT_IN, {"2"})), {"b": "3"}, set(), False),
    (need(("a", EXISTS, set()), ("b", ABSENT, set())), {"a": ""}, set(), True),
    (need(("a", EXISTS, set()), ("b", ABSENT, set())), {"a": "", "b": ""}, set(), False),
    (need(("a", IN, {"1"}), ("a", NOT_IN, {"1"})), {"a": "1"}, set(), False),
    # Runner ids.
    (ids("r1"), {}, set(), True),
    (ids("r1", "r2"), {}, set(), True),
    (ids("r2"), {}, set(), False),
    (need(("k", IN, {"a"}), runner_ids=frozenset({"r1"})), {"k": "a"}, set(), True),
    (need(("k", IN, {"a"}), runner_ids=frozenset({"r1"})), {"k": "b"}, set(), False),
    (need(("k", IN, {"a"}), runner_ids=frozenset({"r2"})), {"k": "a"}, set(), False),
    # What it executes.
    (types("cache"), {}, {"cache"}, True),
    (types("cache"), {}, {"web"}, False),
    (types("cache", "web"), {}, {"web"}, True),
    (types("cache"), {}, set(), False),
]


@pytest.mark.seed("S2.53", "S4.12", "S4.39-43")
@pytest.mark.parametrize(("required", "carried", "executing", "may"), REQUIRED)
def test_required(required: Constraint, carried: dict[str, str], executing: set[str], may: bool) -> None:
    verdict = judge(profile(labels=carried), wanted(required=required), executing)
    assert verdict.obstacle is (None if may else Obstacle.REQUIRED)


AVOID: Sequence[tuple[Constraint, dict[str, str], set[str], bool]] = [
    (Constraint(), GPU, {"heavy"}, True),
    (labels(spot="yes"), {"spot": "yes"}, set(), False),
    (labels(spot="yes"), {"spot": "no"}, set(), True),
    (labels(spot="yes"), {}, set(), True),
    # Only a runner with all of the labels is avoided.
    (labels(zone="eu", spot="yes"), {"zone": "eu"}, set(), True),
    (labels(zone="eu", spot="yes"), {"zone": "eu", "spot": "yes"}, set(), False),
    (need(("gpu", EXISTS, set())), GPU, set(), False),
    (need(("gpu", ABSENT, set())), {}, set(), False),
    (ids("r1"), {}, set(), False),
    (ids("r2"), {}, set(), True),
    # Anti-affinity by what it executes.
    (types("heavy"), {}, {"heavy"}, False),
    (types("heavy"), {}, {"light"}, True),
    (types("heavy", "light"), {}, {"light"}, False),
    # Each part by itself is enough.
    (need(("spot", IN, {"yes"}), runner_ids=frozenset({"r1"})), {"spot": "no"}, set(), False),
    (need(("spot", IN, {"yes"}), task_types=frozenset({"heavy"})), {"spot": "no"}, {"heavy"}, False),
    (need(("spot", IN, {"yes"}), task_types=frozenset({"heavy"})), {"spot": "no"}, {"light"}, True),
]


@pytest.mark.seed("S2.55")
@pytest.mark.parametrize(("avoid", "carried", "executing", "may"), AVOID)
def test_avoid(avoid: Constraint, carried: dict[str, str], executing: set[str], may: bool) -> None:
    verdict = judge(profile(labels=carried), wanted(avoid=avoid), executing)
    assert verdict.obstacle is (None if may else Obstacle.AVOID)


# What is preferred, the runner's labels, what it executes, and its score.
SCORES: Sequence[tuple[Sequence[Preference], dict[str, str], set[str], int]] = [
    ((), {}, set(), 0),
    ((Preference(1, labels(zone="eu")),), {}, set(), 50),
    ((Preference(1, labels(zone="eu")),), {"zone": "eu"}, set(), 55),
    ((Preference(1, labels(a="1", b="2", c="3")),), {"a": "1", "c": "3"}, set(), 60),
    ((Preference(1, ids("r1")),), {}, set(), 100),
    ((Preference(1, ids("r2")),), {}, set(), 50),
    # The named runner has 100 already: no more is to be had.
    ((Preference(1, need(("a", IN, {"1"}), runner_ids=frozenset({"r1"}))),), {"a": "1"}, set(), 100),
    ((Preference(1, need(("a", IN, {"1"}), runner_ids=frozenset({"r2"}))),), {"a": "1"}, set(), 55),
    # Twelve tags would be 110.
    (
        (Preference(1, labels(**{f"t{n}": "x" for n in range(12)})),),
        {f"t{n}": "x" for n in range(12)},
        set(),
        100,
    ),
    ((Preference(1, labels(**{f"t{n}": "x" for n in range(12)})),), {"t1": "x"}, set(), 55),
    ((Preference(1, types("cache")),), {}, {"cache"}, 55),
    ((Preference(1, types("cache", "web")),), {}, {"cache", "web"}, 60),
    ((Preference(10, labels(zone="eu")),), {"zone": "eu"}, set(), 550),
    ((Preference(2, labels(zone="eu")), Preference(1, ids("r1"))), {"zone": "eu"}, set(), 210),
    ((Preference(1, need(("spot", ABSENT, set()))),), {}, set(), 55),
]


@pytest.mark.seed("S2.54")
@pytest.mark.parametrize(("preferred", "carried", "executing", "score"), SCORES)
def test_score(
    preferred: Sequence[Preference], carried: dict[str, str], executing: set[str], score: int
) -> None:
    class_ = wanted(preferred=tuple(preferred))
    assert judge(profile(labels=carried), class_, executing).score == score


@pytest.mark.parametrize(
    ("runner", "class_", "obstacle"),
    [
        (profile(kinds=frozenset({SCRIPT})), wanted(), Obstacle.KIND),
        (profile(kinds=frozenset({SCRIPT, COMMAND})), wanted(), None),
        (profile(task_types=("render",)), wanted(task_type="encode"), Obstacle.TASK_TYPE),
        (profile(task_types=("enc*",)), wanted(task_type="encode"), None),
        (profile(task_types=("render",)), wanted(), Obstacle.TASK_TYPE),
        (profile(kinds=frozenset({FUNCTION})), wanted(kind=FUNCTION, function="f"), Obstacle.TASK_TYPE),
        (
            profile(kinds=frozenset({FUNCTION}), functions=frozenset({"f"})),
            wanted(kind=FUNCTION, function="f"),
            None,
        ),
        (
            profile(kinds=frozenset({FUNCTION}), functions=frozenset({"plan"})),
            wanted(kind=FUNCTION, task_type="plan"),
            None,
        ),
        (profile(resources=Resources(1000)), wanted(resources=Resources(2000)), Obstacle.RESOURCES),
        (profile(resources=Resources(2000)), wanted(resources=Resources(2000)), None),
        (
            profile(resources=Resources(2000)),
            wanted(resources=Resources(extended={"gpu": 1})),
            Obstacle.RESOURCES,
        ),
        (
            profile(resources=Resources(extended={"gpu": 2})),
            wanted(resources=Resources(extended={"gpu": 1})),
            None,
        ),
        (profile(), wanted(resources=Resources(2000)), None),
        (profile(capacity=0), wanted(), Obstacle.RESOURCES),
        (profile(), wanted(runner_ids=patterns.compile(r"^worker-\d{3}-kind$")), Obstacle.SCOPE),
        (profile("worker-007-kind"), wanted(runner_ids=patterns.compile(r"^worker-\d{3}-kind$")), None),
        (profile(running_types_unknown=True), wanted(avoid=types("heavy")), Obstacle.AVOID),
        (profile(running_types_unknown=True), wanted(required=types("heavy")), Obstacle.REQUIRED),
        (profile(running_types_unknown=True), wanted(preferred=(Preference(1, types("heavy")),)), None),
    ],
)
def test_obstacles(runner: RunnerProfile, class_: PlacementClass, obstacle: Obstacle | None) -> None:
    assert judge(runner, class_).obstacle is obstacle


def test_the_first_obstacle_in_the_order_of_the_filters_is_named() -> None:
    class_ = wanted(
        task_type="render",
        resources=Resources(2000),
        runner_ids=patterns.compile("^worker"),
        required=labels(zone="eu"),
        avoid=labels(spot="yes"),
    )
    runner: dict[str, Any] = {
        "runner_id": "r1",
        "kinds": frozenset({SCRIPT}),
        "task_types": ("encode",),
        "resources": Resources(1000),
        "labels": {"spot": "yes"},
    }
    found = []
    for change in (
        {"kinds": frozenset({COMMAND})},
        {"task_types": ("*",)},
        {"resources": None},
        {"runner_id": "worker-1"},
        {"labels": {"spot": "yes", "zone": "eu"}},
        {"labels": {"zone": "eu"}},
    ):
        found.append(judge(profile(**runner), class_).obstacle)
        runner.update(change)
    assert found == [
        Obstacle.KIND,
        Obstacle.TASK_TYPE,
        Obstacle.RESOURCES,
        Obstacle.SCOPE,
        Obstacle.REQUIRED,
        Obstacle.AVOID,
    ]
    assert judge(profile(**runner), class_).eligible


def test_a_scope_names_the_tenants_a_runner_serves() -> None:
    assert profile().serves("any")
    assert profile(tenants=frozenset({"acme"})).serves("acme")
    assert not profile(tenants=frozenset({"acme"})).serves("other")


@pytest.mark.seed("S0.44")
@pytest.mark.parametrize(
    ("runner_id", "eligible"),
    [
        ("worker-001-kind", True),
        ("worker-999-kind", True),
        ("worker-1-kind", False),
        ("worker-0001-kind", False),
        ("worker-abc-kind", False),
        ("worker-001-kind-2", False),
        ("my-worker-001-kind", False),
    ],
)
def test_only_runners_whose_id_matches_the_pattern_of_the_type_get_its_tasks(
    runner_id: str, eligible: bool
) -> None:
    message = lease_service_pb2.PlacementClass(class_id=1, runner_id_pattern=r"^worker-\d{3}-kind$")
    message.kind = runner_pb2.EXECUTION_KIND_COMMAND
    assert judge(profile(runner_id), convert.placement_class(message)).eligible is eligible


def test_invalid_pattern_matches_no_runner() -> None:
    message = lease_service_pb2.PlacementClass(class_id=1, kind=COMMAND, runner_id_pattern="(")  # type: ignore[arg-type]
    assert judge(profile(), convert.placement_class(message)).obstacle is Obstacle.SCOPE


def test_class_without_running_types_ignores_what_a_runner_executes() -> None:
    together = wanted(required=types("cache"), avoid=types("heavy"))
    assert together.depends_on_running_types and not wanted().depends_on_running_types
    assert not judge(profile(), together).eligible
    assert judge(profile(), without_running_types(together)).eligible
    assert not judge(profile(running_types_unknown=True), without_running_types(together)).eligible


def test_type_patterns_and_scopes() -> None:
    assert serves_type(["render"], "render") and not serves_type(["render"], "render2")
    assert serves_type(["ren*"], "render") and serves_type(["*"], "")
    assert not serves_type(["render"], "")
    assert scope_permits("", "any") and scope_permits("edge-*", "edge-1") and scope_permits("one", "one")
    assert not scope_permits("edge-*", "core-1") and not scope_permits("one", "one2")


# ---- the choice among those that may


def test_the_highest_score_wins_over_the_least_load() -> None:
    class_ = wanted(preferred=(Preference(1, labels(zone="eu")),))
    plans = planned(
        [offer("a", 1, used=9), offer("b", 9)], [lane()], [class_], {"a": profile("a", labels={"zone": "eu"})}
    )
    assert counts(plans) == {"a": 1}


def test_the_named_runner_wins_over_the_one_with_more_tags() -> None:
    preference = need(("a", IN, {"1"}), ("b", IN, {"1"}), runner_ids=frozenset({"named"}))
    class_ = wanted(preferred=(Preference(1, preference),))
    people = {"tagged": profile("tagged", labels={"a": "1", "b": "1"})}
    assert counts(planned([offer("tagged"), offer("named")], [lane()], [class_], people)) == {"named": 1}


def test_of_equal_scores_the_least_loaded_wins() -> None:
    assert counts(planned([offer("a", 2, used=8), offer("b", 5, used=5)], [lane()])) == {"b": 1}


def test_of_equal_loads_the_runner_that_registered_first_wins() -> None:
    offers = [offer("young", since=30.0), offer("old", since=10.0), offer("middle", since=20.0)]
    assert counts(planned(offers, [lane()])) == {"old": 1}
    assert counts(planned(offers, [lane(backlog=2)])) == {"old": 1, "middle": 1}


def test_a_runner_that_does_not_serve_the_tenant_is_passed_over() -> None:
    people = {"scoped": profile("scoped", tenants=frozenset({"acme"}))}

    def permits(key: str, tenant: str, class_: PlacementClass) -> bool:
        return (people.get(key) or profile(key)).serves(tenant)

    offers = [offer("scoped", 1, limited=True), offer("open", 1, used=9)]
    lanes = [lane(1, 1, tenant="acme"), lane(1, 1, tenant="other")]
    plans = planned(offers, lanes, profiles=people, permits=permits)
    assert [part.tenant for part in plans["scoped"].tenants] == ["acme"]
    assert [part.tenant for part in plans["open"].tenants] == ["other"]


@pytest.mark.seed("S2.53-56")
def test_tags_of_the_contract_are_required_preferred_and_avoided() -> None:
    message = lease_service_pb2.PlacementClass(class_id=1, kind=runner_pb2.EXECUTION_KIND_COMMAND)
    message.placement.required.tags.extend(["gpu", "us-west-2"])
    message.placement.avoid.tags.append("spot")
    preferred = message.placement.preferred.add(weight=1)
    preferred.runners.tags.append("ssd")
    found = convert.placement_class(message)
    plain = {"gpu": "", "region": "us-west-2"}
    assert judge(profile(labels=plain), found).eligible
    assert judge(profile(labels={"gpu": ""}), found).obstacle is Obstacle.REQUIRED
    assert judge(profile(labels={**plain, "billing": "spot"}), found).obstacle is Obstacle.AVOID
    fast = judge(profile(labels={**plain, "disk": "ssd"}), found)
    assert fast.score == judge(profile(labels=plain), found).score + 5


@pytest.mark.seed("S0.36")
@pytest.mark.parametrize(
    ("problem", "served"),
    [("k8s_target_port-detection-1", True), ("redis-down-1", True), ("redis-down-2", False), ("", False)],
)
def test_a_runner_takes_the_problems_that_it_supports_by_name_or_pattern(problem: str, served: bool) -> None:
    runner = profile(task_types=("k8s_target_port-*", "redis-down-1"))
    verdict = judge(runner, wanted(task_type=problem))
    assert verdict.obstacle is (None if served else Obstacle.TASK_TYPE)
