"""LeaseService.ReadExplainFacts: the facts from which a scheduler explains why a task is not running."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskyard.errors import FieldViolation, InvalidArgument, NotFound
from taskyard.v1 import lease_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.group import prerequisite_name
from taskyard_taskdb.domain.names import limit_name, task_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType, Kind
from taskyard_taskdb.rpc.convert import fill_runner
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.storage.claim import shares
from taskyard_taskdb.storage.limit.state import LimitState
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read import explain, tasks
from taskyard_taskdb.storage.read.explain import Facts, Subject
from taskyard_taskdb.storage.tenant.tenants import Tenant

Request = lease_service_pb2.ReadExplainFactsRequest
Response = lease_service_pb2.ReadExplainFactsResponse


class ExplainHandler:
    """LeaseService.ReadExplainFacts."""

    def __init__(self, pool: Pool, specs: SpecReader, schemas: SchemaChecks, types: TypeCache) -> None:
        self._pool = pool
        self._specs = specs
        self._schemas = schemas
        self._types = types

    async def ReadExplainFacts(self, request: Request, context: Any) -> Response:
        """Read the facts that ExplainTask needs; the scheduler has authorised the tenant."""
        named = [request.spec.task_type] if request.WhichOneof("subject") == "spec" else []
        rules = (await self._types.find_all(request.tenant, named)).get(request.spec.task_type)
        if rules is not None:
            rules.check_enabled()
            payload = request.spec.payload if request.spec.HasField("payload") else None
            await self._schemas.check_payload(request.tenant, rules, payload, "spec.payload")
        async with self._pool.reading() as tx:
            if request.WhichOneof("subject") == "spec":
                subject = self._of_spec(request, rules)
            else:
                subject = await _of_task(tx, request.tenant, request.task_id)
            return _message(await explain.read_facts(tx, subject))

    def _of_spec(self, request: Request, rules: TypeRules | None) -> Subject:
        """The spec as CreateTask would store it. Field paths of errors begin with "spec"."""
        create = task_service_pb2.CreateTaskRequest(task=task_pb2.Task(spec=request.spec))
        try:
            task = self._specs.read(create, Tenant(request.tenant, False), _NO_CREATOR, None, rules)
        except InvalidArgument as error:
            raise _renamed(error) from None
        return Subject(
            request.tenant,
            task.class_id,
            task.class_definition,
            task.priority,
            task.pinned_runner,
            task.task_type,
            task.slot,
            task.spec,
            _running_types(task.class_definition),
            after=task.after,
            limits=task.limits,
        )


_NO_CREATOR = Actor(ActorType.SCHEDULER, "")


def _renamed(error: InvalidArgument) -> InvalidArgument:
    violations = [
        FieldViolation(found.field.removeprefix("task."), found.description, found.rule)
        for found in error.violations
    ]
    return type(error)(tuple(violations))


async def _of_task(tx: Tx, tenant_id: str, task_id: str) -> Subject:
    record = await tasks.read(tx, tenant_id, task_id)
    if record is None:
        raise NotFound("task", task_name(tenant_id, task_id))
    key = (tenant_id, record.class_id)
    definition = (await shares.read_classes(tx, [key])).get(key, b"")
    return Subject(
        tenant_id,
        record.class_id,
        definition,
        record.priority,
        record.pinned_runner,
        record.task_type,
        record.slot,
        record.spec,
        _running_types(definition),
        record,
    )


def _running_types(definition: bytes) -> frozenset[str]:
    placement = lease_service_pb2.PlacementClass.FromString(definition).placement
    selectors = (placement.required, placement.avoid, *(selector.runners for selector in placement.preferred))
    return frozenset(task_type for selector in selectors for task_type in selector.task_types)


def _message(facts: Facts) -> Response:
    subject = facts.subject
    response = Response(pinned_runner=subject.pinned_runner, priority=subject.priority)
    set_time(response.read_time, facts.time)
    _fill_class(response.placement_class, subject)
    if subject.task is not None:
        response.task_name = subject.task.name
        _fill_task(response.task, facts, subject.task)
    if facts.slot is not None and subject.slot is not None:
        response.slot.slot = subject.slot
        response.slot.head_task_id = facts.slot.head_task_id or ""
        response.slot.ahead_count = facts.slot.ahead
        if facts.slot.lease_expire_time is not None:
            set_time(response.slot.lease_expire_time, facts.slot.lease_expire_time)
    if facts.task_type is not None:
        response.task_type.name = f"tenants/{facts.task_type.tenant_id}/taskTypes/{subject.task_type}"
        response.task_type.disabled = facts.task_type.disabled
        response.task_type.queue_paused = facts.task_type.queue_paused
    if facts.quarantine is not None:
        held = response.quarantine
        held.name = f"tenants/{subject.tenant_id}/quarantines/{facts.quarantine.digest}"
        held.runner_loss_count = facts.quarantine.runner_loss_count
        held.held = facts.quarantine.held
        set_time(held.create_time, facts.quarantine.create_time)
    _fill_tenant(response.tenant, facts)
    response.open_dependency_count = facts.open_dependencies
    for state in facts.dependencies:
        response.dependencies.add(
            task=prerequisite_name(subject.tenant_id, state.task_id),
            phase=task_pb2.TaskPhase.ValueType(state.phase or 0),
            when=task_pb2.DependencyCondition.ValueType(state.condition),
            child=state.child,
        )
    for limit in facts.limits:
        _fill_limit(response.limits.add(), subject.tenant_id, limit)
    for record in facts.runners:
        message = response.runners.add(task_types=facts.executing.get(record.runner_id, ()))
        fill_runner(message.runner, record)
        if (free := facts.free.get(record.runner_id)) is not None:
            message.free_resources.MergeFromString(free)
            # If nothing is free the message is empty, but present.
            message.free_resources.SetInParent()
    return response


def _fill_limit(message: lease_service_pb2.LimitFacts, tenant_id: str, state: LimitState) -> None:
    message.limit = limit_name(tenant_id, state.use.limit_id)
    message.key = state.use.key
    message.units = state.use.units
    message.missing = state.missing
    message.open = state.closed is None
    message.ahead_count = state.ahead
    message.waits = state.waits
    if state.closed is not None:
        message.bound = state.closed.bound
        message.most = state.closed.most
        message.used = state.closed.used
        set_time(message.open_time, state.closed.open_time)


def _fill_class(message: lease_service_pb2.PlacementClass, subject: Subject) -> None:
    message.MergeFromString(subject.definition)
    message.tenant = subject.tenant_id
    message.class_id = subject.class_id


def _fill_task(message: lease_service_pb2.TaskFacts, facts: Facts, task: tasks.TaskRecord) -> None:
    message.phase = task_pb2.TaskPhase.ValueType(task.phase)
    message.pending_reason = task_pb2.PendingReason.ValueType(task.pending_reason)
    message.runner_id = task.runner_id or ""
    message.queued = facts.queued
    message.lane_position = facts.lane_position
    message.external = task.kind == Kind.EXTERNAL
    for name, time in (
        ("ready_time", task.ready_time),
        ("next_attempt_time", task.next_attempt_time),
        ("lease_expire_time", task.expire_time),
    ):
        if time is not None:
            set_time(getattr(message, name), time)


def _fill_tenant(message: lease_service_pb2.TenantFacts, facts: Facts) -> None:
    share = facts.share
    message.share.tenant = share.tenant_id
    message.share.weight = share.weight
    message.share.usage = facts.use.usage
    message.share.leased_count = facts.counts.leased if facts.counts else facts.use.leased_count
    message.share.claimable_count = share.claimable_count
    message.suspended = facts.suspended
    message.queue_paused = facts.queue_paused
    counts = facts.counts
    if counts is None:
        return
    quota = counts.quota
    message.max_concurrent_tasks = quota.max_concurrent_tasks
    message.max_queue_depth = quota.max_queue_depth
    message.pending_count = counts.pending
    message.rate_limit_per_sec = quota.rate_limit_per_sec
    if quota.rate_limit_per_sec and (wait := quota.wait_for(counts.tokens, 1)) > timedelta(0):
        set_time(message.rate_open_time, counts.time + wait)
