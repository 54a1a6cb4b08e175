"""A runner that does nothing, fast: it uses the link in a process of its own and prints its observations.

It accepts every assignment and reports start and success at once. When as many tasks as asked for are
acknowledged, it prints one line of JSON: the times of the first assignment and the last acknowledgement, and
for tasks that carry the time of their creation the milliseconds until they arrived here. With --acks it
prints the time whenever an acknowledgement leaves it without tasks.
"""

import argparse
import asyncio
import json
import os
import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from taskyard.channel import client_channel_options, open_channel
from taskyard.v1 import lease_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from tests.harness.link_runner import MAX_RECEIVE_BYTES, registration

# Distinguished from arguments of other kinds.
STAMP = "created-at-ns="


def short_run(lease: lease_pb2.LeaseRef, seq: int = 0) -> lease_pb2.RunReport:
    """The report of a run that was over before its start was sent."""
    success = lease_pb2.RunSucceeded(exit_code=0)
    return lease_pb2.RunReport(lease=lease, seq=seq, start=lease_pb2.RunStarted(), succeeded=success)


class Run(NamedTuple):
    """A task that was assigned, and is reported as ended."""

    task: str
    generation: int
    lease_id: int

    @property
    def lease(self) -> lease_pb2.LeaseRef:
        return lease_pb2.LeaseRef(task=self.task, generation=self.generation, lease_id=self.lease_id)


class FastRunner:
    """One stream; `run` returns after `count` tasks. It reports in columns if the scheduler takes them."""

    def __init__(self, call: Any, count: int, *, acks: bool = False, columns: bool = True) -> None:
        self._call = call
        self._count = count
        self._acks = acks
        self._columns = columns
        self._window = 0
        # Runs that are reported and not acknowledged, by ascending seq, and those that wait for the window.
        self._sent: deque[Run] = deque()
        self._waiting: list[Run] = []
        self._acknowledged = 0
        self._wake = asyncio.Event()
        self._first: float | None = None
        self._latencies: list[float] = []
        # A stream takes one message at a time.
        self._writing = asyncio.Lock()

    async def run(self, hello: link.Hello) -> dict[str, Any]:
        """Send hello and work; returns the observations."""
        await self._call.write(link.ConnectRequest(hello=hello))
        welcome = (await self._call.read()).welcome
        self._window = welcome.flow.max_unacked_reports
        self._columns = self._columns and welcome.short_runs
        print("connected", flush=True)
        beats = welcome.heartbeat_interval.ToTimedelta().total_seconds()
        helpers = [asyncio.create_task(self._send()), asyncio.create_task(self._beat(beats, hello))]
        try:
            while self._acknowledged < self._count:
                message = await self._call.read()
                kind = message.WhichOneof("message")
                if kind == "assignments":
                    self._accept(message.assignments.assignments)
                elif kind == "report_ack":
                    self._acknowledge(message.report_ack)
            return {"first": self._first, "last": time.monotonic(), "latencies_ms": self._latencies}
        finally:
            for helper in helpers:
                helper.cancel()

    def _accept(self, assignments: Iterable[lease_pb2.Assignment]) -> None:
        now = time.monotonic()
        self._first = self._first or now
        for assignment in assignments:
            for argument in assignment.spec.execution.command.args:
                if argument.startswith(STAMP):
                    self._latencies.append(1000 * now - int(argument.removeprefix(STAMP)) / 1e6)
            lease = assignment.lease
            self._waiting.append(Run(lease.task, lease.generation, lease.lease_id))
        self._wake.set()

    def _acknowledge(self, ack: link.ReportAck) -> None:
        assert not ack.rejections, ack
        for _ in range(ack.through_seq - self._acknowledged):
            self._sent.popleft()
        self._acknowledged = ack.through_seq
        self._wake.set()
        if self._acks and not self._sent and not self._waiting:
            print(time.monotonic(), flush=True)

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting and (room := min(1000, self._window - len(self._sent))) > 0:
                batch, self._waiting = self._waiting[:room], self._waiting[room:]
                seq = self._acknowledged + len(self._sent) + 1
                self._sent.extend(batch)
                await self._write(_in_columns(batch, seq) if self._columns else _as_reports(batch, seq))

    async def _beat(self, seconds: float, hello: link.Hello) -> None:
        for number in range(1, 1 << 30):
            await asyncio.sleep(seconds)
            runs = [*self._sent, *self._waiting]
            held = [link.HeldTask(lease=run.lease, state=link.HELD_STATE_ENDED) for run in runs]
            heartbeat = link.Heartbeat(
                heartbeat_id=number, free=hello.free, changed=held, held_count=len(held), full=True
            )
            await self._write(link.ConnectRequest(heartbeat=heartbeat))

    async def _write(self, message: link.ConnectRequest) -> None:
        async with self._writing:
            await self._call.write(message)


def _in_columns(runs: Sequence[Run], seq: int) -> link.ConnectRequest:
    tasks, generations, lease_ids = zip(*runs, strict=True)
    count, now = len(runs), time.time_ns() // 1000
    return link.ConnectRequest(
        short_runs=lease_pb2.ShortRuns(
            first_seq=seq,
            tasks=tasks,
            generations=generations,
            lease_ids=lease_ids,
            start_times=[now] * count,
            end_times=[now] * count,
            exit_codes=[0] * count,
        )
    )


def _as_reports(runs: Sequence[Run], first: int) -> link.ConnectRequest:
    reports = [short_run(run.lease, seq) for seq, run in enumerate(runs, first)]
    return link.ConnectRequest(reports=link.ReportBatch(reports=reports))


async def main() -> None:
    """Parse the arguments, run, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("--runner-id", default="fast")
    parser.add_argument("--capacity", type=int, default=1000)
    parser.add_argument("--prefetch", type=int, default=1000)
    parser.add_argument("--acks", action="store_true")
    parser.add_argument("--reports", action="store_true", help="send reports instead of columns")
    arguments = parser.parse_args()
    options = client_channel_options(MAX_RECEIVE_BYTES)
    async with open_channel(arguments.address, key=os.environ["TASKYARD_KEY"], options=options) as channel:
        stub: Any = RunnerLinkServiceStub(channel)
        runner = FastRunner(
            stub.Connect(), arguments.count, acks=arguments.acks, columns=not arguments.reports
        )
        hello = link.Hello(
            protocol_version=1,
            runner_id=arguments.runner_id,
            instance_id=str(uuid.uuid4()),
            registration=registration(arguments.capacity, arguments.prefetch),
            free=link.Capacity(tasks=arguments.capacity),
        )
        print(json.dumps(await runner.run(hello)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
