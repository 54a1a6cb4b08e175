"""WorkService: claims, renewals, reports, logs and checkpoints of pull workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import grpc.aio

from taskyard import errors
from taskyard.v1 import lease_pb2, lease_service_pb2
from taskyard.v1 import work_service_pb2 as work
from taskyard.v1.work_service_pb2_grpc import WorkServiceServicer
from taskyard_kit.auth import Principal
from taskyard_scheduler import convert
from taskyard_scheduler.domain.placement import RunnerProfile
from taskyard_scheduler.link_config import duration
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.report_entry import OUTCOMES, Entry
from taskyard_scheduler.rpc.check import check_release
from taskyard_scheduler.rpc.scope import require_leases, require_runner
from taskyard_scheduler.scheduler import Scheduler

Context = grpc.aio.ServicerContext[Any, Any]

DEFAULT_LEASE = 30.0
# Time reserved within the caller's deadline for the response.
RESPONSE_MARGIN = 0.5
# Pull workers get an error soon if taskdb is unavailable; a runner's stream waits instead.
REPORT_TIMEOUT = 10.0


class WorkServicer(WorkServiceServicer):
    """Workers without a stream."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    # ---- claims

    async def ClaimTasks(self, request: work.ClaimTasksRequest, context: Context) -> work.ClaimTasksResponse:
        """Tasks for the worker; waits for some up to `wait`, but not beyond the caller's deadline."""
        principal = require_runner(request.worker_id)
        lease_duration = _seconds(request, "lease_duration", DEFAULT_LEASE)
        admin_labels = await self._scheduler.workers.note(
            request.worker_id, principal.id, lease_duration, request.registration
        )
        claim = PullClaim(
            request.worker_id,
            request.request_id,
            _profile(request, principal, admin_labels),
            request.max_tasks or 1,
            lease_duration,
        )
        wait = _seconds(request, "wait", 0.0)
        if (left := context.time_remaining()) is not None:
            wait = min(wait, max(0.0, left - RESPONSE_MARGIN))
        assignments = await self._scheduler.claim(claim, wait)
        return work.ClaimTasksResponse(assignments=assignments)

    # ---- held work

    async def RenewWork(self, request: work.RenewWorkRequest, context: Context) -> work.RenewWorkResponse:
        """Renews leases; returns verdicts for leases that the worker must act on."""
        principal = require_leases(request.worker_id, (lease.task for lease in request.leases))
        ttl = _seconds(request, "lease_duration", DEFAULT_LEASE)
        response = await self._scheduler.taskdb.renew_leases(
            lease_service_pb2.RenewLeasesRequest(
                runner_id=request.worker_id, leases=request.leases, lease_duration=duration(ttl)
            )
        )
        await self._scheduler.workers.note(request.worker_id, principal.id, ttl)
        return work.RenewWorkResponse(lease_ttl=duration(ttl), verdicts=response.verdicts)

    async def ReportWork(self, request: work.ReportWorkRequest, context: Context) -> work.ReportWorkResponse:
        """Applies reports together with those of all runners; answers once every one is decided."""
        require_leases(request.worker_id, (report.lease.task for report in request.reports))
        for report in request.reports:
            check_release(report)
        pending = _PendingReports(request.worker_id, request.reports)
        self._scheduler.reports.submit(pending.entries)
        try:
            async with asyncio.timeout(REPORT_TIMEOUT):
                await pending.decided.wait()
        except TimeoutError:
            raise errors.StorageUnavailable("unknown") from None
        return work.ReportWorkResponse(results=[_result(entry) for entry in pending.entries])

    async def AppendWorkLogs(
        self, request: work.AppendWorkLogsRequest, context: Context
    ) -> work.AppendWorkLogsResponse:
        """Stores log entries."""
        require_leases(request.worker_id, (batch.lease.task for batch in request.batches))
        response = await self._scheduler.taskdb.append_logs(
            lease_service_pb2.AppendLogsRequest(runner_id=request.worker_id, batches=request.batches)
        )
        return work.AppendWorkLogsResponse(results=response.results)

    # ---- checkpoints

    async def WriteWorkCheckpoint(
        self, requests: AsyncIterator[work.WriteWorkCheckpointRequest], context: Context
    ) -> work.WriteWorkCheckpointResponse:
        """Forwards the pieces to taskdb, which stores them once they are complete."""
        pieces = _pass_on(requests)
        response = await self._scheduler.taskdb.write_checkpoint(pieces)
        return work.WriteWorkCheckpointResponse(checkpoint=response.checkpoint)

    async def ReadWorkCheckpoint(
        self, request: work.ReadWorkCheckpointRequest, context: Context
    ) -> AsyncIterator[work.ReadWorkCheckpointResponse]:
        """The newest checkpoint of a task that the worker has leased; taskdb checks the lease."""
        require_leases(request.worker_id, [request.lease.task])
        checkpoint_request = lease_service_pb2.ReadLeasedCheckpointRequest(
            runner_id=request.worker_id, lease=request.lease
        )
        async for piece in self._scheduler.taskdb.read_checkpoint(checkpoint_request):
            yield work.ReadWorkCheckpointResponse(
                checkpoint=piece.checkpoint if piece.HasField("checkpoint") else None, data=piece.data
            )


class _PendingReports:
    """The reports of one call until all of them are decided."""

    def __init__(self, worker_id: str, reports: Sequence[lease_pb2.RunReport]) -> None:
        self.entries = [Entry(self, worker_id, report, _ends(report)) for report in reports]
        self.decided = asyncio.Event()

    def reports_decided(self) -> None:
        if all(entry.decided for entry in self.entries):
            self.decided.set()


def _ends(report: lease_pb2.RunReport) -> str:
    """The tenant whose run the report ends, if it does."""
    return convert.tenant_of(report.lease.task) if report.WhichOneof("report") in OUTCOMES else ""


def _result(entry: Entry) -> lease_pb2.ReportResult:
    if entry.error is not None:
        return lease_pb2.ReportResult(error=entry.error)
    return lease_pb2.ReportResult(phase=entry.phase, duplicate=entry.duplicate)  # type: ignore[arg-type]


def _profile(
    request: work.ClaimTasksRequest, principal: Principal, admin_labels: Mapping[str, str]
) -> RunnerProfile:
    labels = dict(principal.labels or request.registration.labels) | dict(admin_labels)
    tenants = () if "*" in principal.tenants else principal.tenants
    return convert.runner_profile(
        request.worker_id, request.registration, labels, tenants, running_types_unknown=True
    )


def _seconds(request: Any, field: str, default: float) -> float:
    if not request.HasField(field):
        return default
    found: float = getattr(request, field).ToTimedelta().total_seconds()
    return found


async def _pass_on(
    requests: AsyncIterator[work.WriteWorkCheckpointRequest],
) -> AsyncIterator[lease_service_pb2.WriteCheckpointRequest]:
    worker_id = ""
    async for request in requests:
        if not worker_id:
            worker_id = request.worker_id
            require_leases(worker_id, [request.chunk.header.task])
            yield lease_service_pb2.WriteCheckpointRequest(runner_id=worker_id, chunk=request.chunk)
        else:
            yield lease_service_pb2.WriteCheckpointRequest(chunk=request.chunk)
