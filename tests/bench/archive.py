"""The archive: how fast finished tasks move there, and what claims feel of it."""

import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import psycopg

from tests.bench import fill
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process

# Beyond the retention of 90 days, so that all of them are due.
AGE = timedelta(days=91)
CLAIM = 20
PAUSE_SECONDS = 0.05


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Claims at a steady pace, first alone, then while the archive fills."""
    count, seconds = (20_000, 5.0) if quick else (1_000_000, 30.0)
    with migrated(server) as url:
        await asyncio.to_thread(fill.deepen, url, pending=0, finished=count, age=AGE)
        with taskdb_process(url, directory) as taskdb:
            load = Load(taskdb.address, url)
            epoch = await load.open_session(make_key(url, "runner").split("_")[1])
            await load.batch_creates(50_000)
            before = [latency async for latency in _claims(load, epoch, seconds)]
            during: list[float] = []
            moving = asyncio.create_task(_move(url))
            async for latency in _claims(load, epoch, 3600.0):
                during.append(latency)
                if moving.done():
                    break
            took = moving.result()
            await load.channel.close()
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT count(*) FROM tasks_archive").fetchone()
        assert row == (count,), row
    rate, slower = count / took, _p99(during) / _p99(before)
    report.add(Figure("archive", rate, "tasks/s", goal="5,000", met=rate >= 5000))
    figure = Figure(
        f"claim of {CLAIM}, p99, while archiving",
        _p99(during) * 1000,
        "ms",
        ratio=slower,
        reference="without",
        goal="2.0",
        met=slower <= 2.0,
    )
    report.add(figure)


async def _claims(load: Load, epoch: int, seconds: float) -> AsyncIterator[float]:
    """Latencies of small claims at a steady pace; their tasks are completed and made anew."""
    end = time.perf_counter() + seconds
    claimed = 0
    while time.perf_counter() < end:
        done, _, latencies = await load.drain(epoch, 1, in_flight=1, batch=CLAIM)
        claimed += done
        for latency in latencies[:1]:
            yield latency
        if claimed >= 1000:
            claimed = 0
            await load.batch_creates(1000)
        await asyncio.sleep(PAUSE_SECONDS)


async def _move(url: str) -> float:
    """Seconds that the retention job takes, in a process of its own as an operator runs it."""
    argv = [sys.executable, "-m", "taskyard_taskdb", "maintenance", "--job", "retention", "--once"]
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*argv, env={**os.environ, "TASKYARD_DATABASE_URL": url})
    with contextlib.suppress(ProcessLookupError):
        assert await process.wait() == 0
    return time.perf_counter() - began


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
