"""A scheduler for the runner's tests: a real gRPC server that speaks the link, and misbehaves on demand."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.duration_pb2 import Duration
from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.status import to_status, trailing_metadata
from taskyard.v1 import checkpoint_pb2, lease_pb2, log_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import (
    RunnerLinkServiceServicer,
    add_RunnerLinkServiceServicer_to_server,
)

PATIENCE = 20.0
RunKey = tuple[str, int]


def duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))


def run_key(lease: lease_pb2.LeaseRef) -> RunKey:
    return lease.task, lease.generation


GRPC = {code: found for found in grpc.StatusCode for code in errors.Code if code == found.value[0]}
T = TypeVar("T")
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True)
class Task:
    """A task that was assigned."""

    assignment: lease_pb2.Assignment

    @property
    def key(self) -> RunKey:
        return run_key(self.assignment.lease)


class Session:
    """One stream."""

    def __init__(self, hello: link.Hello) -> None:
        self.hello = hello
        self.outbox: asyncio.Queue[link.ConnectResponse | None] = asyncio.Queue()
        self.heartbeats: list[link.Heartbeat] = []
        self.goodbye: link.RunnerGoodbye | None = None
        self.last_heartbeat_id = 0
        self.seqs: list[int] = []
        # The short runs that came in columns, by message.
        self.blocks: list[lease_pb2.ShortRuns] = []
        self.ended = False

    def send(self, **message: Any) -> None:
        self.outbox.put_nowait(link.ConnectResponse(**message))


def reports_of(runs: lease_pb2.ShortRuns) -> list[lease_pb2.RunReport]:
    """What a block of short runs says, as reports."""
    made = []
    for place, task in enumerate(runs.tasks):
        report = lease_pb2.RunReport(seq=runs.first_seq + place, succeeded=lease_pb2.RunSucceeded())
        report.lease.task = task
        report.lease.generation, report.lease.lease_id = runs.generations[place], runs.lease_ids[place]
        report.start_time.FromMicroseconds(runs.start_times[place])
        report.time.FromMicroseconds(runs.end_times[place])
        report.start.SetInParent()
        if runs.exit_codes:
            report.succeeded.exit_code = runs.exit_codes[place]
        if runs.results and runs.results[place]:
            report.succeeded.result.ParseFromString(runs.results[place])
        if runs.log_sequences:
            report.log_sequence = runs.log_sequences[place]
        if runs.start_checkpoints:
            report.start.checkpoint_sequence = runs.start_checkpoints[place]
        made.append(report)
    return made


class SchedulerPeer(RunnerLinkServiceServicer):
    """Acknowledges everything unless switched off; `changed` wakes the waiting tests."""

    def __init__(self, **welcome: Any) -> None:
        self.heartbeat_interval = welcome.pop("heartbeat_interval", 1.0)
        self.lease_duration = welcome.pop("lease_duration", 30.0)
        self.first_lease = welcome.pop("first_lease", 15.0)
        self.welcome = welcome
        self.ack_heartbeats = self.ack_reports = self.ack_logs = self.ack_checkpoints = True
        # Errors for the next checkpoints, and whether they are sent as CheckpointRetry.
        self.checkpoint_failures: list[errors.TaskyardError] = []
        self.checkpoint_retries = True
        # Errors for the next calls about children, and how many of them have come.
        self.child_failures: Iterable[errors.TaskyardError] = ()
        self.child_calls = 0
        self.refuse: errors.TaskyardError | None = None
        self.reject: Callable[[lease_pb2.RunReport], Status | None] = lambda report: None
        self.verdicts: list[lease_pb2.LeaseVerdict] = []
        self.sessions: list[Session] = []
        self.reports: dict[RunKey, list[lease_pb2.RunReport]] = defaultdict(list)
        self.order: list[lease_pb2.RunReport] = []
        self.logs: dict[RunKey, dict[int, log_pb2.LogEntry]] = defaultdict(dict)
        self.checkpoints: dict[str, tuple[checkpoint_pb2.CheckpointHeader, bytes]] = {}
        self.keys: list[str] = []
        self._incoming = bytearray()
        self._header: checkpoint_pb2.CheckpointHeader | None = None
        self._changed = asyncio.Condition()
        self._numbers = itertools.count(1)
        self._server: grpc.aio.Server | None = None
        self.port = 0

    # -- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Serve, on the port it had before if it had one."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_RunnerLinkServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        """Be gone without a word."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def session(self) -> Session:
        return self.sessions[-1]

    # -- waiting

    async def until(self, found: Callable[[], T | None], patience: float = PATIENCE) -> T:
        """What `found` returns once that is true; asked again whenever something arrived."""
        async with asyncio.timeout(patience), self._changed:
            while not (result := found()):
                await self._changed.wait()
            return result

    async def next_session(self, count: int = 1) -> Session:
        """The session number `count`, once it is welcomed."""
        await self.until(lambda: len(self.sessions) >= count)
        return self.sessions[count - 1]

    async def report(self, task: Task, kind: str) -> lease_pb2.RunReport:
        """The first report of this kind about a run."""

        def find() -> lease_pb2.RunReport | None:
            reports = self.reports[task.key]
            return next((report for report in reports if report.WhichOneof("report") == kind), None)

        return await self.until(find)

    async def outcome(self, task: Task) -> lease_pb2.RunReport:
        """The report that ends a run."""

        def find() -> lease_pb2.RunReport | None:
            reports = self.reports[task.key]
            ends = [r for r in reports if r.WhichOneof("report") not in ("started", "progress")]
            return ends[0] if ends else None

        return await self.until(find)

    async def lines(self, task: Task, count: int) -> list[log_pb2.LogEntry]:
        """The first entries of a run's log."""
        await self.until(lambda: len(self.logs[task.key]) >= count)
        return [entry for _, entry in sorted(self.logs[task.key].items())]

    async def line(self, task: Task, text: str) -> log_pb2.LogEntry:
        """The entry with this text."""

        def find() -> log_pb2.LogEntry | None:
            return next((entry for entry in self.logs[task.key].values() if entry.message == text), None)

        return await self.until(find)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # -- work

    def task(self, spec: task_pb2.TaskSpec, generation: int = 1, name: str = "", **fields: Any) -> Task:
        """An assignment that was not sent yet."""
        if spec.overlap == task_pb2.OVERLAP_POLICY_UNSPECIFIED:
            spec.overlap = task_pb2.OVERLAP_POLICY_ALLOW
        name = name or f"tenants/default/tasks/t{next(self._numbers)}"
        lease = lease_pb2.LeaseRef(task=name, generation=generation, lease_id=secrets.randbits(62))
        assignment = lease_pb2.Assignment(
            lease=lease, lease_ttl=duration(self.first_lease), attempt=1, spec=spec, **fields
        )
        return Task(assignment)

    def send(self, *tasks: Task) -> None:
        """Assign tasks on the current session."""
        for task in tasks:
            task.assignment.heartbeat_id = self.session.last_heartbeat_id
        self.session.send(assignments=link.Assignments(assignments=[task.assignment for task in tasks]))

    def assign(self, spec: task_pb2.TaskSpec, **fields: Any) -> Task:
        """Make a task and assign it."""
        task = self.task(spec, **fields)
        self.send(task)
        return task

    def send_verdict(
        self,
        task: Task,
        action: lease_pb2.LeaseAction.ValueType,
        grace: float | None = None,
        reason: str = "",
    ) -> None:
        """Cancel, pause or abort a run."""
        verdict = lease_pb2.LeaseVerdict(lease=task.assignment.lease, action=action, reason=reason)
        if grace is not None:
            verdict.grace_period.CopyFrom(duration(grace))
        self.session.send(command=link.Command(leases=link.LeaseVerdicts(verdicts=[verdict])))

    # -- the link

    async def Connect(
        self, requests: AsyncIterator[link.ConnectRequest], context: Context
    ) -> AsyncIterator[link.ConnectResponse]:
        metadata = dict(context.invocation_metadata() or ())
        self.keys.append(str(metadata.get("authorization", "")))
        if self.refuse is not None:
            await self._notify()
            context.set_trailing_metadata(trailing_metadata(self.refuse))
            await context.abort(GRPC[self.refuse.code], self.refuse.message)
        hello = (await anext(requests)).hello
        session = Session(hello)
        session.send(welcome=self._welcome(hello))
        self.sessions.append(session)
        reader = asyncio.create_task(self._read(session, requests))
        await self._notify()
        try:
            while (response := await session.outbox.get()) is not None:
                yield response
        finally:
            session.ended = True
            reader.cancel()
            await self._notify()

    def _welcome(self, hello: link.Hello) -> link.Welcome:
        verdicts = [v for v in self.verdicts if run_key(v.lease) in {run_key(h.lease) for h in hello.held}]
        return link.Welcome(
            session_id=f"session-{len(self.sessions)}",
            session_epoch=len(self.sessions) + 1,
            protocol_version=1,
            heartbeat_interval=duration(self.heartbeat_interval),
            lease_duration=duration(self.lease_duration),
            verdicts=verdicts,
            **self.welcome,
        )

    async def _read(self, session: Session, requests: AsyncIterator[link.ConnectRequest]) -> None:
        async for request in requests:
            match request.WhichOneof("message"):
                case "heartbeat":
                    self._heartbeat(session, request.heartbeat)
                case "reports":
                    self._reports(session, request.reports)
                case "short_runs":
                    assert self.welcome.get("short_runs"), "only a scheduler that takes them gets them"
                    session.blocks.append(request.short_runs)
                    self._reports(session, link.ReportBatch(reports=reports_of(request.short_runs)))
                case "logs":
                    self._logs(session, request.logs)
                case "checkpoint_chunk":
                    self._chunk(session, request.checkpoint_chunk)
                case "goodbye":
                    session.goodbye = request.goodbye
            await self._notify()
        session.outbox.put_nowait(None)

    def _heartbeat(self, session: Session, heartbeat: link.Heartbeat) -> None:
        assert heartbeat.heartbeat_id == session.last_heartbeat_id + 1
        session.last_heartbeat_id = heartbeat.heartbeat_id
        session.heartbeats.append(heartbeat)
        if self.ack_heartbeats:
            session.send(
                heartbeat_ack=link.HeartbeatAck(
                    heartbeat_id=heartbeat.heartbeat_id,
                    lease_ttl=duration(self.lease_duration),
                    verdicts=self.verdicts,
                )
            )

    def _reports(self, session: Session, batch: link.ReportBatch) -> None:
        rejections = []
        for report in batch.reports:
            assert report.seq == 0 or not session.seqs or report.seq > session.seqs[-1], "seqs ascend"
            self.reports[run_key(report.lease)].append(report)
            self.order.append(report)
            if report.seq:
                session.seqs.append(report.seq)
                if (status := self.reject(report)) is not None:
                    rejections.append(link.ReportRejection(seq=report.seq, lease=report.lease, status=status))
        if self.ack_reports and session.seqs:
            session.send(report_ack=link.ReportAck(through_seq=session.seqs[-1], rejections=rejections))

    def _logs(self, session: Session, batch: lease_pb2.LogBatch) -> None:
        kept = self.logs[run_key(batch.lease)]
        for entry in batch.entries:
            if entry.sequence in kept:
                assert kept[entry.sequence] == entry, "a repeated entry is the same"
            kept[entry.sequence] = entry
        if self.ack_logs:
            last = batch.entries[-1].sequence
            session.send(log_ack=link.LogAck(lease=batch.lease, through_sequence=last))

    def _chunk(self, session: Session, chunk: checkpoint_pb2.CheckpointChunk) -> None:
        if chunk.HasField("header"):
            self._header, self._incoming = chunk.header, bytearray()
        assert self._header is not None and chunk.offset == len(self._incoming)
        self._incoming += chunk.data
        header = self._header
        if chunk.last and self.ack_checkpoints:
            assert hashlib.sha256(self._incoming).digest() == header.sha256
            lease = lease_pb2.LeaseRef(
                task=header.task, generation=header.generation, lease_id=header.lease_id
            )
            if self.checkpoint_failures:
                self._fail_checkpoint(session, lease, header.sequence)
                return
            self.checkpoints[header.task] = (header, bytes(self._incoming))
            session.send(checkpoint_ack=link.CheckpointAck(lease=lease, sequence=header.sequence))

    def _fail_checkpoint(self, session: Session, lease: lease_pb2.LeaseRef, sequence: int) -> None:
        status = to_status(self.checkpoint_failures.pop(0))
        if self.checkpoint_retries:
            retry = link.CheckpointRetry(lease=lease, sequence=sequence, status=status)
            session.send(checkpoint_retry=retry)
        else:
            session.send(checkpoint_ack=link.CheckpointAck(lease=lease, sequence=sequence, status=status))

    async def DownloadCheckpoint(
        self, request: link.DownloadCheckpointRequest, context: Context
    ) -> AsyncIterator[link.DownloadCheckpointResponse]:
        header, content = self.checkpoints[request.lease.task]
        yield link.DownloadCheckpointResponse(checkpoint=checkpoint_of(header))
        for start in range(0, len(content), 262144):
            yield link.DownloadCheckpointResponse(data=content[start : start + 262144])

    async def SubmitChildTasks(
        self, request: link.SubmitChildTasksRequest, context: Context
    ) -> link.SubmitChildTasksResponse:
        await self._fail_child_call(context)
        names = [f"{request.lease.task}.{child.key}" for child in request.children]
        return link.SubmitChildTasksResponse(tasks=names)

    async def FetchChildOutcomes(
        self, request: link.FetchChildOutcomesRequest, context: Context
    ) -> link.FetchChildOutcomesResponse:
        await self._fail_child_call(context)
        live = [lease_pb2.ChildOutcome(task=task) for task in request.tasks]
        return link.FetchChildOutcomesResponse(outcomes=live)

    async def _fail_child_call(self, context: Context) -> None:
        self.child_calls += 1
        await self._notify()
        self.child_failures = iter(self.child_failures)
        if (failure := next(self.child_failures, None)) is not None:
            context.set_trailing_metadata(trailing_metadata(failure))
            await context.abort(GRPC[failure.code], failure.message)


def checkpoint_of(header: checkpoint_pb2.CheckpointHeader) -> checkpoint_pb2.Checkpoint:
    """An assignment's description of a stored checkpoint."""
    return checkpoint_pb2.Checkpoint(
        name=f"{header.task}/checkpoints/{header.sequence}",
        sequence=header.sequence,
        generation=header.generation,
        size_bytes=header.size_bytes,
        sha256=header.sha256,
        content_type=header.content_type,
    )


def stale(report: lease_pb2.RunReport) -> Status:
    """The rejection of a lost lease."""
    lease = report.lease
    return to_status(errors.StaleGeneration(lease.task, lease.generation, lease.generation + 1))
