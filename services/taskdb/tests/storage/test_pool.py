"""Transactions: retried, shielded, and their errors translated."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from taskyard.errors import Overloaded, StorageUnavailable
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Two connections for work, one in reserve and one for queries."""
    options = PoolOptions(
        size=2,
        reserve=1,
        queries=1,
        acquire_timeout=timedelta(milliseconds=100),
        lock_timeout=timedelta(milliseconds=200),
    )
    made = Pool(database_url, options)
    await made.open()
    yield made
    await made.close()


async def count(pool: Pool, condition: str = "true") -> int:
    """Rows of facts."""
    async with pool.reading() as tx:
        row = await tx.fetch_row(f"SELECT count(*) FROM facts WHERE {condition}")
    assert row is not None
    found: int = row[0]
    return found


async def insert(tx: Tx, key: str) -> None:
    """A row of facts."""
    await tx.execute("INSERT INTO facts (key, value) VALUES (%s, '')", (key,))


async def test_block_commits_at_its_end_and_rolls_back_on_any_exception(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert(tx, "kept")
    with pytest.raises(KeyError):
        async with pool.transaction() as tx:
            await insert(tx, "lost")
            raise KeyError
    assert await count(pool, "key IN ('kept', 'lost')") == 1


@pytest.mark.seed("S0.97")
async def test_full_pool_is_overload_and_leaves_the_reserve(pool: Pool) -> None:
    async with pool.transaction(), pool.transaction():
        with pytest.raises(Overloaded) as refused:
            async with pool.transaction():
                pass
        async with pool.transaction(reserve=True) as tx:
            assert await tx.fetch("SELECT 1") == [(1,)]
    assert refused.value.retryable
    assert await count(pool) >= 0


async def test_queries_and_work_have_connections_of_their_own(pool: Pool) -> None:
    async with pool.reading(planned=True):
        with pytest.raises(Overloaded):
            async with pool.transaction(planned=True):
                pass
        async with pool.transaction() as tx:
            assert await tx.fetch("SELECT 1") == [(1,)]
    async with pool.transaction(), pool.transaction(), pool.reading(planned=True) as tx:
        assert await tx.fetch("SELECT 1") == [(1,)]


PLANNER = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")


async def settings(tx: Tx) -> dict[str, str]:
    """What decides the plans of a connection."""
    names = [*PLANNER, "plan_cache_mode"]
    return dict(await tx.fetch("SELECT name, setting FROM pg_settings WHERE name = ANY (%s)", (names,)))


async def test_only_work_is_confined_to_lookups_by_key(pool: Pool) -> None:
    confined = {"plan_cache_mode": "force_generic_plan", **dict.fromkeys(PLANNER, "off")}
    free = {"plan_cache_mode": "force_custom_plan", **dict.fromkeys(PLANNER, "on")}
    for reserve in (False, True):
        async with pool.transaction(reserve=reserve) as tx:
            assert await settings(tx) == confined
        async with pool.single(reserve=reserve) as tx:
            assert await settings(tx) == confined
    async with pool.reading() as tx:
        assert await settings(tx) == confined
    async with pool.reading(planned=True) as tx:
        assert await settings(tx) == free
    async with pool.transaction(planned=True) as tx:
        assert await settings(tx) == free


async def test_unreachable_database_is_unavailable() -> None:
    pool = Pool("postgresql://nobody@127.0.0.1:1/none", PoolOptions(connect_timeout=timedelta(seconds=1)))
    with pytest.raises(StorageUnavailable):
        await pool.open()


async def test_lost_connection_is_not_applied_in_the_block_and_undetermined_in_the_commit(
    pool: Pool, database_url: str
) -> None:
    async def kill(tx: Tx) -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
            await other.execute("SELECT pg_terminate_backend(%s)", (tx.connection.info.backend_pid,))

    with pytest.raises(StorageUnavailable) as lost:
        async with pool.transaction() as tx:
            await kill(tx)
            await insert(tx, "a")
    assert lost.value.outcome == "not applied"
    with pytest.raises(StorageUnavailable) as unknown:
        async with pool.transaction() as tx:
            await insert(tx, "b")
            await kill(tx)
    assert unknown.value.outcome == "unknown"
    assert await count(pool, "key IN ('a', 'b')") == 0


async def test_run_repeats_after_conflicts_and_broken_connections(pool: Pool) -> None:
    failures: list[Exception] = [pg.DeadlockDetected(), pg.SerializationFailure(), StorageUnavailable()]

    async def work(tx: Tx) -> str:
        await insert(tx, "once")
        if failures:
            raise failures.pop()
        return "done"

    assert await pool.run(work) == "done"
    assert await count(pool, "key = 'once'") == 1


async def test_run_gives_up_after_its_attempts(pool: Pool) -> None:
    calls = 0

    async def work(tx: Tx) -> None:
        nonlocal calls
        calls += 1
        raise pg.DeadlockDetected()

    with pytest.raises(Overloaded):
        await pool.run(work, attempts=3)
    assert calls == 3


async def test_run_does_not_repeat_what_may_have_been_committed(pool: Pool) -> None:
    calls = 0

    async def work(tx: Tx) -> None:
        nonlocal calls
        calls += 1
        raise StorageUnavailable("unknown")

    with pytest.raises(StorageUnavailable):
        await pool.run(work)
    assert calls == 1


async def test_real_deadlock_is_resolved_by_repeating(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert(tx, "x")
        await insert(tx, "y")
    both_hold_one = asyncio.Barrier(2)

    async def work(first: str, second: str) -> None:
        meet = True

        async def update(tx: Tx) -> None:
            nonlocal meet
            sql = "UPDATE facts SET value = value || 'z' WHERE key = %s"
            await tx.execute("SET LOCAL lock_timeout = 0")
            await tx.execute(sql, (first,))
            if meet:
                meet = False
                await both_hold_one.wait()
            await tx.execute(sql, (second,))

        await pool.run(update)

    await asyncio.gather(work("x", "y"), work("y", "x"))
    assert await count(pool, "value = 'zz'") == 2


async def test_lock_timeout_is_overload(pool: Pool) -> None:
    async with pool.transaction() as holder:
        await insert(holder, "held")
        with pytest.raises(Overloaded):
            await pool.run(lambda tx: insert(tx, "held"))
        with pytest.raises(pg.LockNotAvailable):
            await pool.attempt(lambda tx: insert(tx, "held"))


async def test_cancelled_caller_does_not_interrupt_a_run(pool: Pool) -> None:
    inside, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(tx: Tx) -> None:
        await insert(tx, "finished")
        inside.set()
        await go_on.wait()
        asyncio.get_running_loop().call_soon(done.set)

    caller = asyncio.create_task(pool.run(work))
    await inside.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    await done.wait()
    # The next one waits until the connection is back.
    async with pool.transaction(), pool.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM facts WHERE key = 'finished'") == [(1,)]


async def test_cancelled_statements_leave_no_transaction_open(pool: Pool, database_url: str) -> None:
    async def sleep() -> None:
        async with pool.transaction() as tx:
            await insert(tx, "cancelled")
            await tx.execute("SELECT pg_sleep(60)", prepare=False)

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as watcher:

        async def states() -> list[Any]:
            cursor = await watcher.execute(
                "SELECT state, wait_event FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return await cursor.fetchall()

        for _ in range(5):
            running = [asyncio.create_task(sleep()) for _ in range(2)]
            while sum(wait == "PgSleep" for _, wait in await states()) < 1:
                pass
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        while any(state != "idle" for state, _ in await states()):
            pass
    assert await count(pool, "key = 'cancelled'") == 0


async def test_failure_of_a_run_whose_caller_was_cancelled_is_not_logged(pool: Pool) -> None:
    inside, go_on, logged = asyncio.Event(), asyncio.Event(), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))

    async def work(tx: Tx) -> None:
        inside.set()
        await go_on.wait()
        raise KeyError

    caller = asyncio.create_task(pool.run(work))
    await inside.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    async with pool.transaction(), pool.transaction():
        pass
    gc.collect()
    assert logged == []


@pytest.mark.parametrize(("seconds", "ends"), [(0.05, True), (30, False)])
@pytest.mark.parametrize("prepared", [False, True], ids=["while it is prepared", "while it runs"])
async def test_short_statement_of_a_cancelled_caller_ends_by_itself_and_a_long_one_is_cancelled(
    pool: Pool, seconds: float, ends: bool, prepared: bool
) -> None:
    sent = asyncio.Event()

    async def write() -> None:
        async with pool.single() as tx:
            slept = "WITH slept AS MATERIALIZED (SELECT pg_sleep(%s))"
            insert = f"{slept} INSERT INTO facts SELECT %s, '' FROM slept"
            if prepared:
                await tx.execute(insert, (0, "prepared"))
            asyncio.get_running_loop().call_soon(sent.set)
            await tx.execute(insert, (seconds, "slow"))

    async def active() -> int:
        async with pool.reading() as tx:
            row = await tx.fetch_row(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
                "AND query LIKE 'WITH slept%' AND datname = current_database()"
            )
        assert row is not None
        return int(row[0])

    writing = asyncio.create_task(write())
    async with asyncio.timeout(20):
        await sent.wait()
        while prepared and not await active():
            assert not writing.done()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        while await active():
            pass
    assert await count(pool, "key = 'slow'") == ends
