"""The input of an explanation: taskdb's facts, and the state of the runners on this scheduler."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import lease_service_pb2, runner_pb2, task_pb2
from taskyard_scheduler import convert
from taskyard_scheduler.domain.explain import (
    DependencyFacts,
    Facts,
    LimitFacts,
    SlotFacts,
    TaskFacts,
    TenantFacts,
    TypeFacts,
)
from taskyard_scheduler.domain.explain_runners import Candidate
from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.fleet import refusal_seconds
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.scheduler import Scheduler
from taskyard_scheduler.session import Session

Message = lease_service_pb2.ReadExplainFactsResponse


def read_facts(message: Message, spec: task_pb2.TaskSpec) -> Facts:
    """Converts taskdb's response; `spec` is the spec of a dry run."""
    tenant = message.tenant.share.tenant
    return Facts(
        now=_time(message.read_time),
        tenant=_tenant(message.tenant),
        wanted=convert.placement_class(message.placement_class),
        priority=message.priority,
        pinned=message.pinned_runner,
        task=_task(message) if message.HasField("task") else None,
        slot=_slot(tenant, message.slot) if message.HasField("slot") else None,
        task_type=_type(message.task_type) if message.HasField("task_type") else None,
        quarantine=message.quarantine.name,
        quarantine_holds=message.quarantine.held,
        not_before=_optional_time(spec, "not_before"),
        dependencies=[_dependency(one) for one in message.dependencies],
        open_dependencies=message.open_dependency_count,
        limits=[_limit(one) for one in message.limits],
    )


def _dependency(message: lease_service_pb2.DependencyFacts) -> DependencyFacts:
    return DependencyFacts(
        message.task,
        task_pb2.TaskPhase.Name(message.phase).removeprefix("TASK_PHASE_") if message.phase else "",
        task_pb2.DependencyCondition.Name(message.when).removeprefix("DEPENDENCY_CONDITION_"),
        message.child,
    )


def _limit(message: lease_service_pb2.LimitFacts) -> LimitFacts:
    return LimitFacts(
        message.limit,
        message.key,
        message.units,
        missing=message.missing,
        open=message.open,
        bound=message.bound,
        most=message.most,
        used=message.used,
        open_time=_optional_time(message, "open_time"),
        ahead=message.ahead_count,
    )


def _task(message: Message) -> TaskFacts:
    task = message.task
    return TaskFacts(
        name=message.task_name,
        phase=task_pb2.TaskPhase.Name(task.phase).removeprefix("TASK_PHASE_"),
        pending_reason=task_pb2.PendingReason.Name(task.pending_reason).removeprefix("PENDING_REASON_"),
        ready_time=_optional_time(task, "ready_time"),
        next_attempt_time=_optional_time(task, "next_attempt_time"),
        holder=task.runner_id,
        lease_expire_time=_optional_time(task, "lease_expire_time"),
        queued=task.queued,
        lane_position=task.lane_position,
        external=task.external,
    )


def _slot(tenant: str, slot: lease_service_pb2.SlotFacts) -> SlotFacts:
    head = f"tenants/{tenant}/tasks/{slot.head_task_id}" if slot.head_task_id else ""
    return SlotFacts(slot.slot, head, slot.ahead_count, _optional_time(slot, "lease_expire_time"))


def _tenant(tenant: lease_service_pb2.TenantFacts) -> TenantFacts:
    share = tenant.share
    return TenantFacts(
        share.tenant,
        weight=max(1, share.weight),
        suspended=tenant.suspended,
        queue_paused=tenant.queue_paused,
        held=share.leased_count,
        max_concurrent=tenant.max_concurrent_tasks,
        pending=tenant.pending_count,
        max_pending=tenant.max_queue_depth,
        rate=tenant.rate_limit_per_sec,
        rate_open_time=_optional_time(tenant, "rate_open_time"),
    )


def _type(task_type: lease_service_pb2.TaskTypeFacts) -> TypeFacts:
    return TypeFacts(task_type.name, task_type.disabled, task_type.queue_paused)


def _time(message: Timestamp) -> datetime:
    return message.ToDatetime(UTC)


def _optional_time(message: object, field: str) -> datetime | None:
    given: bool = message.HasField(field)  # type: ignore[attr-defined]
    return _time(getattr(message, field)) if given else None


# ---- runners


def candidates(message: Message, scheduler: Scheduler) -> list[Candidate]:
    """Every runner of taskdb's response, with live state if connected here, and the waiting pull workers."""
    tenant = message.tenant.share.tenant
    wanted = convert.placement_class(message.placement_class)
    sessions = scheduler.fleet.sessions
    found = []
    for facts in message.runners:
        runner_id = facts.runner.name.removeprefix("runners/")
        session = sessions.get(runner_id)
        if session is not None and not session.over:
            found.append(_connected(session, tenant, wanted, scheduler.clock()))
        else:
            found.append(_not_connected_here(runner_id, facts))
    claims = (claim for claim in scheduler.fleet.claims() if claim.profile.serves(tenant))
    return [*found, *map(_pull_worker, claims)]


def _connected(session: Session, tenant: str, wanted: PlacementClass, now: float) -> Candidate:
    capacity = session.capacity
    return Candidate(
        session.profile,
        draining=session.draining,
        free=capacity.room(now),
        used=capacity.used,
        budget=capacity.budget,
        executing=frozenset(capacity.executing()),
        refused_seconds=refusal_seconds(session, tenant, wanted, now),
    )


def _not_connected_here(runner_id: str, facts: lease_service_pb2.RunnerFacts) -> Candidate:
    """A runner that is not connected here, with the state of its last heartbeat."""
    runner = facts.runner
    registration = runner.registration
    return Candidate(
        convert.runner_profile(runner_id, registration, runner.labels, runner.tenants),
        online=runner.state not in (runner_pb2.RUNNER_STATE_DEAD, runner_pb2.RUNNER_STATE_STOPPED),
        draining=runner.state == runner_pb2.RUNNER_STATE_DRAINING,
        free=max(0, registration.capacity + registration.prefetch - runner.used_capacity),
        used=runner.used_capacity,
        budget=convert.optional_resources(facts.free_resources, given=facts.HasField("free_resources")),
        executing=frozenset(facts.task_types),
    )


def _pull_worker(claim: PullClaim) -> Candidate:
    return Candidate(claim.profile, free=claim.max_tasks)
