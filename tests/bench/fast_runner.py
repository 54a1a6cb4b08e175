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
from collections.abc import Iterable
from typing import Any

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


class FastRunner:
    """One stream; `run` returns after `count` tasks."""

    def __init__(self, call: Any, count: int, *, acks: bool = False) -> None:
        self._call = call
        self._count = count
        self._acks = acks
        self._window = 0
        self._unacked = 0
        self._waiting: list[lease_pb2.RunReport] = []
        self._seq = 0
        self._wake = asyncio.Event()
        self._first: float | None = None
        self._latencies: list[float] = []
        # By the number of the report that ends it.
        self._held: dict[int, lease_pb2.LeaseRef] = {}
        # A stream takes one message at a time.
        self._writing = asyncio.Lock()

    async def run(self, hello: link.Hello) -> dict[str, Any]:
        """Send hello and work; returns the observations."""
        await self._call.write(link.ConnectRequest(hello=hello))
        welcome = (await self._call.read()).welcome
        self._window = welcome.flow.max_unacked_reports
        print("connected", flush=True)
        beats = welcome.heartbeat_interval.ToTimedelta().total_seconds()
        helpers = [asyncio.create_task(self._send()), asyncio.create_task(self._beat(beats, hello))]
        try:
            acknowledged = 0
            while acknowledged < self._count:
                message = await self._call.read()
                kind = message.WhichOneof("message")
                if kind == "assignments":
                    self._accept(message.assignments.assignments)
                elif kind == "report_ack":
                    assert not message.report_ack.rejections, message.report_ack
                    self._unacked -= message.report_ack.through_seq - acknowledged
                    while self._held and next(iter(self._held)) <= message.report_ack.through_seq:
                        self._held.pop(next(iter(self._held)))
                    acknowledged = message.report_ack.through_seq
                    self._wake.set()
                    if self._acks and not self._held:
                        print(time.monotonic(), flush=True)
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
            self._seq += 1
            self._waiting.append(short_run(assignment.lease, self._seq))
            self._held[self._seq] = assignment.lease
        self._wake.set()

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            room = min(1000, self._window - self._unacked)
            while self._waiting and room > 0:
                batch, self._waiting = self._waiting[:room], self._waiting[room:]
                self._unacked += len(batch)
                await self._write(link.ConnectRequest(reports=link.ReportBatch(reports=batch)))
                room = min(1000, self._window - self._unacked)

    async def _beat(self, seconds: float, hello: link.Hello) -> None:
        for number in range(1, 1 << 30):
            await asyncio.sleep(seconds)
            held = [link.HeldTask(lease=lease, state=link.HELD_STATE_ENDED) for lease in self._held.values()]
            heartbeat = link.Heartbeat(
                heartbeat_id=number, free=hello.free, changed=held, held_count=len(held), full=True
            )
            await self._write(link.ConnectRequest(heartbeat=heartbeat))

    async def _write(self, message: link.ConnectRequest) -> None:
        async with self._writing:
            await self._call.write(message)


async def main() -> None:
    """Parse the arguments, run, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("--runner-id", default="fast")
    parser.add_argument("--capacity", type=int, default=1000)
    parser.add_argument("--prefetch", type=int, default=1000)
    parser.add_argument("--acks", action="store_true")
    arguments = parser.parse_args()
    options = client_channel_options(MAX_RECEIVE_BYTES)
    async with open_channel(arguments.address, key=os.environ["TASKYARD_KEY"], options=options) as channel:
        stub: Any = RunnerLinkServiceStub(channel)
        runner = FastRunner(stub.Connect(), arguments.count, acks=arguments.acks)
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
