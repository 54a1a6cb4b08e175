"""The pool when PostgreSQL is away: for a while, behind a mute host, or read-only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from taskyard.errors import StorageUnavailable
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from tests.harness.tcp_proxy import proxy_to
from tests.integration.test_database_network import server_address

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
            with pytest.raises(
                StorageUnavailable, match="nothing was changed, repeat the call a moment later"
            ):
                async with pool.reading() as tx:
                    await tx.fetch("SELECT 1")
            with pytest.raises(StorageUnavailable, match="a write is not applied; repeat it with the same"):
                await pool.run(lambda tx: tx.execute("SELECT 1"), attempts=1)
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


@asynccontextmanager
async def mute_host() -> AsyncIterator[int]:
    """The port of a host that accepts connections and never answers."""
    silence = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silence.wait()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        silence.set()
        server.close()


def after_mute(url: str, mute: int, port: int) -> str:
    """The URL of a database, reached at a port of this machine, with a mute host before it."""
    parts = urlsplit(url)
    hosts = f"127.0.0.1:{mute},127.0.0.1:{port}"
    return parts._replace(netloc=f"{parts.username}@{hosts}", query="").geturl()


@pytest.mark.timeout(120)
async def test_a_first_host_that_never_answers_does_not_prevent_the_start(database_url: str) -> None:
    async with mute_host() as mute, proxy_to(server_address(database_url)) as proxy:
        url = after_mute(database_url, mute, int(proxy.address.rpartition(":")[2]))
        begin = time.monotonic()
        await asyncio.to_thread(migrate.check, url)
        pool = Pool(url, PoolOptions())
        await pool.open()
        try:
            assert await select(pool)
        finally:
            await pool.close()
        assert time.monotonic() - begin < 15


async def test_options_and_connect_timeout_of_the_url_are_kept(database_url: str) -> None:
    separator = "&" if urlsplit(database_url).query else "?"
    options = quote("-c search_path=elsewhere,public -c lock_timeout=7s")
    url = f"{database_url}{separator}options={options}&connect_timeout=9&application_name=mine"
    pool = Pool(url, PoolOptions())
    await pool.open()
    try:
        for planned in (False, True):
            async with pool.reading(planned=planned) as tx:
                assert await tx.fetch("SHOW search_path") == [("elsewhere,public",)]
                assert await tx.fetch("SHOW lock_timeout") == [("7s",)]
                assert await tx.fetch("SHOW jit") == [("off",)]
                assert await tx.fetch("SHOW application_name") == [("mine",)]
                assert tx.connection.info.get_parameters()["connect_timeout"] == "9"
    finally:
        await pool.close()
