"""A test runner that behaves: it works through what it is given, keeps its spool and connects anew."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable

import grpc.aio

from taskyard.errors import TaskyardError
from taskyard.v1 import lease_pb2
from tests.harness.link_runner import LinkRunner

LOST = (grpc.aio.AioRpcError, TaskyardError, asyncio.InvalidStateError, grpc.aio.UsageError, TimeoutError)
FOREVER = 1e6


class HonestAgent:
    """Drives a LinkRunner. A task with the argument "hold" runs until `release` is set."""

    def __init__(self, runner: LinkRunner) -> None:
        self.runner = runner
        self.holding = asyncio.Event()
        self.release = asyncio.Event()
        self.verdicts: list[lease_pb2.LeaseVerdict] = []
        self.connects = 0
        self._connected = asyncio.Condition()

    async def run(self) -> None:
        """Connect, work, and connect again whenever the stream ends or falls silent."""
        work = asyncio.create_task(self._work())
        try:
            while True:
                with contextlib.suppress(*LOST):
                    async with asyncio.timeout(10):
                        welcome = await self.runner.connect()
                    self.verdicts += welcome.verdicts
                    async with self._connected:
                        self.connects += 1
                        self._connected.notify_all()
                    await self._until_lost(3 * welcome.heartbeat_interval.ToTimedelta().total_seconds())
                await asyncio.sleep(random.uniform(0.05, 0.3))
        finally:
            work.cancel()

    async def connected(self, times: int, timeout: float = 20.0) -> None:
        """Wait until it has connected this often."""
        async with asyncio.timeout(timeout), self._connected:
            await self._connected.wait_for(lambda: self.connects >= times)

    async def _until_lost(self, patience: float) -> None:
        """Until the stream ends, or no heartbeat was acknowledged for three intervals (rule 6)."""
        ended = asyncio.ensure_future(self.runner.ended(FOREVER))
        try:
            while True:
                seen = len(self.runner.messages("heartbeat_ack"))
                await asyncio.wait((ended,), timeout=patience)
                if ended.done() or len(self.runner.messages("heartbeat_ack")) == seen:
                    return
        finally:
            ended.cancel()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                assignment = await self.runner.next_assignment(FOREVER)
                group.create_task(self._execute(assignment))

    async def _execute(self, assignment: lease_pb2.Assignment) -> None:
        await _send(self.runner.started(assignment))
        if "hold" in assignment.spec.execution.command.args:
            self.holding.set()
            await self.release.wait()
        else:
            await asyncio.sleep(random.uniform(0.0, 0.1))
        await _send(self.runner.succeeded(assignment))


async def _send(report: Awaitable[int]) -> None:
    # What could not be sent is in the spool and goes out after the reconnect.
    with contextlib.suppress(*LOST):
        await report


@contextlib.asynccontextmanager
async def working(*agents: HonestAgent) -> AsyncIterator[None]:
    """Agents that work for as long as the block runs."""
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for agent in agents:
            await agent.runner.vanish()
