"""Which runner may take which placement class, and how much it is preferred.

The filters in order: kind and task type, total resources, scope, `required`, `avoid`. They depend
on the runner's profile, so the result is kept until that changes; only a class with rules on the task types
that a runner executes is checked again for every plan. Temporary obstacles come after them: a refusal, a
drain, lack of free capacity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Protocol

from taskyard_scheduler.domain.resources import NO_RESOURCES, Resources


class Operator(IntEnum):
    """Operators of a set-based requirement, numbered as in the contract."""

    IN = 1
    NOT_IN = 2
    EXISTS = 3
    DOES_NOT_EXIST = 4
    # Not of the contract's enum: RunnerConstraint.tags. The key is a label's key or value.
    TAGGED = 100


class Obstacle(Enum):
    """Why a runner cannot take a class; the first five do not depend on what it executes."""

    KIND = "kind"
    TASK_TYPE = "task_type"
    RESOURCES = "resources"
    SCOPE = "scope"
    REQUIRED = "required"
    AVOID = "avoid"
    REFUSED = "refused"
    DRAINING = "draining"
    CAPACITY = "capacity"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        if self.operator is Operator.EXISTS:
            return self.key in labels
        if self.operator is Operator.TAGGED:
            return self.key in labels or self.key in labels.values()
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

    def affinity(self, runner: RunnerProfile, executing: Collection[str]) -> int:
        """How well the runner matches a preference: 50, plus up to 50 for each part that matches."""
        named = NAMED_POINTS if runner.runner_id in self.runner_ids else 0
        tags = sum(requirement.met_by(runner.labels) for requirement in self.labels)
        running = sum(task_type in executing for task_type in self.task_types)
        return min(MAX_POINTS, BASE_POINTS + named + TAG_POINTS * (tags + running))

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
    """A weighted preference."""

    weight: int
    runners: Constraint


class RunnerIds(Protocol):
    """A set of runner ids, given by a pattern."""

    def matches(self, text: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class PlacementClass:
    """The placement-relevant fields of a task; the id is derived from them, so tenants may share a class."""

    class_id: int
    kind: int
    task_type: str = ""
    function: str = ""
    required: Constraint = Constraint()
    preferred: tuple[Preference, ...] = ()
    avoid: Constraint = Constraint()
    resources: Resources = NO_RESOURCES
    # Of the task type; None = any.
    runner_ids: RunnerIds | None = None
    # Whether a hard rule depends on the task types that the runner executes.
    checks_running_types: bool = False
    # Whether any rule or preference depends on the task types that the runner executes.
    depends_on_running_types: bool = field(init=False)

    def __post_init__(self) -> None:
        constraints = (self.required, self.avoid, *(preference.runners for preference in self.preferred))
        object.__setattr__(
            self, "depends_on_running_types", any(constraint.task_types for constraint in constraints)
        )
        if self.required.task_types or self.avoid.task_types:
            object.__setattr__(self, "checks_running_types", True)


@dataclass(frozen=True, slots=True)
class RunnerProfile:
    """The placement-relevant profile of a runner; labels are the effective ones."""

    runner_id: str
    labels: Mapping[str, str]
    kinds: frozenset[int]
    task_types: tuple[str, ...]
    functions: frozenset[str]
    capacity: int
    resources: Resources | None = None
    # Tenants it may serve; empty = all.
    tenants: frozenset[str] = frozenset()
    # First registration; among equal runners the older one goes first.
    register_time: float = 0.0
    # A pull worker does not report what it executes.
    running_types_unknown: bool = False

    def serves(self, tenant: str) -> bool:
        """Whether its scope includes the tenant."""
        return not self.tenants or tenant in self.tenants


@dataclass(frozen=True, slots=True)
class PlacementVerdict:
    """The first obstacle, or how much the runner is preferred."""

    obstacle: Obstacle | None
    score: int = 0

    @property
    def eligible(self) -> bool:
        return self.obstacle is None


# Runners of kind FUNCTION declare functions, tasks of kind EXTERNAL go to none; numbered as in the contract.
FUNCTION_KIND, EXTERNAL_KIND = 5, 6
BASE_POINTS, NAMED_POINTS, TAG_POINTS, MAX_POINTS = 50, 50, 5, 100


def judge(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str] = ()) -> PlacementVerdict:
    """Whether the runner may take tasks of this class, and its score among those that may.

    The tenant of the task is not checked here: classes are shared; see `RunnerProfile.serves`.
    """
    obstacle = _obstacle(runner, wanted, executing)
    if obstacle is not None:
        return PlacementVerdict(obstacle)
    return PlacementVerdict(None, score(runner, wanted, executing))


def without_running_types(wanted: PlacementClass) -> PlacementClass:
    """The class without its rules on running task types: a runner that fails it can never take its tasks."""
    if not wanted.depends_on_running_types:
        return wanted
    return replace(
        wanted,
        required=replace(wanted.required, task_types=frozenset()),
        preferred=(),
        avoid=replace(wanted.avoid, task_types=frozenset()),
        checks_running_types=bool(wanted.required.task_types or wanted.avoid.task_types),
    )


def score(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str] = ()) -> int:
    """The class's preference score of the runner."""
    return sum(p.weight * p.runners.affinity(runner, executing) for p in wanted.preferred)


def _obstacle(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str]) -> Obstacle | None:
    if wanted.kind not in runner.kinds:
        return Obstacle.KIND
    if not serves_type(runner.task_types, wanted.task_type):
        return Obstacle.TASK_TYPE
    if wanted.kind == FUNCTION_KIND and (wanted.function or wanted.task_type) not in runner.functions:
        return Obstacle.TASK_TYPE
    if runner.capacity < 1 or (runner.resources is not None and not runner.resources.holds(wanted.resources)):
        return Obstacle.RESOURCES
    if wanted.runner_ids is not None and not wanted.runner_ids.matches(runner.runner_id):
        return Obstacle.SCOPE
    if not wanted.required.met_by(runner, executing):
        return Obstacle.REQUIRED
    if wanted.avoid and wanted.avoid.part_met_by(runner, executing):
        return Obstacle.AVOID
    if wanted.checks_running_types and runner.running_types_unknown:
        return Obstacle.AVOID
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
