"""The pool when PostgreSQL is away: for a while, behind a mute host, or read-only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from taskyard.errors import StorageUnavailable
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_taskdb.storage.pool import Pool, PoolOptions

# Doubled delays of 1, 2, 4 … s would next try 15 s after the stop.
OUTAGE_SECONDS = 8.5
FAST = ("-c", "fsync=off", "-c", "shared_buffers=16MB")


@asynccontextmanager
async def own_server(directory: Path) -> AsyncIterator[EmbeddedPostgres]:
    with DataDirectory(directory) as data:
        postgres = EmbeddedPostgres(data, PostgresOptions(server_arguments=FAST), print)
        await postgres.start()
        try:
            yield postgres
        finally:
            await postgres.stop(asyncio.Event())


async def select(pool: Pool) -> bool:
    """Whether the database answers."""
    try:
        async with pool.reading() as tx:
            return await tx.fetch("SELECT 1") == [(1,)]
    except StorageUnavailable:
        return False


@pytest.mark.timeout(120)
async def test_the_pool_answers_within_a_second_after_the_database_is_back(tmp_path: Path) -> None:
    async with own_server(tmp_path / "data") as postgres:
        pool = Pool(postgres.url(), PoolOptions(acquire_timeout=timedelta(seconds=1)))
        await pool.open()
        try:
            await postgres.stop(asyncio.Event())
            end = time.monotonic() + OUTAGE_SECONDS
            while time.monotonic() < end:
                assert not await select(pool)
            await postgres.start()
            back = time.monotonic()
            while not await select(pool):
                assert time.monotonic() - back < 30
            assert time.monotonic() - back < 1.0
        finally:
            await pool.close()
