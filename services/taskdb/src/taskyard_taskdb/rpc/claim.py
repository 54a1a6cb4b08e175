"""LeaseService.ClaimForRunners: tasks claimed for the runners of a scheduler, returned as assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from google.protobuf.message import DecodeError

from taskyard import status
from taskyard.errors import FieldInvalid
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2
from taskyard_kit.logs import get_log
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain.event import Failed, Released, runner
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import ErrorClass, ReleaseReason
from taskyard_taskdb.rpc.convert import make_raw
from taskyard_taskdb.rpc.inputs import MAX_RESPONSE_BYTES, add_inputs, wants_inputs
from taskyard_taskdb.rpc.packed import Entry, Packing, fill_packed, fill_rest, task_name
from taskyard_taskdb.rpc.reports import ReportBatch
from taskyard_taskdb.rpc.times import set_duration, set_time, to_timedelta
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.claim.claimer import Claimer
from taskyard_taskdb.storage.claim.claims import ClaimedTask, ClaimResult, LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report import checkpoints
from taskyard_taskdb.storage.report.reports import Report, ReportKind
from taskyard_taskdb.watch.hub import Hub

FIRST_LEASE = timedelta(seconds=15)
_SHORTEST_LEASE = timedelta(seconds=1)
_LONGEST_LEASE = timedelta(hours=1)
_MAX_RUNNERS = 1000
_MAX_TASKS = 10_000
UNREADABLE = "SPEC_UNREADABLE"
_MAX_PROBLEM = 1000
# What a packed assignment adds to a response beside itself and its task's id.
_COLUMN_BYTES = 64

Configs = Mapping[tuple[str, str, int], common_pb2.Payload | None]

log = get_log(__name__)


class ClaimHandler:
    """LeaseService.ClaimForRunners."""

    def __init__(
        self, pool: Pool, claimer: Claimer, types: TypeCache, hub: Hub, reports: ReportBatch
    ) -> None:
        self._pool = pool
        self._reports = reports
        self._claimer = claimer
        self._types = types
        self._hub = hub

    async def ClaimForRunners(
        self, request: lease_service_pb2.ClaimForRunnersRequest, context: Any
    ) -> lease_service_pb2.ClaimForRunnersResponse:
        """Claim tasks for the runners of one scheduler in one transaction."""
        _check(request)
        claims = [_claim(claim) for claim in request.runners]
        results = await self._claimer.claim(request.scheduler_id, request.request_id, claims)
        await failpoints.CLAIM_AFTER_COMMIT.reach()
        self._hub.wake()
        if request.packed:
            return await self._pack(results, claims, [claim.heartbeat_id for claim in request.runners])
        response = await self._make_assignments(results, claims, 0)
        for message, result in zip(response.results, results, strict=True):
            _fill_result(message, result)
        return response

    async def _pack(
        self, results: list[ClaimResult], claims: list[RunnerClaim], heartbeat_ids: list[int]
    ) -> lease_service_pb2.ClaimForRunnersResponse:
        """The assignments as bytes; those that more has to be read for are made as messages first."""
        response = lease_service_pb2.ClaimForRunnersResponse()
        packings = [Packing(heartbeat_id) for heartbeat_id in heartbeat_ids]
        packed: list[list[Entry | None]] = []
        others = [ClaimResult() for _ in results]
        beyond: list[Report] = []
        size = 0
        for result, claim, packing, other in zip(results, claims, packings, others, strict=True):
            entries = [packing.pack(task) for task in result.tasks]
            packed.append(entries)
            for place, (task, entry) in enumerate(zip(result.tasks, entries, strict=True)):
                if entry is None:
                    other.tasks.append(task)
                elif size and size + len(entry.encoded) > MAX_RESPONSE_BYTES:
                    beyond.append(_release_unfit(task, claim.runner_id))
                    entries[place] = None
                else:
                    size += len(entry.encoded) + len(task.task_id) + _COLUMN_BYTES
        await self._reports.apply(beyond)
        if any(other.tasks for other in others):
            made = await self._make_assignments(others, claims, size)
            for message, packing, result, entries in zip(
                made.results, packings, results, packed, strict=True
            ):
                places = {task.lease_id: place for place, task in enumerate(result.tasks)}
                for one in message.assignments:
                    entries[places[one.lease.lease_id]] = packing.pack_message(one)
        for result, packing, entries in zip(results, packings, packed, strict=True):
            message = response.results.add()
            _fill_result(message, result)
            fill_packed(message.packed, packing, result.tasks, entries)
        return response

    async def _make_assignments(
        self, results: list[ClaimResult], claims: list[RunnerClaim], other_bytes: int
    ) -> lease_service_pb2.ClaimForRunnersResponse:
        """The assignments as messages; `other_bytes` is the size of what else the response has."""
        response = lease_service_pb2.ClaimForRunnersResponse()
        removed: list[Report] = []
        for result, claim in zip(results, claims, strict=True):
            removed += _fill_assignments(response.results.add(), result, claim.runner_id)
        configs = await self._configs(results)
        removed += _remove_beyond(results, response, claims, configs, other_bytes)
        await self._reports.apply(removed)
        await self._add_checkpoints(results, response)
        _add_configs(results, response, configs)
        await self._add_inputs(response, claims, other_bytes)
        return response

    async def assignments(self, runner_id: str, result: ClaimResult) -> Sequence[lease_pb2.Assignment]:
        """The assignments of tasks that were leased when they were created; they have no inputs yet."""
        response = lease_service_pb2.ClaimForRunnersResponse()
        message = response.results.add()
        await self._reports.apply(_fill_assignments(message, result, runner_id))
        _add_configs([result], response, await self._configs([result]))
        return message.assignments

    async def _add_inputs(
        self,
        response: lease_service_pb2.ClaimForRunnersResponse,
        claims: list[RunnerClaim],
        other_bytes: int,
    ) -> None:
        """Add the results of prerequisites; what would make the response too large is released again."""
        wanting = [one for message in response.results for one in message.assignments if wants_inputs(one)]
        if not wanting:
            return
        beyond = await add_inputs(self._pool, wanting, response.ByteSize() + other_bytes)
        leases = {one.lease.lease_id for one in beyond}
        released: list[Report] = []
        for message, claim in zip(response.results, claims, strict=True) if leases else ():
            kept = [one for one in message.assignments if one.lease.lease_id not in leases]
            released += [
                _release(one.lease, claim.runner_id)
                for one in message.assignments
                if one.lease.lease_id in leases
            ]
            del message.assignments[:]
            message.assignments.extend(kept)
        await self._reports.apply(released)

    async def _configs(self, results: Iterable[ClaimResult]) -> Configs:
        """The configurations of the revisions of task types that runs are bound to."""
        typed = (task for result in results for task in result.tasks if task.task_type_revision)
        revisions = {_revision(task) for task in typed}
        return await self._types.configs(revisions) if revisions else {}

    async def _add_checkpoints(
        self, results: Iterable[ClaimResult], response: lease_service_pb2.ClaimForRunnersResponse
    ) -> None:
        """Add the newest checkpoint of each task that has one; it is at least as new as at the claim."""
        found = [
            (task, assignment)
            for result, message in zip(results, response.results, strict=True)
            for task, assignment in zip(result.tasks, message.assignments, strict=True)
            if task.checkpoint_sequence
        ]
        if not found:
            return
        async with self._pool.reading() as tx:
            for task, assignment in found:
                stored = await checkpoints.find(tx, task.tenant_id, task.task_id)
                if stored is not None:
                    _fill_checkpoint(assignment, stored)


def _check(request: lease_service_pb2.ClaimForRunnersRequest) -> None:
    """Raises FieldInvalid. Schedulers are trusted: only the rules that a mistake could break are checked."""
    if not request.scheduler_id:
        raise FieldInvalid.of("scheduler_id", "must not be empty")
    if not 1 <= len(request.request_id) <= 64:
        raise FieldInvalid.of("request_id", f"must have 1 to 64 characters, not {len(request.request_id)}")
    if not 1 <= len(request.runners) <= _MAX_RUNNERS:
        raise FieldInvalid.of("runners", f"must have 1 to {_MAX_RUNNERS} items, not {len(request.runners)}")
    for index, claim in enumerate(request.runners):
        field = f"runners[{index}]"
        if not claim.runner_id:
            raise FieldInvalid.of(f"{field}.runner_id", "must not be empty")
        if claim.session_epoch < 0:
            raise FieldInvalid.of(f"{field}.session_epoch", f"must be 0 or more, not {claim.session_epoch}")
        if not 1 <= claim.max_tasks <= _MAX_TASKS:
            raise FieldInvalid.of(f"{field}.max_tasks", f"must be 1 to {_MAX_TASKS}, not {claim.max_tasks}")
        duration = to_timedelta(claim.lease_duration)
        if claim.HasField("lease_duration") and not _SHORTEST_LEASE <= duration <= _LONGEST_LEASE:
            raise FieldInvalid.of(f"{field}.lease_duration", f"must be 1 s to 1 h, not {duration}")


def _claim(claim: lease_service_pb2.RunnerClaim) -> RunnerClaim:
    return RunnerClaim(
        runner_id=claim.runner_id,
        session_epoch=claim.session_epoch,
        max_tasks=claim.max_tasks,
        lease_duration=to_timedelta(claim.lease_duration)
        if claim.HasField("lease_duration")
        else FIRST_LEASE,
        tenants=tuple(
            TenantClaim(
                tenant.tenant,
                tenant.max_tasks,
                tuple(_lane_claim(tenant.tenant, lane) for lane in tenant.lanes),
            )
            for tenant in claim.tenants
            if tenant.lanes
        ),
        budget=_amounts(claim.budget) if claim.HasField("budget") else None,
    )


def _lane_claim(tenant_id: str, lane: lease_service_pb2.LaneClaim) -> LaneClaim:
    key = lane.lane
    return LaneClaim(
        LaneKey(tenant_id, key.class_id, key.priority, key.pinned_runner),
        to_timedelta(lane.offset),
        _amounts(lane.cost) if lane.HasField("cost") else None,
    )


def _amounts(resources: common_pb2.Resources) -> dict[str, int]:
    return {
        "cpu_millis": resources.cpu_millis,
        "memory_mb": resources.memory_mb,
        "disk_mb": resources.disk_mb,
        **{f"extended.{name}": amount for name, amount in resources.extended.items()},
    }


def _fill_result(message: lease_service_pb2.RunnerClaimResult, result: ClaimResult) -> None:
    if result.error is not None:
        message.error.CopyFrom(status.to_status(result.error))
    for lane in result.drained:
        message.drained_lanes.add(
            class_id=lane.class_id, priority=lane.priority, pinned_runner=lane.pinned_runner
        )


def _fill_assignments(
    message: lease_service_pb2.RunnerClaimResult, result: ClaimResult, runner_id: str
) -> list[Report]:
    """Add the assignments. A task that cannot be encoded is removed from the result: returns its failure."""
    unreadable: dict[int, Report] = {}
    for place, task in enumerate(result.tasks):
        try:
            _fill_assignment(message.assignments.add(), task)
        except (ValueError, DecodeError, RecursionError, OverflowError) as error:
            log.exception("assignment_unreadable", tenant=task.tenant_id, task=task.task_id)
            del message.assignments[-1]
            unreadable[place] = _failure(task, runner_id, error)
    for place in reversed(unreadable):
        del result.tasks[place]
    return list(unreadable.values())


def _remove_beyond(
    results: Iterable[ClaimResult],
    response: lease_service_pb2.ClaimForRunnersResponse,
    claims: Iterable[RunnerClaim],
    configs: Configs,
    size: int,
) -> list[Report]:
    """Remove what would make a response of this size too large; returns the releases.

    A claim counts specs as they are stored: here payloads are written out, and configurations are added.
    """
    config_sizes = {revision: config.ByteSize() for revision, config in configs.items() if config is not None}
    released: list[Report] = []
    for result, message, claim in zip(results, response.results, claims, strict=True):
        kept: list[tuple[ClaimedTask, lease_pb2.Assignment]] = []
        for task, assignment in zip(result.tasks, message.assignments, strict=True):
            added = assignment.ByteSize() + config_sizes.get(_revision(task), 0) + _COLUMN_BYTES
            if size and size + added > MAX_RESPONSE_BYTES:
                released.append(_release_unfit(task, claim.runner_id))
            else:
                size += added
                kept.append((task, assignment))
        if len(kept) < len(result.tasks):
            result.tasks[:] = [task for task, _ in kept]
            assignments = [assignment for _, assignment in kept]
            del message.assignments[:]
            message.assignments.extend(assignments)
    return released


def _revision(task: ClaimedTask) -> tuple[str, str, int]:
    return task.task_type_tenant or "", task.task_type, task.task_type_revision


def _add_configs(
    results: Iterable[ClaimResult], response: lease_service_pb2.ClaimForRunnersResponse, configs: Configs
) -> None:
    """Add the configuration of the task type's revision that each run is bound to."""
    for result, message in zip(results, response.results, strict=True):
        for task, assignment in zip(result.tasks, message.assignments, strict=True):
            if (config := configs.get(_revision(task))) is not None:
                assignment.config.CopyFrom(config)


def _failure(task: ClaimedTask, runner_id: str, error: Exception) -> Report:
    problem = f"the stored spec cannot be handed to a runner: {error}; create the task again"
    event = Failed(
        actor=runner(runner_id),
        runner_id=runner_id,
        generation=task.generation,
        lease_id=task.lease_id,
        error=RunError(UNREADABLE, ErrorClass.PERMANENT, problem[:_MAX_PROBLEM].replace("\0", "NUL")),
    )
    key = (task.tenant_id, task.task_id)
    return Report(key, runner_id, task.generation, task.lease_id, ReportKind.OTHER, other=event)


def _release(lease: lease_pb2.LeaseRef, runner_id: str) -> Report:
    message = "its inputs did not fit into the response of the claim"
    return _release_run(parse_task_name(lease.task), runner_id, lease.generation, lease.lease_id, message)


def _release_unfit(task: ClaimedTask, runner_id: str) -> Report:
    message = "it did not fit into the response of the claim"
    return _release_run((task.tenant_id, task.task_id), runner_id, task.generation, task.lease_id, message)


def release_unsent(task: ClaimedTask, runner_id: str) -> Report:
    """The release of a leased task that could not be sent to its scheduler."""
    message = "the scheduler of its runner disconnected"
    return _release_run((task.tenant_id, task.task_id), runner_id, task.generation, task.lease_id, message)


def _release_run(
    key: tuple[str, str], runner_id: str, generation: int, lease_id: int, message: str
) -> Report:
    event = Released(
        actor=runner(runner_id),
        runner_id=runner_id,
        generation=generation,
        lease_id=lease_id,
        reason=ReleaseReason.NO_CAPACITY,
        message=message,
    )
    return Report(key, runner_id, generation, lease_id, ReportKind.OTHER, other=event)


def _fill_assignment(assignment: lease_pb2.Assignment, task: ClaimedTask) -> None:
    lease = assignment.lease
    lease.task = task_name(task)
    lease.generation = task.generation
    lease.lease_id = task.lease_id
    set_duration(assignment.lease_ttl, task.lease_ttl)
    assignment.attempt = task.attempt + 1
    spec = assignment.spec
    spec.MergeFromString(task.spec)
    make_raw(spec.payload)
    fill_rest(assignment, task)


def _fill_checkpoint(assignment: lease_pb2.Assignment, stored: checkpoints.StoredCheckpoint) -> None:
    checkpoint = assignment.checkpoint
    checkpoint.name = f"{assignment.lease.task}/checkpoints/{stored.sequence}"
    checkpoint.sequence = stored.sequence
    checkpoint.generation = stored.generation
    checkpoint.size_bytes = stored.size_bytes
    checkpoint.sha256 = stored.sha256
    checkpoint.content_type = stored.content_type
    checkpoint.progress_percent = stored.progress_percent
    set_time(checkpoint.create_time, stored.create_time)
