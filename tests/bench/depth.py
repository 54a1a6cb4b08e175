"""The hot path of taskdb in an old database, and while a snapshot is held open."""

import asyncio
import time
from pathlib import Path

import psycopg

from tests.bench import fill
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process

PENDING, FINISHED, COMPLETIONS = 1_000_000, 5_000_000, 200_000
# Of the snapshot's work; the median of the claims in the last one counts.
ROUND = 20_000


async def run(
    server: PostgresServer, directory: Path, report: Report, *, quick: bool, scale: float = 1.0
) -> None:
    """Both, with a fraction of the rows."""
    scale, rounds, count = (0.01, 1, 4000) if quick else (scale, 3, 30_000)
    await compare(server, directory, report, scale=scale, rounds=rounds, count=count)
    await hold_snapshot(server, directory, report, max(ROUND // 10, int(COMPLETIONS * scale)))


async def compare(
    server: PostgresServer, directory: Path, report: Report, *, scale: float, rounds: int, count: int
) -> None:
    """The same work on an empty and on a deep database, in turns: 1M unmatched pending, 5M finished."""
    with migrated(server) as shallow, migrated(server) as deep:
        pending, finished = int(PENDING * scale), int(FINISHED * scale)
        unmatched = await asyncio.to_thread(fill.deepen, deep, pending=pending, finished=finished)
        # Otherwise the first runs pay for writing the fill to disk.
        with psycopg.connect(server.admin_url, autocommit=True) as admin:
            admin.execute("CHECKPOINT")
        rates: dict[str, list[tuple[float, float, float]]] = {shallow: [], deep: []}
        for number in range(rounds):
            # The first of a pair is the other one each time, so that neither always follows the other's work.
            for url in (shallow, deep) if number % 2 == 0 else (deep, shallow):
                rates[url].append(await _hot_path(url, directory, count, unmatched))
                line = ", ".join(f"{rate:,.0f}" for rate in rates[url][-1])
                print(f"  {'empty' if url == shallow else 'deep'}: {line} tasks/s", flush=True)
        for index, name in enumerate(("batch create", "claim + report", "single create")):
            before = median([run[index] for run in rates[shallow]])
            after = median([run[index] for run in rates[deep]])
            ratio = after / before
            runs = tuple(run[index] for run in rates[deep])
            figure = Figure(
                f"{name}, deep", after, "tasks/s", runs, ratio, "empty database", "0.75", ratio >= 0.75
            )
            report.add(figure)


async def _hot_path(url: str, directory: Path, count: int, unmatched: int) -> tuple[float, float, float]:
    with taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url, unmatched=unmatched)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])
        # Neither the first statements of a process nor a cold cache are what is compared.
        await load.batch_creates(1000)
        await load.drain(epoch, 1000)
        created = await load.batch_creates(count)
        done, drained, _ = await load.drain(epoch, count)
        single = await load.single_creates(count // 10)
        again, _, _ = await load.drain(epoch, count // 10)
        assert (done, again) == (count, count // 10), (done, again)
        await load.channel.close()
        return created, drained, single


async def hold_snapshot(server: PostgresServer, directory: Path, report: Report, count: int) -> None:
    """Claims while another session holds a snapshot open, so that no dead row can be removed."""
    step = min(ROUND, count)
    with migrated(server) as url, taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])

        async def work() -> list[float]:
            await load.batch_creates(step)
            _, _, claims = await load.drain(epoch, step)
            return claims

        await work()
        before = await work()
        with psycopg.connect(url) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM queue")
            start = time.monotonic()
            for done in range(step, count + 1, step):
                after = await work()
                latency = f"{1000 * median(after):.1f} ms a claim, {time.monotonic() - start:.0f} s"
                print(f"  {done:,} completions beside a snapshot: {latency}", flush=True)
        ratio = median(after) / median(before)
        name = "claim of 500 with a snapshot held open"
        value, met = median(after) * 1000, ratio <= 2.0
        report.add(Figure(name, value, "ms", tuple(after), ratio, "without", "2.0", met))
        await load.channel.close()
