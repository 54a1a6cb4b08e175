"""Why a runner can or cannot take a task: its first obstacle and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from taskyard_scheduler.domain.placement import (
    FUNCTION_KIND,
    Constraint,
    Obstacle,
    Operator,
    PlacementClass,
    Requirement,
    RunnerProfile,
    judge,
)
from taskyard_scheduler.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class Candidate:
    """The state of a runner: free capacity, free resources (`budget`) and the task types it executes."""

    profile: RunnerProfile
    online: bool = True
    draining: bool = False
    free: int = 0
    used: int = 0
    budget: Resources | None = None
    executing: frozenset[str] = frozenset()
    # Seconds until the runner is offered such a task again, after it refused one as unsupported.
    refused_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunnerVerdict:
    """The result of one runner."""

    runner_id: str
    obstacle: Obstacle | None
    message: str
    remedy: str = ""
    score: int = 0
    # Seconds until the obstacle ends without intervention, if known.
    open_seconds: float | None = None


# From the smallest obstacle to the largest.
_ORDER = (
    None,
    Obstacle.CAPACITY,
    Obstacle.REFUSED,
    Obstacle.DRAINING,
    Obstacle.OFFLINE,
    Obstacle.AVOID,
    Obstacle.REQUIRED,
    Obstacle.SCOPE,
    Obstacle.RESOURCES,
    Obstacle.TASK_TYPE,
    Obstacle.KIND,
)
_KINDS = {1: "command", 2: "script", 3: "container", 4: "wasm", 5: "function"}


def explain_runners(
    wanted: PlacementClass, pinned: str, candidates: Iterable[Candidate]
) -> list[RunnerVerdict]:
    """Every runner, sorted by obstacle and then by score."""
    found = [_explain(wanted, pinned, candidate) for candidate in candidates]
    return sorted(
        found, key=lambda verdict: (_ORDER.index(verdict.obstacle), -verdict.score, verdict.runner_id)
    )


def _explain(wanted: PlacementClass, pinned: str, candidate: Candidate) -> RunnerVerdict:
    runner = candidate.profile
    verdict = judge(runner, wanted, candidate.executing)
    obstacle = verdict.obstacle
    if obstacle in (None, Obstacle.AVOID) and pinned and runner.runner_id != pinned:
        obstacle = Obstacle.REQUIRED
    if obstacle is None:
        obstacle = _temporary_obstacle(wanted, candidate)
    message, remedy = _describe(obstacle, wanted, pinned, candidate)
    waits = candidate.refused_seconds if obstacle is Obstacle.REFUSED else None
    return RunnerVerdict(runner.runner_id, obstacle, message, remedy, verdict.score, waits)


def _temporary_obstacle(wanted: PlacementClass, candidate: Candidate) -> Obstacle | None:
    """An obstacle that passes with time."""
    if not candidate.online:
        return Obstacle.OFFLINE
    if candidate.draining:
        return Obstacle.DRAINING
    if candidate.refused_seconds > 0:
        return Obstacle.REFUSED
    if candidate.free < 1 or (candidate.budget is not None and not candidate.budget.holds(wanted.resources)):
        return Obstacle.CAPACITY
    return None


def _describe(
    obstacle: Obstacle | None, wanted: PlacementClass, pinned: str, candidate: Candidate
) -> tuple[str, str]:
    runner = candidate.profile
    match obstacle:
        case None:
            return (
                f"it could take the task: {candidate.free} free place{'' if candidate.free == 1 else 's'}",
                "",
            )
        case Obstacle.KIND:
            kind = _KINDS.get(wanted.kind, str(wanted.kind))
            return f"it does not run tasks of kind {kind}", f"set it up for kind {kind}"
        case Obstacle.TASK_TYPE:
            return _describe_type(wanted, runner)
        case Obstacle.RESOURCES:
            return _describe_resources(wanted, runner.resources, "has")
        case Obstacle.SCOPE:
            message = "its id does not match the runner_id_pattern of the task type"
            return message, "change runner_id_pattern, or enrol the runner under another id"
        case Obstacle.REQUIRED:
            return _describe_required(wanted.required, pinned, candidate)
        case Obstacle.AVOID:
            return _describe_avoid(wanted.avoid, candidate)
        case Obstacle.OFFLINE:
            return "it is not connected", "start its agent, or repair its network"
        case Obstacle.DRAINING:
            return "it is draining: it takes no new work", f"undrain runners/{runner.runner_id}"
        case Obstacle.REFUSED:
            left = f"{candidate.refused_seconds:.0f} s"
            message = f"it refused a similar task as unsupported and gets no other for {left}"
            return message, "correct what the runner lacks, then restart its agent"
        case Obstacle.CAPACITY:
            return _describe_capacity(wanted, candidate)


def _describe_type(wanted: PlacementClass, runner: RunnerProfile) -> tuple[str, str]:
    function = wanted.function or wanted.task_type
    if wanted.kind == FUNCTION_KIND and function not in runner.functions:
        return f'it has no function "{function}"', f'register the function "{function}" on it'
    served = f'task type "{wanted.task_type}"' if wanted.task_type else "tasks without a type"
    return f"it does not serve {served}", f"add {served} to its task_types"


def _describe_resources(wanted: PlacementClass, amount: Resources | None, verb: str) -> tuple[str, str]:
    if amount is None:
        return "it takes no tasks: its capacity is 0", "set its capacity to 1 or more"
    missing = list(_missing_resources(amount, wanted.resources))
    message = ", ".join(
        f"the task needs {need} {name} and it {verb} {max(0, has)}" for name, need, has in missing
    )
    return message, "lower spec.resources, or use a larger runner"


def _missing_resources(amount: Resources, cost: Resources) -> Iterable[tuple[str, int, int]]:
    for name in ("cpu_millis", "memory_mb", "disk_mb"):
        need, has = getattr(cost, name), getattr(amount, name)
        if need > has:
            yield name, need, has
    for name, need in cost.extended.items():
        if need > (has := amount.extended.get(name, 0)):
            yield name, need, has


def _describe_required(required: Constraint, pinned: str, candidate: Candidate) -> tuple[str, str]:
    runner = candidate.profile
    wanted_ids = required.runner_ids or (frozenset((pinned,)) if pinned else frozenset())
    if wanted_ids and runner.runner_id not in wanted_ids:
        message = f"placement.required names {_join_quoted(sorted(wanted_ids))} only"
        return message, f"add {runner.runner_id} to placement.required.runner_ids"
    for requirement in required.labels:
        if not requirement.met_by(runner.labels):
            return _describe_requirement(requirement, runner)
    message = f"it executes no task of type {_join_quoted(sorted(required.task_types))}"
    return message, "start one there, or take it out of placement.required.task_types"


def _describe_requirement(requirement: Requirement, runner: RunnerProfile) -> tuple[str, str]:
    key, values = requirement.key, sorted(requirement.values)
    has = f'its label {key} is "{runner.labels[key]}"' if key in runner.labels else f"it has no label {key}"
    match requirement.operator:
        case Operator.IN:
            wanted = (
                f", not {_join_quoted(values)}"
                if key in runner.labels
                else f"; {_join_quoted(values)} is required"
            )
            return has + wanted, f'set its label {key} to "{values[0] if values else ""}"'
        case Operator.NOT_IN:
            return f"{has}, which the task excludes", f"change or remove its label {key}"
        case Operator.TAGGED:
            return f'none of its labels is or has the value "{key}"', f"add a label {key} to it"
        case Operator.EXISTS:
            return has, f"add a label {key} to it"
        case Operator.DOES_NOT_EXIST:
            return f"{has}, which the task excludes", f"remove its label {key}"


def _describe_avoid(avoid: Constraint, candidate: Candidate) -> tuple[str, str]:
    runner = candidate.profile
    if runner.runner_id in avoid.runner_ids:
        return "placement.avoid names it", "take it out of placement.avoid.runner_ids"
    if avoid.task_types and runner.running_types_unknown:
        return "it is a pull worker: the scheduler cannot see what it executes", "use a runner with a link"
    if not avoid.task_types.isdisjoint(candidate.executing):
        message = "it executes a task of a type that placement.avoid names"
        return message, "wait until that has ended, or take the type out of placement.avoid.task_types"
    keys = _join_quoted(requirement.key for requirement in avoid.labels)
    return (
        f"placement.avoid matches its labels {keys}",
        f"change its labels, or placement.avoid.selector ({keys})",
    )


def _describe_capacity(wanted: PlacementClass, candidate: Candidate) -> tuple[str, str]:
    runner = candidate.profile
    remedy = "wait until a task ends there, or raise its capacity"
    if candidate.free < 1:
        return f"it is full: {candidate.used} of {runner.capacity} places are taken", remedy
    return _describe_resources(wanted, candidate.budget, "has free")[0], remedy


def _join_quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
