"""Which runner may take which placement class, and how much it is preferred.

What a runner is (labels, kinds, types, functions, scope) is compared with a class once and kept; only a class
that asks what a runner executes at the moment is asked again for every plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache

from taskyard_scheduler.domain.resources import NO_RESOURCES, Resources


class Operator(IntEnum):
    """Operators of a set-based requirement, numbered as in the contract."""

    IN = 1
    NOT_IN = 2
    EXISTS = 3
    DOES_NOT_EXIST = 4


class Obstacle(Enum):
    """Why a runner cannot take a class, whatever else it does."""

    KIND = "kind"
    TASK_TYPE = "task_type"
    SCOPE = "scope"
    REQUIRED = "required"
    AVOID = "avoid"
    RESOURCES = "resources"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        if self.operator is Operator.EXISTS:
            return self.key in labels
        if self.operator is Operator.DOES_NOT_EXIST:
            return self.key not in labels
        found = self.key in labels and labels[self.key] in self.values
        return found if self.operator is Operator.IN else not found


@dataclass(frozen=True, slots=True)
class Constraint:
    """A set of runners; the empty constraint names none for `avoid` and all for `required`."""

    runner_ids: frozenset[str] = frozenset()
    labels: tuple[Requirement, ...] = ()
    task_types: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.runner_ids or self.labels or self.task_types)

    def met_by(self, runner: RunnerProfile, executing: Collection[str]) -> bool:
        """Whether the runner satisfies every part that is given."""
        if self.runner_ids and runner.runner_id not in self.runner_ids:
            return False
        if self.task_types and self.task_types.isdisjoint(executing):
            return False
        return all(requirement.met_by(runner.labels) for requirement in self.labels)

    def part_met_by(self, runner: RunnerProfile, executing: Collection[str]) -> bool:
        """Whether the runner is one of the ids, has all the labels, or executes one of the types.

        `avoid` excludes a runner for each of these alone.
        """
        if runner.runner_id in self.runner_ids or not self.task_types.isdisjoint(executing):
            return True
        return bool(self.labels) and all(requirement.met_by(runner.labels) for requirement in self.labels)


@dataclass(frozen=True, slots=True)
class Preference:
    """A weighted wish."""

    weight: int
    runners: Constraint


@dataclass(frozen=True, slots=True)
class PlacementClass:
    """What matters for the placement of a task."""

    tenant: str
    class_id: int
    kind: int
    task_type: str = ""
    function: str = ""
    required: Constraint = Constraint()
    preferred: tuple[Preference, ...] = ()
    avoid: Constraint = Constraint()
    resources: Resources = NO_RESOURCES
    runner_id_pattern: str = ""

    @property
    def moody(self) -> bool:
        """Whether the answer depends on what a runner executes at the moment."""
        wishes = (self.required, self.avoid, *(wish.runners for wish in self.preferred))
        return any(wish.task_types for wish in wishes)


@dataclass(frozen=True, slots=True)
class RunnerProfile:
    """What a runner is, as far as placement cares; labels are those in force."""

    runner_id: str
    labels: Mapping[str, str]
    kinds: frozenset[int]
    task_types: tuple[str, ...]
    functions: frozenset[str]
    capacity: int
    resources: Resources | None = None
    # Tenants it may serve; empty = all.
    tenants: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first obstacle, or how much the runner is preferred."""

    obstacle: Obstacle | None
    score: int = 0

    @property
    def eligible(self) -> bool:
        return self.obstacle is None


# Runners of kind FUNCTION declare functions; the number is that of the contract.
FUNCTION_KIND = 5


def judge(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str] = ()) -> Verdict:
    """Whether the runner may take tasks of this class, and its score among those that may."""
    obstacle = _obstacle(runner, wanted, executing)
    if obstacle is not None:
        return Verdict(obstacle)
    score = sum(wish.weight for wish in wanted.preferred if wish.runners.met_by(runner, executing))
    return Verdict(None, score)


def _obstacle(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str]) -> Obstacle | None:
    if runner.tenants and wanted.tenant not in runner.tenants:
        return Obstacle.SCOPE
    if wanted.kind not in runner.kinds:
        return Obstacle.KIND
    if not serves_type(runner.task_types, wanted.task_type):
        return Obstacle.TASK_TYPE
    if wanted.kind == FUNCTION_KIND and (wanted.function or wanted.task_type) not in runner.functions:
        return Obstacle.TASK_TYPE
    if wanted.runner_id_pattern and not id_matches(wanted.runner_id_pattern, runner.runner_id):
        return Obstacle.SCOPE
    if not wanted.required.met_by(runner, executing):
        return Obstacle.REQUIRED
    if wanted.avoid and wanted.avoid.part_met_by(runner, executing):
        return Obstacle.AVOID
    if runner.resources is not None and not runner.resources.holds(wanted.resources):
        return Obstacle.RESOURCES
    return None


def serves_type(patterns: Iterable[str], task_type: str) -> bool:
    """Whether a runner with these type patterns executes the type; a task without a type needs "*"."""
    for pattern in patterns:
        if pattern == "*" or pattern == task_type:
            return True
        if pattern.endswith("*") and task_type.startswith(pattern[:-1]):
            return True
    return False


def scope_permits(pattern: str, runner_id: str) -> bool:
    """Whether a key with this runner scope may act as the runner; a trailing "*" matches a prefix."""
    if not pattern:
        return True
    return runner_id.startswith(pattern[:-1]) if pattern.endswith("*") else runner_id == pattern


@lru_cache(maxsize=4096)
def id_matches(pattern: str, runner_id: str) -> bool:
    """Whether a runner id matches a task type's pattern; a pattern that does not compile matches nothing."""
    try:
        return re.search(pattern, runner_id) is not None
    except re.error:
        return False
