"""Which places are lent to taskdb, and what becomes of the tasks that it leases on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from taskyard_scheduler.domain.credit import (
    MAX_CLASSES,
    MAX_PLACES,
    Decision,
    Lender,
    Loan,
    RecentClasses,
    decide,
)
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import (
    Constraint,
    Operator,
    PlacementClass,
    Preference,
    Requirement,
    RunnerProfile,
)
from taskyard_scheduler.domain.resources import Resources

ONE = frozenset({1})


def lender(room: int = 8, lent: int = 0, **fields: bool) -> Lender:
    fields.setdefault("open", True)
    return Lender("r", room, lent, **fields)


def run(
    *lenders: Lender,
    waits: Callable[[str], bool] = lambda key: False,
    backlog: int = 0,
    classes: frozenset[int] = ONE,
    lent_classes: frozenset[int] = ONE,
) -> Decision:
    lent = {found.key: lent_classes for found in lenders if found.lent}
    return decide(lenders, waits, backlog, lambda _: classes, lent)


def works(key: str) -> bool:
    return True


@pytest.mark.parametrize(("room", "places"), [(1, 1), (2, 1), (8, 4), (9, 5), (1000, MAX_PLACES)])
def test_half_of_the_free_places_are_lent(room: int, places: int) -> None:
    assert run(lender(room)) == Decision([Loan("r", places, ONE)])


def test_a_full_runner_or_one_that_accepts_no_work_lends_nothing() -> None:
    assert run(lender(0)) == Decision()
    assert run(lender(open=False)) == Decision()


def test_nothing_is_lent_while_work_waits_that_the_runner_could_take() -> None:
    assert run(lender(), waits=works, backlog=1).loans == []


def test_a_runner_lends_while_work_waits_for_another() -> None:
    other = Lender("other", 8, 0, open=True)
    decision = run(lender(), other, waits=lambda key: key == "r", backlog=1)
    assert decision == Decision([Loan("other", 4, ONE)])


def test_lent_places_rest_while_the_others_suffice_for_what_waits() -> None:
    """taskdb uses no credit after it learned of work, unless the scheduler has considered that."""
    assert run(lender(8, 4), waits=works, backlog=4) == Decision(considered=False)


def test_lent_places_are_withdrawn_when_they_are_needed_for_what_waits() -> None:
    assert run(lender(8, 4), waits=works, backlog=5) == Decision(withdrawn=["r"])
    assert run(lender(1, 1), waits=works, backlog=1) == Decision(withdrawn=["r"])


def test_the_places_of_a_doubtful_runner_are_withdrawn() -> None:
    assert run(lender(8, 4, open=False)) == Decision(withdrawn=["r"])


def test_nothing_changes_until_a_withdrawal_is_settled() -> None:
    assert run(lender(8, 4, withdrawing=True)) == Decision()
    assert run(lender(8, 4, withdrawing=True, open=False)) == Decision()


def test_used_places_are_lent_again_in_larger_steps() -> None:
    assert run(lender(8, 3)) == Decision()
    assert run(lender(8, 2)) == Decision([Loan("r", 2, ONE)])


def test_new_classes_are_added_to_a_loan() -> None:
    assert run(lender(8, 4), classes=frozenset({1, 2})) == Decision([Loan("r", 0, frozenset({1, 2}))])


def test_a_runner_that_fits_no_known_class_lends_nothing() -> None:
    assert run(lender(), classes=frozenset()) == Decision()


# ---- classes


def profile(runner_id: str, **labels: str) -> RunnerProfile:
    return RunnerProfile(runner_id, labels, frozenset({1}), ("*",), frozenset(), capacity=8)


def fitting(wanted: PlacementClass, *profiles: RunnerProfile, accounted: bool = False) -> list[str]:
    """The runners to which a class may be leased unseen."""
    matches, recent = Matches(), RecentClasses()
    for found in profiles:
        matches.put(found.runner_id, found)
    recent.add(wanted)
    return [
        key
        for key in matches.profiles
        if recent.fitting(Lender(key, 8, 0, open=True, accounted=accounted), matches) == {wanted.class_id}
    ]


FAST = Constraint(labels=(Requirement("fast", Operator.EXISTS),))


def test_a_class_goes_to_eligible_runners() -> None:
    runners = (profile("a", fast="1"), profile("b"))
    assert fitting(PlacementClass(1, kind=1), *runners) == ["a", "b"]
    assert fitting(PlacementClass(1, kind=1, required=FAST), *runners) == ["a"]


def test_a_class_with_preferences_goes_to_the_best_runners() -> None:
    runners = (profile("a", fast="1"), profile("b"))
    preferring = PlacementClass(1, kind=1, preferred=(Preference(1, FAST),))
    assert fitting(preferring, *runners) == ["a"]


def test_a_class_that_depends_on_what_runs_is_claimed() -> None:
    avoiding = PlacementClass(1, kind=1, avoid=Constraint(task_types=frozenset({"other"})))
    assert fitting(avoiding, profile("a")) == []


def test_a_class_that_costs_resources_is_claimed_where_they_are_accounted() -> None:
    costly = PlacementClass(1, kind=1, resources=Resources(cpu_millis=1000))
    assert fitting(costly, profile("a")) == ["a"]
    assert fitting(costly, profile("a"), accounted=True) == []


def test_the_classes_that_had_work_last_are_kept() -> None:
    matches, recent = Matches(), RecentClasses()
    matches.put("r", profile("r"))
    for class_id in (*range(MAX_CLASSES), 0, MAX_CLASSES):
        recent.add(PlacementClass(class_id, kind=1))
    kept = recent.fitting(lender(), matches)
    assert (len(kept), 0 in kept, 1 in kept, MAX_CLASSES in kept) == (MAX_CLASSES, True, False, True)
