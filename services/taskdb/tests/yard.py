"""A scheduler and its runners as tests play them: sessions, claims and reports through the internal API."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.duration_pb2 import Duration

from taskyard.status import translated
from taskyard.v1 import (
    common_pb2,
    lease_pb2,
    lease_service_pb2,
    log_pb2,
    runner_link_service_pb2,
    runner_pb2,
    session_service_pb2,
    task_pb2,
    task_service_pb2,
)

Assignment = lease_pb2.Assignment

# What the packed assignments of a claim carry.
HEARTBEAT_ID = 300


@dataclass
class Runner:
    """A runner with a session."""

    id: str
    key_id: str
    epoch: int = 0
    instance_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    held: list[lease_pb2.LeaseRef] = field(default_factory=list)


class Yard:
    """Calls of one scheduler instance."""

    def __init__(self, scheduler: Any, tenant: Any, key_id: str, scheduler_id: str = "scheduler-1") -> None:
        self.scheduler = scheduler
        self.tenant = tenant
        self.key_id = key_id
        self.scheduler_id = scheduler_id

    async def create(self, count: int = 1, **spec: Any) -> list[str]:
        """Names of new tasks."""
        made = []
        for _ in range(count):
            spec.setdefault(
                "execution", task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
            )
            request = task_service_pb2.CreateTaskRequest(
                parent="tenants/default", task=task_pb2.Task(spec=task_pb2.TaskSpec(**spec))
            )
            made.append((await self.tenant.tasks.CreateTask(request)).task.name)
        return made

    async def hello(
        self,
        runner: Runner | str = "runner-1",
        *,
        lease_seconds: float = 30,
        held: Iterable[lease_pb2.LeaseRef] = (),
        takeover: bool = False,
    ) -> tuple[Runner, session_service_pb2.OpenSessionResponse]:
        """Open a session."""
        runner = Runner(runner, self.key_id) if isinstance(runner, str) else runner
        response = await self.scheduler.sessions.OpenSession(
            session_service_pb2.OpenSessionRequest(
                scheduler_id=self.scheduler_id,
                runner_id=runner.id,
                key_id=runner.key_id,
                instance_id=runner.instance_id,
                takeover=takeover,
                registration=runner_pb2.RunnerRegistration(
                    task_types=["*"], execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND], capacity=100
                ),
                held=held,
                lease_duration=duration(lease_seconds),
            )
        )
        runner.epoch = response.session_epoch
        return runner, response

    async def lane_claims(self) -> list[lease_service_pb2.LaneClaim]:
        """All lanes, to take from without an advantage."""
        return [lease_service_pb2.LaneClaim(lane=lane.key) for lane in await self.lanes()]

    async def lanes(self) -> list[lease_service_pb2.Lane]:
        """The lanes of a full queue watch."""
        call = self.scheduler.leases.WatchQueue(
            lease_service_pb2.WatchQueueRequest(scheduler_id=self.scheduler_id)
        )
        with translated():
            response = await call.read()
        call.cancel()
        return list(response.lanes)

    async def claim(
        self,
        runner: Runner,
        max_tasks: int = 100,
        *,
        lanes: Sequence[lease_service_pb2.LaneClaim] | None = None,
        request_id: str = "",
        lease_seconds: float = 15,
        packed: bool = True,
    ) -> lease_service_pb2.RunnerClaimResult:
        """Claim for one runner from these lanes, or from all there are."""
        if lanes is None:
            lanes = await self.lane_claims()
        if not lanes:
            return lease_service_pb2.RunnerClaimResult()
        response = await self.scheduler.leases.ClaimForRunners(
            lease_service_pb2.ClaimForRunnersRequest(
                scheduler_id=self.scheduler_id,
                request_id=request_id or uuid.uuid4().hex,
                runners=[
                    lease_service_pb2.RunnerClaim(
                        runner_id=runner.id,
                        session_epoch=runner.epoch,
                        max_tasks=max_tasks,
                        lease_duration=duration(lease_seconds),
                        heartbeat_id=HEARTBEAT_ID,
                        tenants=[
                            lease_service_pb2.TenantClaim(tenant="default", max_tasks=max_tasks, lanes=lanes)
                        ],
                    )
                ],
                packed=packed,
            )
        )
        result: lease_service_pb2.RunnerClaimResult = response.results[0]
        if packed:
            _unpack(result)
        return result

    async def report(
        self, runner: Runner | str, *reports: lease_pb2.RunReport
    ) -> list[lease_pb2.ReportResult]:
        """Results of reports."""
        runner_id = runner if isinstance(runner, str) else runner.id
        response = await self.scheduler.leases.ReportRuns(
            lease_service_pb2.ReportRunsRequest(
                reports=[
                    lease_service_pb2.HolderReport(runner_id=runner_id, report=report) for report in reports
                ]
            )
        )
        return list(response.results)

    async def complete(self, *holders: lease_service_pb2.HolderRuns) -> list[lease_service_pb2.RunException]:
        """The exceptions of short runs."""
        request = lease_service_pb2.CompleteRunsRequest(holders=holders)
        return list((await self.scheduler.leases.CompleteRuns(request)).exceptions)

    async def renew(
        self,
        runner: Runner,
        *,
        listed: Iterable[lease_pb2.LeaseRef] = (),
        dropped: Iterable[lease_pb2.LeaseRef] = (),
        lease_seconds: float = 30,
    ) -> session_service_pb2.SessionRenewalResult:
        """A heartbeat."""
        response = await self.scheduler.sessions.RenewSessions(
            session_service_pb2.RenewSessionsRequest(
                scheduler_id=self.scheduler_id,
                sessions=[
                    session_service_pb2.SessionRenewal(
                        runner_id=runner.id,
                        session_epoch=runner.epoch,
                        lease_duration=duration(lease_seconds),
                        listed=listed,
                        dropped=dropped,
                    )
                ],
            )
        )
        result: session_service_pb2.SessionRenewalResult = response.results[0]
        return result

    async def write(self, runner: Runner, assignment: lease_pb2.Assignment, *lines: str) -> None:
        """The task writes its first lines."""
        entries = [log_pb2.LogEntry(sequence=n, message=line) for n, line in enumerate(lines, 1)]
        batch = lease_pb2.LogBatch(lease=assignment.lease, entries=entries)
        request = lease_service_pb2.AppendLogsRequest(runner_id=runner.id, batches=[batch])
        await self.scheduler.leases.AppendLogs(request)

    async def task(self, name: str) -> task_pb2.Task:
        """The task as a user sees it."""
        response = await self.tenant.tasks.GetTask(task_service_pb2.GetTaskRequest(name=name))
        found: task_pb2.Task = response.task
        return found


def duration(seconds: float) -> Duration:
    """A duration."""
    made = Duration()
    made.FromNanoseconds(int(seconds * 1e9))
    return made


def started(assignment: Assignment) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted())


def succeeded(assignment: Assignment, **fields: Any) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded(**fields))


def short_runs(
    runner: Runner | str, *assignments: Assignment, **columns: Any
) -> lease_service_pb2.HolderRuns:
    """Runs that started and ended just now; `columns` replace or add some."""
    now = time.time_ns() // 1000
    given: dict[str, Any] = {
        "tasks": [one.lease.task for one in assignments],
        "generations": [one.lease.generation for one in assignments],
        "lease_ids": [one.lease.lease_id for one in assignments],
        "start_times": [now] * len(assignments),
        "end_times": [now] * len(assignments),
    }
    runs = lease_pb2.ShortRuns(first_seq=1, **(given | columns))
    return lease_service_pb2.HolderRuns(runner_id=runner if isinstance(runner, str) else runner.id, runs=runs)


def with_start(report: lease_pb2.RunReport, **start: Any) -> lease_pb2.RunReport:
    """The outcome of a run whose start was not reported before."""
    report.start.CopyFrom(lease_pb2.RunStarted(**start))
    return report


def failed(
    assignment: Assignment, code: str = "EXIT_NONZERO", *, permanent: bool = False
) -> lease_pb2.RunReport:
    report = lease_pb2.RunReport(lease=assignment.lease)
    report.failed.error.code = code
    permanence = common_pb2.ERROR_CLASS_PERMANENT if permanent else common_pb2.ERROR_CLASS_TRANSIENT
    report.failed.error.error_class = permanence
    return report


def released(
    assignment: Assignment, reason: int = lease_pb2.RELEASE_REASON_NO_CAPACITY
) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(
        lease=assignment.lease,
        released=lease_pb2.RunReleased(reason=lease_pb2.ReleaseReason.ValueType(reason)),
    )


def _unpack(result: lease_service_pb2.RunnerClaimResult) -> None:
    """Read the assignments of the packed form, as a runner does; the columns beside them say the same."""
    packed = result.packed
    assert not result.assignments
    found = runner_link_service_pb2.Assignments.FromString(b"".join(packed.entries)).assignments
    assert [one.lease.task for one in found] == list(packed.tasks)
    assert [one.lease.generation for one in found] == list(packed.generations)
    assert [one.lease.lease_id for one in found] == list(packed.lease_ids)
    places = list(packed.places) or [0] * len(found)
    for one, place in zip(found, places, strict=True):
        workload, kind = packed.workloads[place], one.spec.execution.WhichOneof("kind")
        assert (workload.task_type, workload.kind) == (one.spec.task_type, kind)
        assert workload.function == (one.spec.execution.function.function if kind == "function" else "")
        assert workload.resources == one.spec.resources
        assert one.heartbeat_id == HEARTBEAT_ID
    result.ClearField("packed")
    result.assignments.extend(found)
