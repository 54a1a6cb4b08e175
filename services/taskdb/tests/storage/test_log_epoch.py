"""The epoch of the change log names one history of one database, and what it continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.change_log import epoch
from taskyard_taskdb.storage.change_log.epoch import LogEpoch
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from tests.harness.postgres import PostgresServer
from tests.harness.replication import Node, needs_replication, primary_and_standby


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Tx]:
    pool = Pool(url, PoolOptions(size=1, reserve=1, queries=1))
    await pool.open()
    try:
        async with pool.reading() as tx:
            yield tx
    finally:
        await pool.close()


async def read_epoch(url: str) -> LogEpoch:
    async with reading(url) as tx:
        return await epoch.read(tx)


async def test_two_databases_of_one_server_have_different_epochs(
    postgres_server: PostgresServer, migrated_template: str, database_url: str
) -> None:
    with postgres_server.database(migrated_template) as other_url:
        first = await read_epoch(database_url)
        assert await read_epoch(database_url) == first
        other = await read_epoch(other_url)
        assert other.number != first.number and other.history != first.history


async def test_what_an_epoch_continues_is_the_least_of_its_chain(database_url: str) -> None:
    async with reading(database_url) as tx:
        await epoch.record_continuation(tx, 1, 2, 100)
        await epoch.record_continuation(tx, 2, 3, 40)
        await epoch.record_continuation(tx, 3, 4, 70)
        found = [await epoch.continued_until(tx, former, 4) for former in (1, 2, 3)]
        assert found == [40, 40, 70]
        # Another replica has read further.
        await epoch.record_continuation(tx, 3, 4, 90)
        assert await epoch.continued_until(tx, 3, 4) == 90
        assert await epoch.continued_until(tx, 4, 3) is None


@needs_replication
@pytest.mark.timeout(120)
async def test_two_standbys_promoted_to_one_timeline_have_different_epochs() -> None:
    with primary_and_standby() as (primary, standby):
        await asyncio.to_thread(migrate.upgrade, primary.url())
        before = await read_epoch(primary.url())
        twin = Node(standby.directory.with_name("twin"))
        try:
            twin.clone(primary)
            primary.kill()
            standby.promote()
            twin.promote()
            promoted = [await read_epoch(node.url()) for node in (standby, twin)]
        finally:
            twin.stop()
        assert {found.history for found in promoted} == {before.history}
        assert promoted[0].timeline == promoted[1].timeline != before.timeline
        assert len({before.number, promoted[0].number, promoted[1].number}) == 3
