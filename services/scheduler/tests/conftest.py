"""Fixtures: a real scheduler server in this process, in front of a small taskdb in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import grpc.aio
import pytest

from services.scheduler.tests.fake_taskdb import FakeTaskdb
from taskyard.channel import open_channel
from taskyard.v1 import api_key_pb2
from taskyard_kit.serve import Server
from taskyard_kit.values import Secret
from taskyard_scheduler.scheduler import Scheduler
from taskyard_scheduler.server import connect, make_scheduler, make_server
from taskyard_scheduler.settings import SchedulerSettings
from taskyard_scheduler.taskdb import Taskdb
from tests.harness.link_runner import LinkRunner


@dataclass
class Site:
    """A scheduler under test with its taskdb and a runner key."""

    taskdb: FakeTaskdb
    scheduler: Scheduler
    server: Server
    key: str
    _stack: contextlib.AsyncExitStack

    @property
    def address(self) -> str:
        return self.server.address

    async def runner(self, runner_id: str = "runner-1", **options: Any) -> LinkRunner:
        """A connected test runner, closed with the test."""
        runner = await self.agent(runner_id, **options)
        await runner.connect()
        return runner

    async def agent(self, runner_id: str = "runner-1", key: str = "", **options: Any) -> LinkRunner:
        """A test runner that has not connected yet."""
        runner = LinkRunner(self.address, key or self.key, runner_id, **options)
        return await self._stack.enter_async_context(runner)

    async def channel(self, key: str = "") -> grpc.aio.Channel:
        return await self._stack.enter_async_context(open_channel(self.address, key=key or self.key))


SiteMaker = Callable[..., Any]

# Short, so that tests of what happens without heartbeats need not wait long.
QUICK = {
    "heartbeat_interval": timedelta(seconds=0.5),
    "lease_duration": timedelta(seconds=3),
    "first_lease": timedelta(seconds=2),
    "heartbeat_gather": timedelta(0),
    "hello_timeout": timedelta(seconds=0.5),
    "goodbye_timeout": timedelta(seconds=1),
    "reconnect_spread": timedelta(seconds=0.2),
    "drain_timeout": timedelta(seconds=5),
}


@pytest.fixture
async def taskdb() -> AsyncIterator[FakeTaskdb]:
    fake = FakeTaskdb()
    await fake.start()
    yield fake
    for gate in fake.gates.values():
        gate.set()
    await fake.stop()


@pytest.fixture
async def make_site(taskdb: FakeTaskdb) -> AsyncIterator[SiteMaker]:
    """Makes schedulers in front of the one taskdb; settings given replace the quick ones."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(**changes: Any) -> Site:
            values: dict[str, Any] = {**QUICK, **changes}
            settings = SchedulerSettings(
                listen="127.0.0.1:0", taskdb=(taskdb.address,), key=Secret("ty_test_" + "x" * 32), **values
            )
            channel = await stack.enter_async_context(connect(settings))
            scheduler = make_scheduler(settings, Taskdb(channel))
            server = make_server(settings, scheduler)
            working = asyncio.create_task(scheduler.run())
            stack.push_async_callback(_end, working)
            await server.start()
            stack.push_async_callback(server.stop_now)
            key = taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER)
            return Site(taskdb, scheduler, server, key, stack)

        yield make


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def site(make_site: SiteMaker) -> Site:
    made: Site = await make_site()
    return made
