"""`make order`: the order of the change log under contended writers of two replicas, with rollbacks.

Two processes write batches that fight over the same rows and roll some of them back, while a transaction of
another database stays open. Two hubs read along; their streams are cut off and resumed all the time, at the
other hub. Afterwards nothing may be lost, out of its task's order, or there twice after de-duplication by
version. `--without-lock` takes the lock of the log away, and then something must be.
"""

import argparse
import asyncio
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg

from services.taskdb.tests.watch.log_rows import change
from taskyard.errors import Overloaded
from taskyard_taskdb.storage.change_log import append as changes_module
from taskyard_taskdb.storage.change_log.append import LOG_LOCK, insert_changes
from taskyard_taskdb.storage.migrate import upgrade
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.watch.subscription import Subscription
from tests.harness.postgres import postgres_server

TASKS = 2000
WRITERS = 4
SMALL, LARGE = 8, 200
BUMP = """
WITH locked AS (SELECT id FROM counters WHERE id = ANY(%s) ORDER BY id FOR UPDATE)
UPDATE counters c SET version = version + 1 FROM locked WHERE c.id = locked.id RETURNING c.id, version
"""


class RolledBack(Exception):
    """A transaction that fails with its ids drawn."""


@dataclass
class OrderReport:
    """What a stream has seen, checked as it comes."""

    newest: dict[str, int] = field(default_factory=dict)
    last_id: int = 0
    delivered: int = 0
    repeated: int = 0
    out_of_order: int = 0

    def see(self, change_id: int, task: str, version: int) -> None:
        """Take in one delivery. A repeat has a version that was seen; a gap or a step back is a violation."""
        known = self.newest.get(task, 0)
        if version <= known:
            self.repeated += 1
            return
        self.out_of_order += version != known + 1 or change_id <= self.last_id
        self.newest[task] = version
        self.last_id = change_id
        self.delivered += 1


def main() -> None:
    """Run, print what was seen, and exit with 1 if it is not as it must be."""
    parser = argparse.ArgumentParser(prog="make order", description=__doc__)
    parser.add_argument("--changes", type=int, default=400_000, help="how many to write at least")
    parser.add_argument("--without-lock", action="store_true", help="take the lock of the log away")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taskyard-order-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with (
            postgres_server(directory / "postgres") as server,
            server.database() as url,
            server.database() as other,
        ):
            upgrade(url)
            with psycopg.connect(other) as idle:
                idle.execute("SELECT pg_advisory_xact_lock_shared(%s), pg_current_xact_id()", (LOG_LOCK,))
                broken = run(url, arguments.changes, without_lock=arguments.without_lock)
    sys.exit(broken != arguments.without_lock)


def run(url: str, count: int, *, without_lock: bool) -> bool:
    """Whether anything was lost, out of order or stayed there twice."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE counters (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0)")
        connection.execute("INSERT INTO counters SELECT generate_series(0, %s - 1)", (TASKS,))
    context = multiprocessing.get_context("spawn")
    seconds = time.perf_counter()
    replicas = [
        context.Process(target=_write, args=(url, count // 2, seed, without_lock), daemon=True)
        for seed in (1, 2)
    ]
    for replica in replicas:
        replica.start()
    verdicts = asyncio.run(_follow(url, replicas))
    took = time.perf_counter() - seconds
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT 't' || id, version FROM counters WHERE version > 0").fetchall()
    truth: dict[str, int] = dict(rows)
    written = sum(truth.values())
    broken = False
    for index, verdict in enumerate(verdicts):
        lost = sum(version - verdict.newest.get(task, 0) for task, version in truth.items())
        print(
            f"replica {index}: {written:,} changes in {took:.0f} s; {verdict.delivered:,} delivered, "
            f"{lost:,} lost, {verdict.out_of_order:,} out of order, {verdict.repeated:,} repeats dropped",
            flush=True,
        )
        broken |= bool(lost or verdict.out_of_order or verdict.delivered != written)
    assert written >= count, "the writers have not written enough"
    return broken


def _write(url: str, count: int, seed: int, without_lock: bool) -> None:
    if without_lock:
        sql = statements()["insert_changes"].replace("pg_advisory_xact_lock_shared(%s)", "%s::bigint")
        assert "advisory" not in sql, "the lock is still there"
        setattr(changes_module, "statement", {**statements(), "insert_changes": sql}.__getitem__)  # noqa: B010
    asyncio.run(_write_batches(url, count, seed))


async def _write_batches(url: str, count: int, seed: int) -> None:
    pool = Pool(url, PoolOptions(size=WRITERS))
    await pool.open()
    left = count

    async def write(rng: random.Random) -> None:
        nonlocal left
        while left > 0:
            # Small batches overtake one another; large ones wait for each other's rows.
            most = LARGE if rng.random() < 0.2 else SMALL
            batch = sorted(rng.sample(range(TASKS), rng.randint(1, most)))
            try:
                written = await pool.run(partial(_bump, batch=batch, rng=rng))
            except (RolledBack, Overloaded):
                continue
            left -= written

    await asyncio.gather(*(write(random.Random(seed * 100 + n)) for n in range(WRITERS)))
    await pool.close()


async def _bump(tx: Tx, *, batch: list[int], rng: random.Random) -> int:
    rows = sorted(await tx.fetch(BUMP, (batch,)))
    await insert_changes(tx, [change(f"t{task}", version) for task, version in rows])
    if rng.random() < 0.1:
        await asyncio.sleep(rng.choice((0.002, 0.02, 0.1)))
    if rng.random() < 0.15:
        raise RolledBack
    return len(rows)


async def _follow(url: str, replicas: Sequence[BaseProcess]) -> list[OrderReport]:
    """What streams of two hubs see until the writers have ended and everything was handed out."""
    pools = [Pool(url, PoolOptions(size=4)) for _ in range(2)]
    for pool in pools:
        await pool.open()
    hubs = [Hub(pool) for pool in pools]
    running = [asyncio.create_task(hub.run()) for hub in hubs]
    verdicts = [OrderReport(), OrderReport()]
    readers = [asyncio.create_task(_read(hubs, n, verdicts[n])) for n in range(2)]
    for replica in replicas:
        await asyncio.to_thread(replica.join)
    assert all(replica.exitcode == 0 for replica in replicas), "a writer has failed"
    for hub in hubs:
        await asyncio.wait_for(hub.flush(), 60)
    await asyncio.sleep(1)
    for task in (*readers, *running):
        task.cancel()
    await asyncio.gather(*readers, *running, return_exceptions=True)
    for pool in pools:
        await pool.close()
    return verdicts


async def _read(hubs: list[Hub], index: int, verdict: OrderReport) -> None:
    """Read, and sometimes resume at the other replica, from the token or from a little before it."""
    rng = random.Random(index)
    for hub in hubs:
        await hub.ready()
    place = (0, hubs[index].time.replace(year=2000))
    while True:
        hub = hubs[index % 2]
        subscription = hub.subscribe(None)
        subscription.rewind(*place)
        try:
            for _ in range(rng.randint(5, 80)):
                before = (subscription.position, subscription.time)
                await _take(subscription, verdict)
                place = rng.choice((before, (subscription.position, subscription.time)))
        finally:
            hub.unsubscribe(subscription)
        index += 1


async def _take(subscription: Subscription, verdict: OrderReport) -> None:
    for found in await subscription.next(0.2):
        verdict.see(found.id, found.resource_id, found.version)


if __name__ == "__main__":
    main()
