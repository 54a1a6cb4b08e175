"""Which free places a scheduler lends to taskdb, so that a new task is leased when it is created.

A place is lent only while nothing waits that its runner could take: then no task is overtaken. At most half
of a runner's free places are lent, the others are claimed for in the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass

# Most places of one runner that are lent at a time.
MAX_PLACES = 32
# Most classes for which places are lent; those that had work last.
MAX_CLASSES = 64


@dataclass(frozen=True, slots=True)
class Lender:
    """A runner: its places that no task has, including those that are lent, and whether it may lend."""

    key: str
    room: int
    lent: int
    # Its session accepts work, has refused none lately, and is not reserved for a task that needs much of it.
    open: bool
    # Withdrawn places are not settled yet.
    withdrawing: bool = False
    # It accounts resources: tasks that cost some are claimed, because a claim compares them with the budget.
    accounted: bool = False


class Loan(NamedTuple):
    """Places that are added to what a runner has lent, and the classes it may take."""

    key: str
    places: int
    class_ids: frozenset[int]


@dataclass(slots=True)
class Decision:
    """What changes: loans, runners whose credit is withdrawn, and whether the queue was considered.

    As long as `considered` is false, taskdb uses no credit after it learned of work that waits.
    """

    loans: list[Loan] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    considered: bool = True


class RecentClasses:
    """The classes that had work last: their next tasks may come when nothing waits."""

    def __init__(self) -> None:
        self.version = 0
        self._classes: dict[int, PlacementClass] = {}
        # The best score of each class, as of a version of the matches.
        self._best: dict[int, int] = {}
        self._best_version = -1

    def add(self, wanted: PlacementClass) -> None:
        """This class has work."""
        known = self._classes.pop(wanted.class_id, None) is not None
        self._classes[wanted.class_id] = wanted
        if not known:
            self.version += 1
        if len(self._classes) > MAX_CLASSES:
            del self._classes[next(iter(self._classes))]

    def fitting(self, lender: Lender, matches: Matches) -> frozenset[int]:
        """The classes that may be leased to a runner unseen: it is among the best for them, and neither its
        resources nor what it executes matters."""
        if self._best_version != matches.version:
            self._best_version = matches.version
            self._best.clear()
        found = self._classes.values()
        return frozenset(wanted.class_id for wanted in found if self._fits(wanted, lender, matches))

    def _fits(self, wanted: PlacementClass, lender: Lender, matches: Matches) -> bool:
        if wanted.depends_on_running_types or (lender.accounted and wanted.resources):
            return False
        scores = matches.of(wanted)
        if lender.key not in scores:
            return False
        if wanted.class_id not in self._best:
            self._best[wanted.class_id] = max(scores.values())
        return scores[lender.key] == self._best[wanted.class_id]


def decide(
    lenders: Sequence[Lender],
    waits: Callable[[str], bool],
    backlog: int,
    classes: Callable[[Lender], frozenset[int]],
    lent_classes: Mapping[str, frozenset[int]],
) -> Decision:
    """What to lend and to withdraw now.

    `waits` is whether work waits that a runner could take, `backlog` roughly how much waits, `lent_classes`
    are the classes of the loans so far.
    """
    decision = Decision()
    for lender in lenders:
        if lender.withdrawing:
            continue
        blocked = waits(lender.key)
        if lender.open and not blocked:
            loan = _loan(lender, classes(lender), lent_classes.get(lender.key, frozenset()))
            if loan is not None:
                decision.loans.append(loan)
        elif lender.lent and (not lender.open or lender.room - lender.lent < backlog):
            decision.withdrawn.append(lender.key)
        elif lender.lent:
            # The other places suffice for what waits; until it is claimed, the lent ones rest.
            decision.considered = False
    return decision


def _loan(lender: Lender, class_ids: frozenset[int], before: frozenset[int]) -> Loan | None:
    target = min(MAX_PLACES, (lender.room + 1) // 2) if class_ids else 0
    missing = target - lender.lent
    # Small changes wait, so that not every task costs a message.
    if missing > 0 and lender.lent <= target // 2:
        return Loan(lender.key, missing, class_ids)
    return Loan(lender.key, 0, class_ids) if lender.lent and class_ids != before else None
