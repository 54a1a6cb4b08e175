"""A small taskdb in memory, served over gRPC: a peer for tests of the scheduler alone.

It keeps the contract of LeaseService and SessionService for what these tests need: lanes, claims with
generation and lease_id, repeats by request_id, reports that are fenced, sessions with epochs. Tests look at
`calls`, hold calls back with `gates` and make them fail with `failures`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.status import GRPC_CODE, to_status, trailing_metadata
from taskyard.v1 import api_key_pb2, lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1 import session_service_pb2 as sessions
from taskyard.v1.lease_service_pb2_grpc import LeaseServiceServicer, add_LeaseServiceServicer_to_server
from taskyard.v1.session_service_pb2_grpc import (
    SessionServiceServicer,
    add_SessionServiceServicer_to_server,
)
from taskyard_kit.keys import ApiKey

LaneName = tuple[str, int, int, str]
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(eq=False)
class FakeTask:
    """A task and its current lease."""

    name: str
    lane: LaneName
    spec: task_pb2.TaskSpec
    ready_time: float
    traceparent: str = ""
    generation: int = 0
    lease_id: int = 0
    runner_id: str = ""
    phase: int = task_pb2.TASK_PHASE_PENDING
    reported: set[str] = field(default_factory=set)

    @property
    def lease(self) -> lease_pb2.LeaseRef:
        return lease_pb2.LeaseRef(task=self.name, generation=self.generation, lease_id=self.lease_id)


@dataclass(eq=False)
class FakeSession:
    epoch: int
    instance_id: str
    expire_time: float
    lost: bool = False
    held: list[lease_pb2.LeaseRef] = field(default_factory=list)


class FakeTaskdb(LeaseServiceServicer, SessionServiceServicer):
    """One instance serves one scheduler under test, or several."""

    def __init__(self) -> None:
        self.tasks: dict[str, FakeTask] = {}
        self.queue: dict[LaneName, list[FakeTask]] = defaultdict(list)
        self.classes: dict[tuple[str, int], leases.PlacementClass] = {}
        self.shares: dict[str, leases.TenantShare] = {}
        self.sessions: dict[str, FakeSession] = {}
        self.runners: dict[str, runner_pb2.Runner] = {}
        self.keys: dict[str, api_key_pb2.ApiKey] = {}
        self.logs: list[tuple[str, lease_pb2.LogBatch]] = []
        self.checkpoints: dict[str, tuple[int, bytes]] = {}
        self.verdicts: dict[str, list[lease_pb2.LeaseVerdict]] = defaultdict(list)
        self.calls: list[tuple[str, Any]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.failures: dict[str, list[errors.TaskyardError]] = defaultdict(list)
        self.results: dict[tuple[str, str], Status] = {}
        # A task whose report makes the whole call INVALID_ARGUMENT.
        self.poison = ""
        # So many answers to ClaimForRunners get lost after the claim was made.
        self.lose_responses = 0
        # Whether it returns assignments in the packed form, as every taskdb of this version does.
        self.packs = True
        # Whether it knows CompleteRuns, as every taskdb of this version does.
        self.completes = True
        # What KeepCredit sends; without it the RPC is unknown, as in an older taskdb.
        self.credit: asyncio.Queue[leases.KeepCreditResponse] | None = None
        self.address = ""
        self._claims: dict[str, dict[str, list[str]]] = {}
        self._watchers: set[asyncio.Queue[leases.WatchQueueResponse]] = set()
        self._called = asyncio.Condition()
        self._server: grpc.aio.Server | None = None

    # ---- serving

    async def start(self, port: int = 0) -> None:
        self._server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        add_LeaseServiceServicer_to_server(self, self._server)
        add_SessionServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        await self._server.start()
        self.address = f"127.0.0.1:{port}"

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    async def called(self, method: str, count: int = 1, timeout: float = 10.0) -> Any:
        """Wait until a method was called this often; its last request."""
        async with asyncio.timeout(timeout), self._called:
            await self._called.wait_for(lambda: len(self.requests(method)) >= count)
        return self.requests(method)[-1]

    def requests(self, method: str) -> list[Any]:
        return [request for name, request in self.calls if name == method]

    async def _enter(self, method: str, request: Any, context: Context) -> None:
        async with self._called:
            self.calls.append((method, request))
            self._called.notify_all()
        if gate := self.gates.get(method):
            await gate.wait()
        if self.failures[method]:
            error = self.failures[method].pop(0)
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))

    # ---- what tests arrange

    def add_key(self, kind: api_key_pb2.PrincipalKind.ValueType, **scope: Any) -> str:
        """A new key; its text."""
        key = ApiKey.make()
        self.keys[key.text] = api_key_pb2.ApiKey(
            name=f"apiKeys/{key.id}", kind=kind, runner_scope=api_key_pb2.RunnerScope(**scope)
        )
        return key.text

    def add_class(self, tenant: str = "default", class_id: int = 1, **fields: Any) -> None:
        fields.setdefault("kind", runner_pb2.EXECUTION_KIND_COMMAND)
        wanted = leases.PlacementClass(tenant=tenant, class_id=class_id, **fields)
        self.classes[(tenant, class_id)] = wanted
        self.publish(leases.WatchQueueResponse(classes=[wanted]))

    def add_tasks(
        self,
        count: int = 1,
        *,
        tenant: str = "default",
        class_id: int = 1,
        priority: int = 10,
        pinned: str = "",
        ready_time: float | None = None,
        publish: bool = True,
        **spec: Any,
    ) -> list[str]:
        """Queue tasks; their names."""
        if (tenant, class_id) not in self.classes:
            self.add_class(tenant, class_id)
        lane = (tenant, class_id, priority, pinned)
        made = []
        for _ in range(count):
            name = f"tenants/{tenant}/tasks/t{len(self.tasks) + 1}"
            full = task_pb2.TaskSpec(priority=priority, **spec)
            if not full.HasField("execution"):
                full.execution.command.program = "/bin/true"
            task = FakeTask(name, lane, full, time.time() if ready_time is None else ready_time)
            self.tasks[name] = task
            self.queue[lane].append(task)
            made.append(name)
        if publish:
            self.publish(leases.WatchQueueResponse(lanes=[self._lane(lane)]))
        return made

    def cancel(self, name: str) -> None:
        """Ask the holder of a task to stop."""
        task = self.tasks[name]
        verdict = lease_pb2.LeaseVerdict(
            lease=task.lease, action=lease_pb2.LEASE_ACTION_CANCEL, reason="test"
        )
        self.verdicts[task.runner_id].append(verdict)
        verdicts = leases.RunnerVerdicts(runner_id=task.runner_id, verdicts=[verdict])
        self.publish(leases.WatchQueueResponse(verdicts=[verdicts]))

    def change_runner(self, runner: runner_pb2.Runner) -> None:
        self.runners[runner.name.removeprefix("runners/")] = runner
        self.publish(leases.WatchQueueResponse(runners=[runner]))

    def publish(self, step: leases.WatchQueueResponse) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(step)

    def phase(self, name: str) -> str:
        return task_pb2.TaskPhase.Name(self.tasks[name].phase).removeprefix("TASK_PHASE_")  # type: ignore[arg-type]

    # ---- LeaseService

    def _lane(self, lane: LaneName) -> leases.Lane:
        tenant, class_id, priority, pinned = lane
        message = leases.Lane(
            tenant=tenant,
            key=leases.LaneKey(class_id=class_id, priority=priority, pinned_runner=pinned),
            backlog=len(self.queue[lane]),
        )
        if self.queue[lane]:
            message.head_ready_time.FromNanoseconds(int(self.queue[lane][0].ready_time * 1e9))
        return message

    async def WatchQueue(
        self, request: leases.WatchQueueRequest, context: Context
    ) -> AsyncIterator[leases.WatchQueueResponse]:
        await self._enter("WatchQueue", request, context)
        steps: asyncio.Queue[leases.WatchQueueResponse] = asyncio.Queue()
        self._watchers.add(steps)
        try:
            yield leases.WatchQueueResponse(
                full=True,
                lanes=[self._lane(lane) for lane, queued in self.queue.items() if queued],
                classes=self.classes.values(),
                tenants=self.shares.values(),
                runners=self.runners.values(),
            )
            while True:
                yield await steps.get()
        finally:
            self._watchers.discard(steps)

    async def KeepCredit(
        self, requests: AsyncIterator[leases.KeepCreditRequest], context: Context
    ) -> AsyncIterator[leases.KeepCreditResponse]:
        if self.credit is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown")

        async def read() -> None:
            async for request in requests:
                await self._enter("KeepCredit", request, context)

        reading = asyncio.create_task(read())
        try:
            while True:
                yield await self.credit.get()
        finally:
            reading.cancel()

    def lease_on_credit(
        self, runner_id: str, *, epoch: int, heartbeat_id: int, **fields: Any
    ) -> lease_pb2.Assignment:
        """A task that is leased when it is created, and sent on the stream of KeepCredit."""
        (name,) = self.add_tasks(1, publish=False, **fields)
        task = self.tasks[name]
        self.queue[task.lane].remove(task)
        task.generation, task.lease_id, task.runner_id = 1, random.getrandbits(53), runner_id
        task.phase = task_pb2.TASK_PHASE_SCHEDULED
        response = leases.KeepCreditResponse()
        granted = response.granted.add(runner_id=runner_id, session_epoch=epoch, heartbeat_id=heartbeat_id)
        made = granted.assignments.add(lease=task.lease, spec=task.spec, attempt=1)
        made.lease_ttl.FromSeconds(2)
        assert self.credit is not None
        self.credit.put_nowait(response)
        return made

    async def ClaimForRunners(
        self, request: leases.ClaimForRunnersRequest, context: Context
    ) -> leases.ClaimForRunnersResponse:
        await self._enter("ClaimForRunners", request, context)
        response = leases.ClaimForRunnersResponse()
        seen = self._claims.setdefault(request.request_id, {})
        for pop in request.runners:
            if seen.get(pop.runner_id):
                result = response.results.add()
                standing = [self.tasks[name] for name in seen[pop.runner_id]]
                result.assignments.extend(self._assignment(task, pop) for task in standing if task.runner_id)
                continue
            response.results.append(self._pop(pop, seen))
        if request.packed and self.packs:
            for result, claim in zip(response.results, request.runners, strict=True):
                pack(result, claim.heartbeat_id)
        if self.lose_responses > 0:
            self.lose_responses -= 1
            error = errors.StorageUnavailable("unknown")
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))
        return response

    def _pop(self, pop: leases.RunnerClaim, seen: dict[str, list[str]]) -> leases.RunnerClaimResult:
        session = self.sessions.get(pop.runner_id)
        if pop.session_epoch and (session is None or session.lost or session.epoch != pop.session_epoch):
            return leases.RunnerClaimResult(error=to_status(errors.SessionSuperseded(pop.runner_id)))
        result = leases.RunnerClaimResult()
        left = pop.max_tasks
        for part in pop.tenants:
            taken = self._take(part, min(left, part.max_tasks), pop.runner_id)
            left -= len(taken)
            seen.setdefault(pop.runner_id, []).extend(task.name for task in taken)
            result.assignments.extend(self._assignment(task, pop) for task in taken)
            result.drained_lanes.extend(
                entry.lane for entry in part.lanes if not self.queue[_lane_name(part.tenant, entry.lane)]
            )
        return result

    def _take(self, part: leases.TenantClaim, count: int, runner_id: str) -> list[FakeTask]:
        taken: list[FakeTask] = []
        while len(taken) < count:
            heads = [
                (queue[0].ready_time - entry.offset.ToTimedelta().total_seconds(), index, queue)
                for index, entry in enumerate(part.lanes)
                if (queue := self.queue[_lane_name(part.tenant, entry.lane)])
            ]
            if not heads:
                break
            task = min(heads)[2].pop(0)
            task.generation += 1
            task.lease_id = random.getrandbits(62)
            task.runner_id = runner_id
            task.phase = task_pb2.TASK_PHASE_SCHEDULED
            taken.append(task)
        return taken

    def _assignment(self, task: FakeTask, pop: leases.RunnerClaim) -> lease_pb2.Assignment:
        return lease_pb2.Assignment(
            lease=task.lease,
            lease_ttl=pop.lease_duration,
            attempt=1,
            spec=task.spec,
            traceparent=task.traceparent,
        )

    async def ReportRuns(
        self, request: leases.ReportRunsRequest, context: Context
    ) -> leases.ReportRunsResponse:
        await self._enter("ReportRuns", request, context)
        if any(item.report.lease.task == self.poison for item in request.reports):
            error = errors.FieldInvalid.of("reports", "poisoned by the test")
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))
        return leases.ReportRunsResponse(
            results=[self._apply(item.runner_id, item.report) for item in request.reports]
        )

    async def CompleteRuns(
        self, request: leases.CompleteRunsRequest, context: Context
    ) -> leases.CompleteRunsResponse:
        await self._enter("CompleteRuns", request, context)
        if not self.completes:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown")
        if any(self.poison in holder.runs.tasks for holder in request.holders):
            error = errors.FieldInvalid.of("holders", "poisoned by the test")
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))
        response = leases.CompleteRunsResponse()
        for place, holder in enumerate(request.holders):
            runs = holder.runs
            leased = zip(runs.tasks, runs.generations, runs.lease_ids, strict=True)
            for run, (task, generation, lease_id) in enumerate(leased):
                ref = lease_pb2.LeaseRef(task=task, generation=generation, lease_id=lease_id)
                report = lease_pb2.RunReport(lease=ref, succeeded=lease_pb2.RunSucceeded())
                result = self._apply(holder.runner_id, report)
                if result != lease_pb2.ReportResult(phase=task_pb2.TASK_PHASE_SUCCEEDED):
                    response.exceptions.add(holder=place, run=run, result=result)
        return response

    def _apply(self, runner_id: str, report: lease_pb2.RunReport) -> lease_pb2.ReportResult:
        kind = report.WhichOneof("report") or ""
        task = self.tasks.get(report.lease.task)
        if scripted := self.results.pop((report.lease.task, kind), None):
            return lease_pb2.ReportResult(error=scripted)
        if task is None:
            return lease_pb2.ReportResult(error=to_status(errors.NotFound("task", report.lease.task)))
        mark = f"{kind}/{report.lease.generation}"
        if mark in task.reported and kind != "progress":
            return lease_pb2.ReportResult(phase=task.phase, duplicate=True)  # type: ignore[arg-type]
        if report.lease.generation < task.generation:
            stale = errors.StaleGeneration(task.name, report.lease.generation, task.generation)
            return lease_pb2.ReportResult(error=to_status(stale))
        if task.runner_id != runner_id or task.lease_id != report.lease.lease_id:
            not_held = errors.LeaseNotHeld(task.name, report.lease.generation)
            return lease_pb2.ReportResult(error=to_status(not_held))
        task.reported.add(mark)
        self._transit(task, kind)
        return lease_pb2.ReportResult(phase=task.phase)  # type: ignore[arg-type]

    def _transit(self, task: FakeTask, kind: str) -> None:
        phases = {
            "started": task_pb2.TASK_PHASE_RUNNING,
            "succeeded": task_pb2.TASK_PHASE_SUCCEEDED,
            "failed": task_pb2.TASK_PHASE_FAILED,
            "cancelled": task_pb2.TASK_PHASE_CANCELLED,
            "released": task_pb2.TASK_PHASE_PENDING,
        }
        task.phase = phases.get(kind, task.phase)
        if kind in ("succeeded", "failed", "cancelled", "released"):
            self._settle(task)
            task.runner_id = ""
        if kind == "released":
            self.queue[task.lane].append(task)
            self.publish(leases.WatchQueueResponse(lanes=[self._lane(task.lane)]))

    def _settle(self, task: FakeTask) -> None:
        left = [v for v in self.verdicts[task.runner_id] if v.lease.task != task.name]
        self.verdicts[task.runner_id] = left

    async def RenewLeases(
        self, request: leases.RenewLeasesRequest, context: Context
    ) -> leases.RenewLeasesResponse:
        await self._enter("RenewLeases", request, context)
        lost = [ref for ref in request.leases if self.tasks[ref.task].lease != ref]
        return leases.RenewLeasesResponse(
            verdicts=[lease_pb2.LeaseVerdict(lease=ref, action=lease_pb2.LEASE_ACTION_ABORT) for ref in lost]
        )

    async def AppendLogs(
        self, request: leases.AppendLogsRequest, context: Context
    ) -> leases.AppendLogsResponse:
        await self._enter("AppendLogs", request, context)
        self.logs.extend((request.runner_id, batch) for batch in request.batches)
        return leases.AppendLogsResponse(results=[Status() for _ in request.batches])

    async def WriteCheckpoint(
        self, requests: AsyncIterator[leases.WriteCheckpointRequest], context: Context
    ) -> leases.WriteCheckpointResponse:
        await self._enter("WriteCheckpoint", None, context)
        data, header = b"", None
        async for request in requests:
            header = request.chunk.header if header is None else header
            data += request.chunk.data
        assert header is not None
        self.checkpoints[header.task] = (header.sequence, data)
        return leases.WriteCheckpointResponse()

    async def ReadLeasedCheckpoint(
        self, request: leases.ReadLeasedCheckpointRequest, context: Context
    ) -> AsyncIterator[leases.ReadLeasedCheckpointResponse]:
        await self._enter("ReadLeasedCheckpoint", request, context)
        sequence, data = self.checkpoints[request.lease.task]
        first = leases.ReadLeasedCheckpointResponse()
        first.checkpoint.sequence = sequence
        yield first
        for at in range(0, len(data), 256 * 1024):
            yield leases.ReadLeasedCheckpointResponse(data=data[at : at + 256 * 1024])

    # ---- SessionService

    async def OpenSession(
        self, request: sessions.OpenSessionRequest, context: Context
    ) -> sessions.OpenSessionResponse:
        await self._enter("OpenSession", request, context)
        old = self.sessions.get(request.runner_id)
        alive = old is not None and not old.lost and old.expire_time > time.monotonic()
        if old and alive and old.instance_id != request.instance_id and not request.takeover:
            error = errors.RunnerIdInUse.named(request.runner_id)
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))
        epoch = old.epoch + 1 if old else 1
        expire = time.monotonic() + request.lease_duration.ToTimedelta().total_seconds()
        self.sessions[request.runner_id] = FakeSession(
            epoch, request.instance_id, expire, held=list(request.held)
        )
        runner = self.runners.setdefault(
            request.runner_id, runner_pb2.Runner(name=f"runners/{request.runner_id}")
        )
        runner.registration.CopyFrom(request.registration)
        return sessions.OpenSessionResponse(
            session_id=f"s-{request.runner_id}-{epoch}",
            session_epoch=epoch,
            runner=runner,
            verdicts=self._verdicts_for(request.runner_id, request.held),
        )

    def _verdicts_for(
        self, runner_id: str, held: Sequence[lease_pb2.LeaseRef]
    ) -> list[lease_pb2.LeaseVerdict]:
        lost = [
            lease_pb2.LeaseVerdict(lease=ref, action=lease_pb2.LEASE_ACTION_ABORT, reason="STALE_GENERATION")
            for ref in held
            if ref.task not in self.tasks or self.tasks[ref.task].lease != ref
        ]
        return lost + self.verdicts[runner_id]

    async def RenewSessions(
        self, request: sessions.RenewSessionsRequest, context: Context
    ) -> sessions.RenewSessionsResponse:
        await self._enter("RenewSessions", request, context)
        response = sessions.RenewSessionsResponse()
        for renewal in request.sessions:
            session = self.sessions.get(renewal.runner_id)
            result = response.results.add()
            if session is None or session.lost or session.epoch != renewal.session_epoch:
                result.lost = True
                continue
            session.expire_time = time.monotonic() + renewal.lease_duration.ToTimedelta().total_seconds()
            session.held.extend(renewal.listed)
            result.verdicts.extend(self.verdicts[renewal.runner_id])
        return response

    async def CloseSession(
        self, request: sessions.CloseSessionRequest, context: Context
    ) -> sessions.CloseSessionResponse:
        await self._enter("CloseSession", request, context)
        session = self.sessions.get(request.runner_id)
        if session is not None and session.epoch == request.session_epoch and not request.disconnected:
            session.lost = True
        return sessions.CloseSessionResponse()

    async def RegisterWorker(
        self, request: sessions.RegisterWorkerRequest, context: Context
    ) -> sessions.RegisterWorkerResponse:
        await self._enter("RegisterWorker", request, context)
        runner = self.runners.setdefault(
            request.worker_id, runner_pb2.Runner(name=f"runners/{request.worker_id}")
        )
        return sessions.RegisterWorkerResponse(runner=runner)

    async def VerifyApiKey(
        self, request: sessions.VerifyApiKeyRequest, context: Context
    ) -> sessions.VerifyApiKeyResponse:
        await self._enter("VerifyApiKey", request, context)
        if request.key not in self.keys:
            error = errors.Unauthenticated("unknown key")
            await context.abort(GRPC_CODE[error.code], error.message, trailing_metadata(error))
        return sessions.VerifyApiKeyResponse(api_key=self.keys[request.key])

    @contextlib.contextmanager
    def held_back(self, method: str) -> Any:
        """Calls of this method wait inside the block."""
        self.gates[method] = asyncio.Event()
        try:
            yield
        finally:
            self.gates.pop(method).set()


def _lane_name(tenant: str, key: leases.LaneKey) -> LaneName:
    return (tenant, key.class_id, key.priority, key.pinned_runner)


def pack(result: leases.RunnerClaimResult, heartbeat_id: int) -> None:
    """Replace the assignments by their packed form."""
    packed = result.packed
    workloads: list[leases.Workload] = []
    for assignment in result.assignments:
        assignment.heartbeat_id = heartbeat_id
        lease, spec = assignment.lease, assignment.spec
        packed.entries.append(link.Assignments(assignments=[assignment]).SerializeToString())
        packed.tasks.append(lease.task)
        packed.generations.append(lease.generation)
        packed.lease_ids.append(lease.lease_id)
        kind = spec.execution.WhichOneof("kind") or ""
        workload = leases.Workload(
            task_type=spec.task_type,
            kind=kind,
            function=spec.execution.function.function if kind == "function" else "",
            resources=spec.resources,
        )
        if workload not in workloads:
            workloads.append(workload)
        packed.places.append(workloads.index(workload))
    packed.workloads.extend(workloads)
    del result.assignments[:]
