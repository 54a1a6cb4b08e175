"""EmbeddedService: tasks whose function runs in the process that created them, under a lease of its own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from taskyard.errors import FieldInvalid, NotFound
from taskyard.v1 import (
    embedded_service_pb2,
    lease_pb2,
    lease_service_pb2,
    task_pb2,
)
from taskyard_kit.auth import require_tenant
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.words import Kind
from taskyard_taskdb.rpc import access
from taskyard_taskdb.rpc.claim import ClaimHandler
from taskyard_taskdb.rpc.create import CreateHandler
from taskyard_taskdb.rpc.leases import RenewHandler
from taskyard_taskdb.rpc.logs import LogAppendHandler
from taskyard_taskdb.rpc.reports import RunReportHandler
from taskyard_taskdb.rpc.times import set_duration
from taskyard_taskdb.rpc.validate import validate
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import tasks

LEASE = timedelta(seconds=30)
# A task that waits for its holder longer than this has lost it.
CLAIM_TIMEOUT = timedelta(seconds=60)
Service = embedded_service_pb2


class EmbeddedHandler:
    """EmbeddedService. It forwards to the handlers of leases, after it has checked tenant and holder."""

    def __init__(
        self,
        pool: Pool,
        create: CreateHandler,
        claims: ClaimHandler,
        renewals: RenewHandler,
        reports: RunReportHandler,
        logs: LogAppendHandler,
    ) -> None:
        self._pool = pool
        self._create = create
        self._claims = claims
        self._renewals = renewals
        self._reports = reports
        self._logs = logs

    async def CreateEmbeddedTask(
        self, request: Service.CreateEmbeddedTaskRequest, context: Any
    ) -> Service.CreateEmbeddedTaskResponse:
        """Create the task, pinned to its holder."""
        frame = Service.CreateEmbeddedTaskRequest(holder_id=request.holder_id)
        frame.request.task.SetInParent()
        validate(frame)
        _pin(request.request.task.spec, request.holder_id)
        response = await self._create.create_embedded(request.request, context)
        return Service.CreateEmbeddedTaskResponse(response=response)

    async def ClaimEmbeddedTask(
        self, request: Service.ClaimEmbeddedTaskRequest, context: Any
    ) -> Service.ClaimEmbeddedTaskResponse:
        """Claim from the lane of the task, which is the holder's own."""
        key = access.visible_task(request.name)
        record = await self._read(key, request.holder_id)
        claim = lease_service_pb2.ClaimForRunnersRequest(
            scheduler_id=request.holder_id, request_id=request.request_id
        )
        runner = claim.runners.add(runner_id=request.holder_id, max_tasks=1)
        set_duration(runner.lease_duration, _duration(request))
        lane = runner.tenants.add(tenant=key[0], max_tasks=1).lanes.add().lane
        lane.class_id, lane.priority = record.class_id, record.priority
        lane.pinned_runner = request.holder_id
        (result,) = (await self._claims.ClaimForRunners(claim, context)).results
        phase = (await self._read(key, request.holder_id)).phase
        return Service.ClaimEmbeddedTaskResponse(
            assignments=result.assignments, phase=task_pb2.TaskPhase.ValueType(phase)
        )

    async def RenewEmbeddedTasks(
        self, request: Service.RenewEmbeddedTasksRequest, context: Any
    ) -> Service.RenewEmbeddedTasksResponse:
        """Renew leases of the holder."""
        _check_tenants(request.leases)
        renewal = lease_service_pb2.RenewLeasesRequest(runner_id=request.holder_id, leases=request.leases)
        set_duration(renewal.lease_duration, _duration(request))
        renewed = await self._renewals.RenewLeases(renewal, context)
        return Service.RenewEmbeddedTasksResponse(verdicts=renewed.verdicts)

    async def ReportEmbeddedTasks(
        self, request: Service.ReportEmbeddedTasksRequest, context: Any
    ) -> Service.ReportEmbeddedTasksResponse:
        """Apply reports of the holder."""
        _check_tenants(report.lease for report in request.reports)
        reports = lease_service_pb2.ReportRunsRequest()
        for report in request.reports:
            reports.reports.add(runner_id=request.holder_id, report=report)
        applied = await self._reports.ReportRuns(reports, context)
        return Service.ReportEmbeddedTasksResponse(results=applied.results)

    async def AppendEmbeddedLogs(
        self, request: Service.AppendEmbeddedLogsRequest, context: Any
    ) -> Service.AppendEmbeddedLogsResponse:
        """Store log entries of the holder's runs."""
        _check_tenants(batch.lease for batch in request.batches)
        logs = lease_service_pb2.AppendLogsRequest(runner_id=request.holder_id, batches=request.batches)
        stored = await self._logs.AppendLogs(logs, context)
        return Service.AppendEmbeddedLogsResponse(results=stored.results)

    async def _read(self, key: tasks.Key, holder_id: str) -> tasks.TaskRecord:
        """The task of this holder. Raises NotFound."""
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, *key)
        if record is None or record.kind != Kind.EMBEDDED or record.pinned_runner != holder_id:
            raise NotFound("embedded task", f"tenants/{key[0]}/tasks/{key[1]}")
        return record


def _pin(spec: task_pb2.TaskSpec, holder_id: str) -> None:
    """Make the task the holder's own. Raises FieldInvalid for another kind of execution."""
    kind = spec.execution.WhichOneof("kind")
    if kind not in (None, "embedded"):
        raise FieldInvalid.of(
            "request.task.spec.execution", f"is {kind}; leave it unset, or use embedded, in an embedded task"
        )
    spec.execution.embedded.SetInParent()
    spec.placement.Clear()
    spec.placement.required.runner_ids.append(holder_id)
    spec.on_runner_lost = task_pb2.RUNNER_LOST_POLICY_FAIL
    if not spec.HasField("queue_timeout"):
        spec.queue_timeout.FromTimedelta(CLAIM_TIMEOUT)


def _duration(request: Any) -> timedelta:
    found: timedelta = request.lease_duration.ToTimedelta() if request.HasField("lease_duration") else LEASE
    return found


def _check_tenants(leases: Iterable[lease_pb2.LeaseRef]) -> None:
    """Raises NotFound for a task of another tenant, FieldInvalid for a malformed name."""
    for lease in leases:
        tenant_id, _ = parse_task_name(lease.task, "lease.task")
        require_tenant(tenant_id, "task", lease.task)
