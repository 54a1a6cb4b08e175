"""The hot path of taskdb: creates, claims and reports against the raw SQL limits of the same run."""

import asyncio
import statistics
from pathlib import Path

import psycopg

from tests.bench import fill, raw
from tests.bench.database import migrated, wal_position
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool, depth: bool) -> None:
    """Measure limits and services in turn, so that both see the same machine."""
    runs, count = (1, 2000) if quick else (3, 30_000)
    lifecycles, copies, batches, drains, singles, empties, wal = [], [], [], [], [], [], []
    for _ in range(runs):
        with migrated(server) as url:
            lifecycles.append(await asyncio.to_thread(raw.lifecycle_rate, url, count))
            copies.append(await asyncio.to_thread(raw.copy_rate, url, count))
        with migrated(server) as url, taskdb_process(url, directory) as taskdb:
            load = Load(taskdb.address, url)
            key_id = make_key(url, "runner").split("_")[1]
            with psycopg.connect(url, autocommit=True) as connection:
                await load.batch_creates(1000)
                before = wal_position(connection)
                batches.append(await load.batch_creates(count))
                done, rate, _ = await load.drain(await load.open_session(key_id), count)
                drains.append(rate)
                wal.append((wal_position(connection) - before) / max(done, 1))
            empties.append(await load.empty_calls(count // 10))
            singles.append(await load.single_creates(count // 10))
            await load.channel.close()
    lifecycle = report.add(Figure("raw SQL lifecycle", median(lifecycles), "tasks/s", tuple(lifecycles)))
    copy = report.add(Figure("raw COPY of a create's rows", median(copies), "tasks/s", tuple(copies)))
    empty = report.add(Figure("empty unary call, 50 callers", median(empties), "calls/s", tuple(empties)))
    created = median(batches)
    ratio = created / copy.value
    met = created >= 20_000 or ratio >= 0.4
    report.add(
        Figure("batch create", created, "tasks/s", tuple(batches), ratio, "COPY", "20,000/s or 0.4", met)
    )
    drained = median(drains)
    ratio = drained / lifecycle.value
    report.add(
        Figure("pop + report", drained, "tasks/s", tuple(drains), ratio, "lifecycle", "0.6", ratio >= 0.6)
    )
    single = median(singles)
    ratio = single / empty.value
    report.add(
        Figure(
            "single create, 50 callers",
            single,
            "tasks/s",
            tuple(singles),
            ratio,
            "empty call",
            "0.6",
            ratio >= 0.6,
        )
    )
    per_task = statistics.median(wal)
    report.add(
        Figure("WAL of create + run", per_task, "bytes", tuple(wal), goal="2,200", met=per_task <= 2200)
    )
    if depth:
        await compare_depths(server, directory, report, count)
        await hold_snapshot(server, directory, report, 200_000)


async def compare_depths(server: PostgresServer, directory: Path, report: Report, count: int) -> None:
    """The same work on an empty and on a deep database, in turns: 1M unmatched pending, 5M finished."""
    with migrated(server) as shallow, migrated(server) as deep:
        await asyncio.to_thread(fill.deepen, deep, pending=1_000_000, finished=5_000_000)
        rates: dict[str, list[tuple[float, float, float]]] = {shallow: [], deep: []}
        for _ in range(3):
            for url in (shallow, deep):
                rates[url].append(await _hot_path(url, directory, count))
        for index, name in enumerate(("batch create", "pop + report", "single create")):
            before = median([run[index] for run in rates[shallow]])
            after = median([run[index] for run in rates[deep]])
            ratio = after / before
            runs = tuple(run[index] for run in rates[deep])
            figure = Figure(
                f"{name}, deep", after, "tasks/s", runs, ratio, "empty database", "0.75", ratio >= 0.75
            )
            report.add(figure)


async def _hot_path(url: str, directory: Path, count: int) -> tuple[float, float, float]:
    with taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])
        created = await load.batch_creates(count)
        _, drained, _ = await load.drain(epoch, count)
        single = await load.single_creates(count // 10)
        await load.drain(epoch, count // 10)
        await load.channel.close()
        return created, drained, single


async def hold_snapshot(server: PostgresServer, directory: Path, report: Report, count: int) -> None:
    """Claims while another session holds a snapshot open, so that no dead row can be removed."""
    with migrated(server) as url, taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])
        await load.batch_creates(20_000)
        _, _, before = await load.drain(epoch, 20_000)
        with psycopg.connect(url) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM queue")
            for _ in range(count // 20_000):
                await load.batch_creates(20_000)
                _, _, after = await load.drain(epoch, 20_000)
        ratio = median(after) / median(before)
        name = "claim of 500 with a snapshot held open"
        value, met = median(after) * 1000, ratio <= 2.0
        report.add(Figure(name, value, "ms", tuple(after), ratio, "without", "2.0", met))
        await load.channel.close()
