"""A test runner that speaks the link: it keeps the rules by default and breaks them on demand.

    async with LinkRunner(address, key, "runner-1", capacity=4) as runner:
        await runner.connect()
        assignment = await runner.next_assignment()
        await runner.complete(assignment)

Misbehaviour: `send` writes any message, `repeat` sends reports again, `freeze` stops reading and heartbeats,
`vanish` drops the stream without a word, `forge` makes a lease of another generation, `hold_acks` keeps
acknowledged reports as if the acknowledgement had not arrived, `ignore_windows` sends beyond the window.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Self

import grpc
import grpc.aio

from taskyard.channel import client_channel_options, open_channel
from taskyard.errors import TaskyardError
from taskyard.status import from_rpc_error
from taskyard.v1 import lease_pb2, runner_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub

RunKey = tuple[str, int]
KINDS = (
    runner_pb2.EXECUTION_KIND_COMMAND,
    runner_pb2.EXECUTION_KIND_SCRIPT,
    runner_pb2.EXECUTION_KIND_FUNCTION,
)
MAX_RECEIVE_BYTES = 8 * 1024 * 1024
PATIENCE = 10.0


def registration(
    capacity: int = 4, prefetch: int = 0, *, task_types: Sequence[str] = ("*",), **fields: Any
) -> runner_pb2.RunnerRegistration:
    """The registration of a runner; by default one of commands, scripts and functions."""
    fields.setdefault("execution_kinds", KINDS)
    return runner_pb2.RunnerRegistration(
        capacity=capacity, prefetch=prefetch, task_types=task_types, version="test", **fields
    )


def run_key(lease: lease_pb2.LeaseRef) -> RunKey:
    return (lease.task, lease.generation)


def short_runs(
    refs: Sequence[lease_pb2.LeaseRef], first_seq: int = 1, now: int = 0, **columns: Any
) -> lease_pb2.ShortRuns:
    """Runs of these leases in columns; columns given replace those made here."""
    made: dict[str, Any] = {
        "first_seq": first_seq,
        "tasks": [ref.task for ref in refs],
        "generations": [ref.generation for ref in refs],
        "lease_ids": [ref.lease_id for ref in refs],
        "start_times": [now] * len(refs),
        "end_times": [now] * len(refs),
    }
    return lease_pb2.ShortRuns(**{**made, **columns})


class LinkRunner:
    """One agent process with its spool; `connect` may be called again after the stream has ended."""

    def __init__(
        self,
        address: str,
        key: str,
        runner_id: str = "runner-1",
        *,
        described: runner_pb2.RunnerRegistration | None = None,
        capacity: int = 4,
        prefetch: int = 0,
        heartbeats: bool = True,
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        self.runner_id = runner_id
        self.registration = described or registration(capacity, prefetch)
        self.instance_id = str(uuid.uuid4())
        self.heartbeats = heartbeats
        self.welcome: link.Welcome | None = None
        self.draining = False
        # The leases it holds, by run, and those it has listed to the scheduler.
        self.held: dict[RunKey, link.HeldTask] = {}
        self.spool: dict[int, lease_pb2.RunReport] = {}
        self.held_back: dict[int, lease_pb2.RunReport] = {}
        self.rejections: list[link.ReportRejection] = []
        self.through_seq = 0
        self.heartbeat_sent: dict[int, float] = {}
        self.received: list[link.ConnectResponse] = []
        self.hold_acks = False
        self.ignore_windows = False
        self._own_channel = channel is None
        self._channel = channel or open_channel(
            address, key=key, options=client_channel_options(MAX_RECEIVE_BYTES)
        )
        self._stub: Any = RunnerLinkServiceStub(self._channel)
        self._call: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._next_seq = 1
        self._heartbeat_id = 0
        self._dropped: list[lease_pb2.LeaseRef] = []
        self._changed: dict[RunKey, link.HeldTask] = {}
        self._assignments: asyncio.Queue[lease_pb2.Assignment] = asyncio.Queue()
        self._news = asyncio.Condition()
        self._reading = asyncio.Event()
        self._write_lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.vanish()
        if self._own_channel:
            await self._channel.close()

    # ---- connecting

    def hello(self, *, takeover: bool = False, free: int | None = None, **fields: Any) -> link.Hello:
        """Hello with everything the agent has."""
        room = self.free() if free is None else free
        fields.setdefault("protocol_version", 1)
        return link.Hello(
            runner_id=self.runner_id,
            instance_id=self.instance_id,
            takeover=takeover,
            registration=self.registration,
            free=link.Capacity(tasks=room),
            held=self.held.values(),
            draining=self.draining,
            **fields,
        )

    def open(self) -> None:
        """Open the stream without saying anything."""
        self._call = self._stub.Connect()
        self._heartbeat_id = 0
        self._changed.clear()
        self._dropped.clear()
        self._reading.set()

    async def connect(self, hello: link.Hello | None = None, *, takeover: bool = False) -> link.Welcome:
        """Send hello, wait for welcome, resend the spool; raises taskyard.errors if it is refused."""
        await self.vanish()
        self.open()
        self.heartbeat_sent = {0: time.monotonic()}
        await self.send(hello=hello or self.hello(takeover=takeover))
        message = await self._read_one()
        assert message.WhichOneof("message") == "welcome", message
        self.welcome = message.welcome
        self._follow(message.welcome.verdicts)
        self._tasks = [asyncio.create_task(self._read())]
        if self.heartbeats:
            self._tasks.append(asyncio.create_task(self._beat()))
        if self.spool:
            await self.send(reports=link.ReportBatch(reports=self.spool.values()))
        return self.welcome

    async def vanish(self) -> None:
        """Drop the stream without a word."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._call is not None:
            self._call.cancel()
            self._call = None

    async def send_goodbye(self, *, keep_leases: bool = False) -> None:
        """Goodbye of the agent, then the orderly end of the stream."""
        reason = link.RUNNER_GOODBYE_REASON_RESTART if keep_leases else link.RUNNER_GOODBYE_REASON_SHUTDOWN
        await self.send(goodbye=link.RunnerGoodbye(reason=reason, keep_leases=keep_leases))
        await self.half_close()

    async def half_close(self) -> None:
        async with self._write_lock:
            await self._call.done_writing()

    async def ended(self, timeout: float = PATIENCE) -> TaskyardError | None:
        """Wait for the end of the stream: None after OK, else the error."""
        async with asyncio.timeout(timeout):
            code = await self._call.code()
            details, trailers = await self._call.details(), await self._call.trailing_metadata()
        if code is grpc.StatusCode.OK:
            return None
        return from_rpc_error(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, details))

    @property
    def connected(self) -> bool:
        return self._call is not None and not self._call.done()

    # ---- sending

    async def send(self, **message: Any) -> None:
        """Write one message unchecked."""
        async with self._write_lock:
            await self._call.write(link.ConnectRequest(**message))

    def free(self) -> int:
        live = sum(held.state != link.HELD_STATE_ENDED for held in self.held.values())
        return max(0, self.registration.capacity - live)

    async def heartbeat(self, *, full: bool = False, **fields: Any) -> int:
        """Send a heartbeat now; its id. Fields given replace those of an honest one."""
        self._heartbeat_id += 1
        heartbeat = link.Heartbeat(
            heartbeat_id=self._heartbeat_id,
            free=link.Capacity(tasks=self.free()),
            changed=(self.held if full else self._changed).values(),
            dropped=self._dropped,
            held_count=len(self.held),
            full=full,
            draining=self.draining,
            spool_depth=len(self.spool),
        )
        for name, value in fields.items():
            if isinstance(value, int | bool):
                setattr(heartbeat, name, value)
            else:
                getattr(heartbeat, name).CopyFrom(value)
        self.heartbeat_sent[self._heartbeat_id] = time.monotonic()
        await self.send(heartbeat=heartbeat)
        return self._heartbeat_id

    async def heartbeat_acked(self, heartbeat_id: int, timeout: float = PATIENCE) -> link.HeartbeatAck:
        """Wait for the ack of this or a later heartbeat."""

        def found(message: link.ConnectResponse) -> bool:
            return message.heartbeat_ack.heartbeat_id >= heartbeat_id

        return (await self.message("heartbeat_ack", found, timeout)).heartbeat_ack

    async def report(self, lease: lease_pb2.LeaseRef, **report: Any) -> int:
        """Spool a report and send it; its seq."""
        return (await self.report_all([lease_pb2.RunReport(lease=lease, **report)]))[-1]

    async def report_all(self, reports: Iterable[lease_pb2.RunReport]) -> list[int]:
        """Spool reports and send them in one message once the window allows; their seqs."""
        await self._window()
        batch = []
        for report in reports:
            report.seq = self._next_seq
            self._next_seq += 1
            self.spool[report.seq] = report
            batch.append(report)
            if report.WhichOneof("report") not in ("started", "progress"):
                self._change(report.lease, link.HELD_STATE_ENDED)
        await self.send(reports=link.ReportBatch(reports=batch))
        return [report.seq for report in batch]

    async def report_short(self, assignments: Sequence[lease_pb2.Assignment], **columns: Any) -> int:
        """Spool runs that have ended and send them in columns; the seq of the last."""
        now = time.time_ns() // 1000
        runs = short_runs([assignment.lease for assignment in assignments], self._next_seq, now, **columns)
        for assignment in assignments:
            report = lease_pb2.RunReport(
                lease=assignment.lease,
                seq=self._next_seq,
                start=lease_pb2.RunStarted(),
                succeeded=lease_pb2.RunSucceeded(),
            )
            self.spool[report.seq] = report
            self._next_seq += 1
            self._change(report.lease, link.HELD_STATE_ENDED)
        await self.send(short_runs=runs)
        return self._next_seq - 1

    async def _window(self) -> None:
        if self.ignore_windows or self.welcome is None:
            return
        limit = self.welcome.flow.max_unacked_reports
        async with self._news:
            await self._news.wait_for(lambda: len(self.spool) < limit or not self.connected)

    async def started(self, assignment: lease_pb2.Assignment) -> int:
        self._change(assignment.lease, link.HELD_STATE_RUNNING)
        return await self.report(assignment.lease, started=lease_pb2.RunStarted())

    async def succeeded(self, assignment: lease_pb2.Assignment) -> int:
        return await self.report(assignment.lease, succeeded=lease_pb2.RunSucceeded(exit_code=0))

    async def released(
        self, assignment: lease_pb2.Assignment, reason: lease_pb2.ReleaseReason.ValueType
    ) -> int:
        return await self.report(assignment.lease, released=lease_pb2.RunReleased(reason=reason))

    async def complete(self, assignment: lease_pb2.Assignment) -> int:
        """Start and end a task at once, and wait until that is acknowledged."""
        seqs = await self.report_all(
            [
                lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted()),
                lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded(exit_code=0)),
            ]
        )
        await self.acked(seqs[-1])
        return seqs[-1]

    async def repeat(self, *seqs: int) -> None:
        """Send reports again, also those that were acknowledged, with new seqs for the same runs."""
        known = {**self.held_back, **self.spool}
        await self.report_all([_unnumbered(known[seq]) for seq in seqs])

    def forge(self, lease: lease_pb2.LeaseRef, **changes: Any) -> lease_pb2.LeaseRef:
        """A lease like this one, but of another generation or lease_id."""
        forged = lease_pb2.LeaseRef(task=lease.task, generation=lease.generation, lease_id=lease.lease_id)
        for name, value in changes.items():
            setattr(forged, name, value)
        return forged

    def freeze(self) -> None:
        """Read nothing and send no heartbeats, as a stopped process does."""
        self._reading.clear()
        for task in self._tasks[1:]:
            task.cancel()

    def thaw(self) -> None:
        """Read again; heartbeats are sent by hand from now on."""
        self._reading.set()

    # ---- receiving

    async def next_assignment(self, timeout: float = PATIENCE) -> lease_pb2.Assignment:
        """Wait for the next task."""
        async with asyncio.timeout(timeout):
            return await self._assignments.get()

    @property
    def waiting_assignments(self) -> int:
        return self._assignments.qsize()

    async def acked(self, seq: int, timeout: float = PATIENCE) -> None:
        """Wait until every report up to this seq is acknowledged."""
        async with asyncio.timeout(timeout), self._news:
            await self._news.wait_for(lambda: self.through_seq >= seq)

    async def spool_emptied(self, timeout: float = PATIENCE) -> None:
        """Wait until every report was acknowledged."""
        async with asyncio.timeout(timeout), self._news:
            await self._news.wait_for(lambda: not self.spool)

    async def message(self, kind: str, found: Any = None, timeout: float = PATIENCE) -> link.ConnectResponse:
        """Wait for a message of this kind among all that were and will be received on this stream."""

        def search() -> link.ConnectResponse | None:
            for message in self.received:
                if message.WhichOneof("message") == kind and (found is None or found(message)):
                    return message
            return None

        async with asyncio.timeout(timeout), self._news:
            await self._news.wait_for(lambda: search() is not None)
        result = search()
        assert result is not None
        return result

    def messages(self, kind: str) -> list[link.ConnectResponse]:
        """Everything of this kind that was received so far."""
        return [message for message in self.received if message.WhichOneof("message") == kind]

    async def _read_one(self) -> link.ConnectResponse:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error
        if message is grpc.aio.EOF:
            raise await self.ended() or AssertionError("the stream ended before welcome")
        found: link.ConnectResponse = message
        self.received = [found]
        return found

    async def _read(self) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):
            while True:
                await self._reading.wait()
                message = await self._call.read()
                if message is grpc.aio.EOF:
                    return
                await self._reading.wait()
                await self._receive(message)

    async def _receive(self, message: link.ConnectResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "assignments":
            for assignment in message.assignments.assignments:
                self._take_on(assignment)
        elif kind == "report_ack":
            self._acknowledge(message.report_ack)
        elif kind == "heartbeat_ack":
            self._follow(message.heartbeat_ack.verdicts)
            if message.heartbeat_ack.full_requested:
                await self.heartbeat(full=True)
        elif kind == "command" and message.command.HasField("leases"):
            self._follow(message.command.leases.verdicts)
        async with self._news:
            self.received.append(message)
            self._news.notify_all()

    def _take_on(self, assignment: lease_pb2.Assignment) -> None:
        key = run_key(assignment.lease)
        if key not in self.held:
            self._change(assignment.lease, link.HELD_STATE_ACCEPTED)
            self._assignments.put_nowait(assignment)

    def _acknowledge(self, ack: link.ReportAck) -> None:
        self.rejections.extend(ack.rejections)
        for seq in [seq for seq in self.spool if seq <= ack.through_seq]:
            report = self.spool[seq] if self.hold_acks else self.spool.pop(seq)
            self.held_back[seq] = report
            if report.WhichOneof("report") not in ("started", "progress"):
                self._drop(report.lease)
        self.through_seq = max(self.through_seq, ack.through_seq)

    def _follow(self, verdicts: Iterable[lease_pb2.LeaseVerdict]) -> None:
        for verdict in verdicts:
            if verdict.action == lease_pb2.LEASE_ACTION_ABORT:
                self._drop(verdict.lease)

    def _change(self, lease: lease_pb2.LeaseRef, state: link.HeldState.ValueType) -> None:
        held = link.HeldTask(lease=lease, state=state)
        self.held[run_key(lease)] = self._changed[run_key(lease)] = held

    def _drop(self, lease: lease_pb2.LeaseRef) -> None:
        if self.held.pop(run_key(lease), None) is not None:
            self._changed.pop(run_key(lease), None)
            self._dropped.append(lease)

    async def _beat(self) -> None:
        assert self.welcome is not None
        interval = self.welcome.heartbeat_interval.ToTimedelta().total_seconds()
        while True:
            await asyncio.sleep(interval)
            await self.heartbeat()


def _unnumbered(report: lease_pb2.RunReport) -> lease_pb2.RunReport:
    copy = lease_pb2.RunReport()
    copy.CopyFrom(report)
    return copy
