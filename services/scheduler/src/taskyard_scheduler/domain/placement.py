"""Which runner may take which placement class, and how much it is preferred.

The filters in order: kind and task type, what the runner could hold at all, scope, `required`, `avoid`. They
depend on what the runner is, so the answer is kept until that changes; only a class that asks what a runner
executes at the moment is asked again for every plan. What passes with time comes after them: a refusal, a
drain, the room there is now.
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


class Obstacle(Enum):
    """Why a runner cannot take a class; the first five hold whatever else it does."""

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
        """How well the runner fits a wish for such a one: 50, and up to 50 more for what it has of it."""
        named = NAMED_POINTS if runner.runner_id in self.runner_ids else 0
        tags = sum(requirement.met_by(runner.labels) for requirement in self.labels)
        company = sum(task_type in executing for task_type in self.task_types)
        return min(MAX_POINTS, BASE_POINTS + named + TAG_POINTS * (tags + company))

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


class RunnerIds(Protocol):
    """A set of runner ids, given by a pattern."""

    def matches(self, text: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class PlacementClass:
    """What matters for the placement of a task; the id is made of the rest, so tenants may share one."""

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
    # A hard rule asks what the runner executes.
    company: bool = False
    # Whether the answer depends on what a runner executes at the moment.
    moody: bool = field(init=False)

    def __post_init__(self) -> None:
        wishes = (self.required, self.avoid, *(wish.runners for wish in self.preferred))
        object.__setattr__(self, "moody", any(wish.task_types for wish in wishes))
        if self.required.task_types or self.avoid.task_types:
            object.__setattr__(self, "company", True)


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
    # First registration; of runners that are alike the older one goes first.
    register_time: float = 0.0
    # A pull worker says nothing of what it holds, so nobody knows what company a task would have there.
    secretive: bool = False

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

    The tenant of the task is not looked at: classes are shared, `RunnerProfile.serves` says the rest.
    """
    obstacle = _obstacle(runner, wanted, executing)
    if obstacle is not None:
        return PlacementVerdict(obstacle)
    return PlacementVerdict(None, score(runner, wanted, executing))


def lasting(wanted: PlacementClass) -> PlacementClass:
    """The class without what it asks of the company on a runner: whoever fails it never may take a task."""
    if not wanted.moody:
        return wanted
    return replace(
        wanted,
        required=replace(wanted.required, task_types=frozenset()),
        preferred=(),
        avoid=replace(wanted.avoid, task_types=frozenset()),
        company=bool(wanted.required.task_types or wanted.avoid.task_types),
    )


def score(runner: RunnerProfile, wanted: PlacementClass, executing: Collection[str] = ()) -> int:
    """How much the class prefers the runner."""
    return sum(wish.weight * wish.runners.affinity(runner, executing) for wish in wanted.preferred)


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
    if wanted.company and runner.secretive:
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
