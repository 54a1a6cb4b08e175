"""The epoch of the change log names one history of one database."""

from __future__ import annotations

from taskyard_taskdb.storage.change_log import read
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from tests.harness.postgres import PostgresServer


async def epoch(url: str) -> int:
    pool = Pool(url, PoolOptions(size=1, reserve=1, queries=1))
    await pool.open()
    try:
        async with pool.reading() as tx:
            return await read.epoch(tx)
    finally:
        await pool.close()


async def test_two_databases_of_one_server_have_different_epochs(
    postgres_server: PostgresServer, migrated_template: str, database_url: str
) -> None:
    with postgres_server.database(migrated_template) as other_url:
        first = await epoch(database_url)
        assert await epoch(database_url) == first
        assert await epoch(other_url) != first
