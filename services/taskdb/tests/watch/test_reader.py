"""The order of the change log with concurrent writers, rollbacks and writers of other databases."""

import asyncio
import random
from collections import defaultdict

import psycopg
import pytest

from services.taskdb.tests.watch.log_rows import change
from taskyard_taskdb.storage.change_log.append import insert_changes
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.watch.reader import LogReader

TASKS = 40
WRITERS = 6
BATCHES = 60


class RolledBack(Exception):
    pass


async def write_batches(pool: Pool, seed: int) -> int:
    """Write changes of random tasks in key order; some transactions fail after they have drawn ids."""
    rng = random.Random(seed)
    written = 0
    for _ in range(BATCHES):
        tasks = sorted(rng.sample(range(TASKS), rng.randint(1, 8)))
        fails = rng.random() < 0.2

        async def bump(tx: Tx, tasks: list[int] = tasks, fails: bool = fails) -> int:
            rows = await tx.fetch(
                "WITH locked AS (SELECT id FROM counters WHERE id = ANY(%s) ORDER BY id FOR UPDATE)"
                " UPDATE counters c SET version = version + 1 FROM locked"
                " WHERE c.id = locked.id RETURNING c.id, version",
                (tasks,),
            )
            await insert_changes(tx, [change(f"t{task}", version) for task, version in rows])
            await asyncio.sleep(rng.choice((0, 0, 0.002)))
            if fails:
                raise RolledBack
            return len(rows)

        try:
            written += await pool.run(bump)
        except RolledBack:
            continue
    return written


async def follow(pool: Pool, done: asyncio.Event) -> list[tuple[int, str, int]]:
    """Return everything that the reader returns until the writers are done and the log is read."""
    seen: list[tuple[int, str, int]] = []
    async with pool.reading() as tx:
        reader = LogReader(tx, 0)
        while True:
            finished = done.is_set()
            changes = await reader.step()
            seen += [(c.id, c.resource_id, c.version) for c in changes]
            if not changes and finished and not reader.blocked:
                return seen
            await asyncio.sleep(0)


async def run_writers(url: str) -> tuple[int, list[tuple[int, str, int]]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE counters (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0)")
        connection.execute("INSERT INTO counters SELECT generate_series(0, %s - 1)", (TASKS,))
    replicas = [Pool(url, PoolOptions(size=WRITERS)), Pool(url, PoolOptions(size=WRITERS))]
    for replica in replicas:
        await replica.open()
    try:
        done = asyncio.Event()
        reading = asyncio.create_task(follow(replicas[0], done))
        counts = await asyncio.gather(*(write_batches(replicas[n % 2], n) for n in range(WRITERS)))
        done.set()
        return sum(counts), await reading
    finally:
        for replica in replicas:
            await replica.close()


def violations(seen: list[tuple[int, str, int]]) -> int:
    """Count the changes that are out of id order or out of the version order of their task."""
    last: defaultdict[str, int] = defaultdict(int)
    found, last_id = 0, 0
    for change_id, task, version in seen:
        found += change_id <= last_id or version != last[task] + 1
        last_id, last[task] = change_id, version
    return found


async def test_every_committed_change_arrives_once_and_in_order(database_url: str) -> None:
    written, seen = await run_writers(database_url)
    assert len(seen) == written
    assert violations(seen) == 0


async def test_an_open_transaction_of_another_database_does_not_block_the_reader(
    database_url: str, empty_database_url: str
) -> None:
    with psycopg.connect(empty_database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock_shared(%s), txid_current()", (0x7461736B79617264,))
        written, seen = await run_writers(database_url)
    assert len(seen) == written


async def test_changes_are_lost_without_the_lock_of_the_log(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weakened = {
        **statements(),
        "insert_changes": statements()["insert_changes"].replace(
            "pg_advisory_xact_lock_shared(%s)", "%s::bigint"
        ),
    }
    monkeypatch.setattr("taskyard_taskdb.storage.change_log.append.statement", weakened.__getitem__)
    written, seen = await run_writers(database_url)
    assert len(seen) < written or violations(seen) > 0
