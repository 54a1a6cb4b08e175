"""Many runners at one scheduler: they reconnect at once, and their heartbeats stay on time (FAULTS 26)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest

from taskyard import Phase, command
from taskyard.channel import client_channel_options, open_channel
from taskyard.v1 import lease_pb2
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import MAX_RECEIVE_BYTES, LinkRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# `make crowd` has 2,000 of them, which is too much beside other tests.
CROWD = int(os.environ.get("TASKYARD_CROWD", "300"))
CHANNELS = max(10, CROWD // 80)
# A third of the session's lease.
LATEST_SECONDS = 10.0


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@asynccontextmanager
async def crowd_of(plane: ControlPlane, count: int) -> AsyncIterator[list[LinkRunner]]:
    """Runners that share a few connections, because open files are limited."""
    options = (*client_channel_options(MAX_RECEIVE_BYTES), ("grpc.use_local_subchannel_pool", 1))
    address, key = plane.schedulers[0].address, plane.keys["runner"]
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(open_channel(address, key=key, options=options))
            for _ in range(CHANNELS)
        ]
        crowd = [
            LinkRunner(address, "", f"crowd-{n}", channel=channels[n % CHANNELS], capacity=1)
            for n in range(count)
        ]
        yield crowd
        await asyncio.gather(*(runner.vanish() for runner in crowd))


async def heartbeat_seconds(runner: LinkRunner) -> float:
    began = time.monotonic()
    await runner.heartbeat_acked(await runner.heartbeat(), timeout=60)
    return time.monotonic() - began


@pytest.mark.timeout(600)
async def test_fault_26_a_crowd_reconnects_at_once_and_its_heartbeats_stay_on_time(
    plane: ControlPlane,
) -> None:
    async with crowd_of(plane, CROWD) as crowd, plane.client() as client:
        await asyncio.gather(*(runner.connect() for runner in crowd))
        takers = crowd[:20]
        held = [await client.create(command("true", runner_ids=(runner.runner_id,))) for runner in takers]
        for runner in takers:
            await runner.started(await runner.next_assignment())
            await runner.heartbeat_acked(await runner.heartbeat())
        await asyncio.gather(*(runner.vanish() for runner in crowd))
        began = time.monotonic()
        welcomes = await asyncio.gather(*(runner.connect() for runner in crowd))
        reconnected = time.monotonic() - began
        assert [list(welcome.verdicts) for welcome in welcomes] == [[] for _ in crowd], "no lease was lost"
        late = sorted(await asyncio.gather(*(heartbeat_seconds(runner) for runner in crowd)))
        slowest = late[int(0.99 * len(late))]
        print(f"{CROWD} runners: all back {reconnected:.1f} s after they left; heartbeat p99 {slowest:.2f} s")
        assert slowest < LATEST_SECONDS
        for runner in takers:
            (lease,) = [found.lease for found in runner.held.values()]
            await runner.acked(await runner.report(lease, succeeded=lease_pb2.RunSucceeded()))
        for task in held:
            assert (await client.wait(task, timeout=20)).phase is Phase.SUCCEEDED


async def test_an_idle_suite_sends_few_queries(plane: ControlPlane) -> None:
    async with crowd_of(plane, 100) as crowd:
        await asyncio.gather(*(runner.connect() for runner in crowd))
        await asyncio.gather(*(heartbeat_seconds(runner) for runner in crowd))
        assert _renewals(plane) <= 3, "a hundred heartbeats are one renewal, or a few"


def _renewals(plane: ControlPlane) -> int:
    """How many statements have stored the last heartbeats."""
    with psycopg.connect(plane.url, autocommit=True) as connection:
        row = connection.execute("SELECT count(DISTINCT heartbeat_time) FROM sessions").fetchone()
    assert row is not None
    return int(row[0])
