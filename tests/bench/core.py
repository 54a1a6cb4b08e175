"""The hot path of taskdb: creates, claims and reports against the raw SQL limits of the same run."""

import asyncio
import statistics
from pathlib import Path

import psycopg

from tests.bench import cpu, raw
from tests.bench.database import migrated, wal_position
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Measure limits and services in turn, so that both see the same machine."""
    runs, count = (1, 2000) if quick else (3, 30_000)
    lifecycles, claims, copies, batches, drains, singles, empties, wal = [], [], [], [], [], [], [], []
    taskdb_cpu: list[float] = []
    server_cpu: list[float] = []
    created_wal: list[float] = []

    async def measure_limits() -> None:
        with migrated(server) as url:
            lifecycle = await asyncio.to_thread(raw.lifecycle_rate, url, count)
            lifecycles.append(lifecycle.whole)
            claims.append(lifecycle.run)
            copies.append(await asyncio.to_thread(raw.copy_rate, url, count))

    for _ in range(runs):
        # Before and after, because the machine's speed swings.
        await measure_limits()
        with migrated(server) as url, taskdb_process(url, directory) as taskdb:
            load = Load(taskdb.address, url)
            key_id = make_key(url, "runner").split("_")[1]
            with psycopg.connect(url, autocommit=True) as connection:
                await load.batch_creates(1000)
                before = wal_position(connection)
                used = cpu.of_process(taskdb.pid), cpu.of_server(connection)
                batches.append(await load.batch_creates(count))
                taskdb_cpu.append((cpu.of_process(taskdb.pid) - used[0]) / count * 1e6)
                server_cpu.append((cpu.of_server(connection) - used[1]) / count * 1e6)
                created_wal.append((wal_position(connection) - before) / count)
                done, rate, _ = await load.drain(await load.open_session(key_id), count)
                drains.append(rate)
                wal.append((wal_position(connection) - before) / max(done, 1))
            empties.append(await load.empty_calls(count // 10))
            singles.append(await load.single_creates(count // 10))
            await load.channel.close()
        await measure_limits()
        line = f"raw {lifecycles[-1]:,.0f}, batch create {batches[-1]:,.0f}, claim + report {drains[-1]:,.0f}"
        print(f"  {line}, single create {singles[-1]:,.0f} tasks/s", flush=True)
    lifecycle = report.add(Figure("raw SQL lifecycle", median(lifecycles), "tasks/s", tuple(lifecycles)))
    claim = report.add(Figure("raw SQL claim + complete", median(claims), "tasks/s", tuple(claims)))
    copy = report.add(Figure("raw COPY of a create's rows", median(copies), "tasks/s", tuple(copies)))
    empty = report.add(Figure("empty unary call, 50 callers", median(empties), "calls/s", tuple(empties)))
    created = median(batches)
    ratio = created / copy.value
    met = created >= 20_000 or ratio >= 0.4
    report.add(
        Figure("batch create", created, "tasks/s", tuple(batches), ratio, "COPY", "20,000/s or 0.4", met)
    )
    report.add(Figure("batch create, CPU of taskdb", median(taskdb_cpu), "us", tuple(taskdb_cpu)))
    report.add(Figure("batch create, CPU of PostgreSQL", median(server_cpu), "us", tuple(server_cpu)))
    report.add(Figure("batch create, WAL", median(created_wal), "bytes", tuple(created_wal)))
    drained = median(drains)
    ratio = drained / lifecycle.value
    report.add(
        Figure("claim + report", drained, "tasks/s", tuple(drains), ratio, "lifecycle", "0.6", ratio >= 0.6)
    )
    ratio = drained / claim.value
    report.add(Figure("claim + report", drained, "tasks/s", tuple(drains), ratio, "raw claim + complete"))
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
            "0.9",
            ratio >= 0.9,
        )
    )
    per_task = statistics.median(wal)
    report.add(
        Figure("WAL of create + run", per_task, "bytes", tuple(wal), goal="2,200", met=per_task <= 2200)
    )
