"""Converts messages of the contract to the values of the scheduling policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, runner_pb2, task_pb2
from taskyard.v1.runner_link_service_pb2 import Capacity
from taskyard_kit import patterns
from taskyard_scheduler.domain.capacity import RunKey
from taskyard_scheduler.domain.fairness import TenantShare
from taskyard_scheduler.domain.placement import (
    Constraint,
    Operator,
    PlacementClass,
    Preference,
    Requirement,
    RunnerIds,
    RunnerProfile,
)
from taskyard_scheduler.domain.resources import Resources


def run_key(lease: lease_pb2.LeaseRef) -> RunKey:
    """The name of the run that a lease is for."""
    return (lease.task, lease.generation)


def tenant_of(task: str) -> str:
    """The tenant id in tenants/{tenant}/tasks/{task}."""
    return task.split("/", 2)[1]


def resources(message: common_pb2.Resources) -> Resources:
    return Resources(message.cpu_millis, message.memory_mb, message.disk_mb, dict(message.extended))


def optional_resources(message: common_pb2.Resources, *, given: bool) -> Resources | None:
    return resources(message) if given else None


def free_resources(free: Capacity) -> Resources | None:
    return optional_resources(free.resources, given=free.HasField("resources"))


def drain_of(runner: runner_pb2.Runner) -> runner_pb2.DrainRequest | None:
    """The drain in force."""
    return runner.drain if runner.HasField("drain") else None


def resources_message(amount: Resources) -> common_pb2.Resources:
    """A budget for taskdb, with negative amounts raised to 0."""
    return common_pb2.Resources(
        cpu_millis=max(0, amount.cpu_millis),
        memory_mb=max(0, amount.memory_mb),
        disk_mb=max(0, amount.disk_mb),
        extended={name: max(0, count) for name, count in amount.extended.items()},
    )


def placement_class(message: lease_service_pb2.PlacementClass) -> PlacementClass:
    placement = message.placement
    return PlacementClass(
        class_id=message.class_id,
        kind=message.kind,
        task_type=message.task_type,
        function=message.function,
        required=_constraint(placement.required),
        preferred=tuple(Preference(p.weight, _constraint(p.runners)) for p in placement.preferred),
        avoid=_constraint(placement.avoid),
        resources=resources(message.resources),
        runner_ids=_runner_ids(message.runner_id_pattern),
    )


def class_of(spec: task_pb2.TaskSpec) -> PlacementClass:
    """The placement class of a task's spec, without the runner id pattern of its type."""
    kind = spec.execution.WhichOneof("kind") or ""
    placement = spec.placement
    return PlacementClass(
        class_id=0,
        kind=runner_pb2.ExecutionKind.Value(f"EXECUTION_KIND_{kind.upper()}") if kind else 0,
        task_type=spec.task_type,
        function=spec.execution.function.function if kind == "function" else "",
        required=_constraint(placement.required),
        avoid=_constraint(placement.avoid),
        resources=resources(spec.resources),
    )


class _NoRunnerIds:
    """Matches no runner id: used for a pattern that does not compile, which taskdb rejects."""

    def matches(self, text: str, /) -> bool:
        return False


def _runner_ids(pattern: str) -> RunnerIds | None:
    try:
        return patterns.compile(pattern) if pattern else None
    except patterns.PatternInvalid:
        return _NoRunnerIds()


def _constraint(message: task_pb2.RunnerConstraint) -> Constraint:
    selector = message.selector
    equal = [Requirement(k, Operator.IN, frozenset((v,))) for k, v in selector.match_labels.items()]
    sets = [Requirement(e.key, Operator(e.operator), frozenset(e.values)) for e in selector.match_expressions]
    tags = [Requirement(tag, Operator.TAGGED) for tag in message.tags]
    labels = (*equal, *sets, *tags)
    return Constraint(frozenset(message.runner_ids), labels, frozenset(message.task_types))


def tenant_share(message: lease_service_pb2.TenantShare) -> TenantShare:
    return TenantShare(
        tenant=message.tenant,
        weight=max(1, message.weight),
        usage=message.usage,
        claimable=message.claimable_count,
        paused=message.paused,
        paused_task_types=frozenset(message.paused_task_types),
        held=message.leased_count,
        limits_only=message.limits_only,
    )


def runner_profile(
    runner_id: str,
    registration: runner_pb2.RunnerRegistration,
    labels: Mapping[str, str],
    tenants: Iterable[str],
    *,
    register_time: float = 0.0,
    running_types_unknown: bool = False,
) -> RunnerProfile:
    """The profile of a runner: its registration, its effective labels and the tenants of its scope."""
    return RunnerProfile(
        runner_id=runner_id,
        labels=dict(labels),
        kinds=frozenset(registration.execution_kinds),
        task_types=tuple(registration.task_types),
        functions=frozenset(registration.functions),
        capacity=registration.capacity,
        resources=optional_resources(registration.resources, given=registration.HasField("resources")),
        tenants=frozenset(tenants),
        register_time=register_time,
        running_types_unknown=running_types_unknown,
    )
