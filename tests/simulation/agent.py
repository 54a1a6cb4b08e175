"""A runner in the simulation: its real lease clock, a spool, workloads, and a warden that keeps time."""

from __future__ import annotations

import asyncio
import random
import uuid
from dataclasses import dataclass

import grpc.aio

from taskyard.v1 import lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_runner.agent.leases import Held, Leases, key_of, lease_end
from taskyard_scheduler.rpc.link import RunnerLinkServicer
from tests.simulation.network import Stream, Weather


@dataclass
class Interval:
    """A workload as it really ran."""

    task: str
    forbid: bool
    runner_id: str
    start: float
    end: float = float("inf")


class SimAgent:
    """Connects to any of the schedulers, works, freezes and loses its stream as the weather has it."""

    CAPACITY = 2
    # A mutation counts the first lease from the receipt of the assignment.
    count_from_receipt = False

    def __init__(
        self, runner_id: str, servicers: list[RunnerLinkServicer], weather: Weather, history: list[Interval]
    ) -> None:
        self.runner_id = runner_id
        self._servicers = servicers
        self._weather = weather
        self._history = history
        self._rng = random.Random(weather.rng.random())
        self._instance_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        self._leases = Leases()
        self._spool: dict[int, lease_pb2.RunReport] = {}
        self._seq = 0
        self._stream: Stream | None = None
        self._awake = asyncio.Event()
        self._awake.set()
        self._full = False
        self._hurry = asyncio.Event()
        self._runs: set[asyncio.Task[None]] = set()
        self._interval = 10.0

    @property
    def idle(self) -> bool:
        return not self._spool and not self._runs

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Connect again and again."""
        trouble = asyncio.create_task(self._trouble())
        try:
            while True:
                await self._awake.wait()
                await self._session()
                await asyncio.sleep(self._rng.uniform(0.1, 2.0))
        finally:
            trouble.cancel()

    async def _trouble(self) -> None:
        while self._weather.stormy:
            await asyncio.sleep(self._rng.expovariate(1 / 25))
            stream, kind = self._stream, self._rng.random()
            if kind < 0.35:
                self._awake.clear()
                await asyncio.sleep(self._rng.choice([1.0, 5.0, 14.0, 20.0, 40.0]) * self._rng.random())
                self._awake.set()
            elif stream is not None and kind < 0.7:
                until = self._now() + self._rng.uniform(1.0, 45.0)
                for pipe in self._rng.choice([[stream.up], [stream.down], [stream.up, stream.down]]):
                    pipe.blackholed_until = until
            elif stream is not None:
                stream.break_off()

    # ---- the stream

    async def _session(self) -> None:
        stream = self._stream = Stream(self._weather)
        stream.serve(self._rng.choice(self._servicers))
        self._hello_time = self._now()
        held = self._leases.begin_session(self._hello_time)
        self._send(hello=self._hello(held))
        beats = asyncio.create_task(self._beat(stream))
        try:
            while True:
                async with asyncio.timeout(3 * self._interval):
                    data = await stream.down.get()
                await self._awake.wait()
                if not isinstance(data, bytes):
                    return
                self._receive(link.ConnectResponse.FromString(data))
        except TimeoutError:
            return
        finally:
            beats.cancel()
            stream.break_off()
            self._stream = None

    def _hello(self, held: list[link.HeldTask]) -> link.Hello:
        return link.Hello(
            runner_id=self.runner_id,
            instance_id=self._instance_id,
            protocol_version=1,
            registration=runner_pb2.RunnerRegistration(
                capacity=self.CAPACITY, task_types=["*"], execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND]
            ),
            free=link.Capacity(tasks=self._free()),
            held=held,
        )

    def _free(self) -> int:
        return max(0, self.CAPACITY - self._leases.active_count)

    def _send(self, **message: object) -> None:
        if self._stream is not None and not self._stream.broken:
            self._stream.up.put(link.ConnectRequest(**message).SerializeToString())  # type: ignore[arg-type]

    async def _beat(self, stream: Stream) -> None:
        while True:
            wait = 0.5 if self._leases.unlisted else self._interval
            self._hurry.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._hurry.wait()
                if not self._full:
                    await asyncio.sleep(0.5)
            except TimeoutError:
                pass
            await self._awake.wait()
            heartbeat = self._leases.heartbeat(self._now(), full=self._full)
            heartbeat.free.tasks = self._free()
            self._full = False
            self._send(heartbeat=heartbeat)

    def _receive(self, message: link.ConnectResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "welcome":
            welcome = message.welcome
            self._interval = welcome.heartbeat_interval.ToTimedelta().total_seconds()
            self._leases.welcomed(welcome.lease_duration.ToTimedelta().total_seconds())
            self._obey(list(welcome.verdicts))
            if self._spool:
                self._send(reports=link.ReportBatch(reports=self._spool.values()))
        elif kind == "heartbeat_ack":
            ack = message.heartbeat_ack
            self._leases.acknowledge(ack.heartbeat_id, ack.lease_ttl.ToTimedelta().total_seconds())
            self._obey(list(ack.verdicts))
            if ack.full_requested:
                self._full = True
                self._hurry.set()
        elif kind == "command":
            self._obey(list(message.command.leases.verdicts))
        elif kind == "assignments":
            for assignment in message.assignments.assignments:
                self._take_on(assignment)
        elif kind == "report_ack":
            self._acknowledge(message.report_ack)
        elif kind == "goodbye":
            self._send_eof()

    def _send_eof(self) -> None:
        if self._stream is not None:
            self._stream.up.put(grpc.aio.EOF)

    def _obey(self, verdicts: list[lease_pb2.LeaseVerdict]) -> None:
        for verdict in verdicts:
            if verdict.action == lease_pb2.LEASE_ACTION_ABORT:
                if (held := self._leases.get(key_of(verdict.lease))) is not None:
                    held.until = 0.0
                    held.run = "aborted"
                self._leases.drop(key_of(verdict.lease))

    def _acknowledge(self, ack: link.ReportAck) -> None:
        for seq in [seq for seq in self._spool if seq <= ack.through_seq]:
            report = self._spool.pop(seq)
            if report.WhichOneof("report") != "started":
                self._leases.drop(key_of(report.lease))
        for rejection in ack.rejections:
            self._leases.drop(key_of(rejection.lease))

    # ---- work

    def _take_on(self, assignment: lease_pb2.Assignment) -> None:
        lease, now = assignment.lease, self._now()
        ttl = assignment.lease_ttl.ToTimedelta().total_seconds()
        until = self._leases.first_lease(assignment.heartbeat_id, ttl)
        if self.count_from_receipt:
            until = lease_end(now, ttl)
        if until is None or until <= now or self._leases.get(key_of(lease)) is not None:
            return
        held = Held(lease, "accepted", until)
        self._leases.add(held)
        self._hurry.set()
        task = asyncio.create_task(self._execute(held, assignment.spec.overlap))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)

    async def _execute(self, held: Held, overlap: task_pb2.OverlapPolicy.ValueType) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        await self._awake.wait()
        if self._leases.get(held.key) is not held:
            return
        if held.until <= self._now():
            self._give_up(held)
            return
        forbid = overlap == task_pb2.OVERLAP_POLICY_FORBID
        interval = Interval(held.lease.task, forbid, self.runner_id, self._now())
        self._history.append(interval)
        held.change(link.HELD_STATE_RUNNING)
        self._report(held, started=lease_pb2.RunStarted())
        done = self._now() + self._rng.choice([0.1, 2.0, 15.0, 50.0]) * self._rng.random()
        killed = await self._watch(held, forbid, done)
        interval.end = self._now()
        if killed:
            await self._awake.wait()
            if held.run != "aborted":
                self._give_up(held)
            return
        # The workload has ended whether the agent looks or not; it reports once it is awake.
        await self._awake.wait()
        held.change(link.HELD_STATE_ENDED)
        self._report(held, succeeded=lease_pb2.RunSucceeded())

    async def _watch(self, held: Held, forbid: bool, done: float) -> bool:
        """The warden: until the workload ends (False) or its lease does, or it is aborted (True)."""
        while True:
            now = self._now()
            if held.run == "aborted" or (forbid and held.until <= now):
                return True
            if done <= now:
                return False
            await asyncio.sleep(max(1e-4, min(done, held.until if forbid else done, now + 0.25) - now))

    def _give_up(self, held: Held) -> None:
        """The lease ended before the work did: the runner reports that like every outcome."""
        held.change(link.HELD_STATE_ENDED)
        lost = lease_pb2.RunReleased(reason=lease_pb2.RELEASE_REASON_LOST)
        self._report(held, released=lost)

    def _report(self, held: Held, **report: object) -> None:
        self._seq += 1
        message = lease_pb2.RunReport(lease=held.lease, seq=self._seq, **report)  # type: ignore[arg-type]
        self._spool[self._seq] = message
        self._send(reports=link.ReportBatch(reports=[message]))
