"""Failover between real processes: a frozen taskdb, and a PostgreSQL that is away for a while."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.taskdb.tests.storage.test_pool_outage import OUTAGE_SECONDS, own_server
from taskyard import command
from taskyard.client import Client
from taskyard_taskdb.storage import migrate
from tests.harness.control_plane import control_plane
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import crashing_taskdb
from tests.integration.test_database_network import create, repeat


@asynccontextmanager
async def frozen(pid: int) -> AsyncIterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(120)
async def test_a_client_leaves_a_frozen_taskdb(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template, taskdbs=2, schedulers=0) as plane:
        addresses = ",".join(service.address for service in plane.taskdbs)
        async with Client(addresses, key=plane.keys["tenant"], tenant="default") as client:
            await client.create(command("true"))
            async with frozen(plane.taskdbs[0].pid):
                begin = time.monotonic()
                await client.create(command("true"))
                assert time.monotonic() - begin < 5.0
                begin = time.monotonic()
                await client.create(command("true"))
                assert time.monotonic() - begin < 1.0


@pytest.mark.timeout(120)
async def test_the_first_create_follows_the_database_within_a_second(tmp_path: Path) -> None:
    async with own_server(tmp_path / "data") as postgres:
        await asyncio.to_thread(migrate.upgrade, postgres.url())
        async with crashing_taskdb(postgres.url(), tmp_path) as taskdb:
            await asyncio.to_thread(taskdb.service.start)
            await repeat(taskdb, "before")
            await postgres.stop(asyncio.Event())
            end = time.monotonic() + OUTAGE_SECONDS
            while time.monotonic() < end:
                assert not isinstance(await create(taskdb, "during", 1), str)
            await postgres.start()
            back = time.monotonic()
            while not isinstance(await create(taskdb, "during", 1), str):
                assert time.monotonic() - back < 30
            assert time.monotonic() - back < 1.0


@pytest.mark.timeout(300)
async def test_no_create_fails_while_every_taskdb_restarts(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template, taskdbs=2, schedulers=0) as plane:
        addresses = ",".join(service.address for service in plane.taskdbs)
        # Beyond the time that a busy machine takes to start a process.
        async with Client(addresses, key=plane.keys["tenant"], patience=120) as client:
            stop = asyncio.Event()
            made: list[str] = []

            async def create_tasks() -> None:
                while not stop.is_set():
                    made.append((await client.create(command("true"))).name)
                    await asyncio.sleep(0.02)

            creators = [asyncio.ensure_future(create_tasks()) for _ in range(8)]
            await client.create(command("true"))
            await asyncio.gather(*(asyncio.to_thread(service.stop) for service in plane.taskdbs))
            before = len(made)
            await asyncio.gather(*(asyncio.to_thread(service.start) for service in plane.taskdbs))
            await client.create(command("true"))
            stop.set()
            await asyncio.gather(*creators)
            assert len(made) > before and len(set(made)) == len(made)
            assert await client.count() == len(made) + 2
