"""The archive: how fast finished tasks move there, and what claims feel of it."""

import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from taskyard.v1.lease_service_pb2 import LanePop
from tests.bench import fill
from tests.bench.database import migrated, wal_position
from tests.bench.measure import Figure, Report
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process

COUNT = 1_000_000
# Beyond the retention of 90 days, so that all of them are due.
AGE = timedelta(days=91)
CLAIM = 20
# Claims begin at these distances, however long each takes: with and without the archive they are the same.
PACE_SECONDS = 0.05
JOB = ("-m", "taskyard_taskdb", "maintenance", "--job", "retention", "--once")


@dataclass
class Seen:
    """What was measured in the parts of one kind."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """Of the claims."""
        return statistics.quantiles(self.latencies, n=100)[98]


async def run(
    server: PostgresServer, directory: Path, report: Report, *, quick: bool, scale: float = 1.0
) -> None:
    """Claims at a steady pace; the archive works in every other part of the time, until all has moved."""
    count, part = (100_000, 3.0) if quick else (int(COUNT * scale), 15.0)
    with migrated(server) as url, psycopg.connect(url, autocommit=True) as connection:
        await asyncio.to_thread(fill.deepen, url, pending=0, finished=count, age=AGE)
        begin = wal_position(connection)
        with taskdb_process(url, directory) as taskdb:
            load = Load(taskdb.address, url)
            await load.batch_creates(20_000)
            epoch = await load.open_session(make_key(url, "runner").split("_")[1])
            claims = Claims(load, epoch, await load.lane_pops())
            # The first ones find plans and caches cold.
            await claims.make(Seen(), part / 3)
            before = Seen()
            await claims.make(before, 2 * part)
            with_it, without = await _alternate(url, claims, part)
            await load.channel.close()
        moved = connection.execute("SELECT count(*) FROM tasks_archive").fetchone()
        assert moved == (count,), moved
        logged = wal_position(connection) - begin
    print(f"  {len(with_it.latencies)} claims while archiving, {len(without.latencies)} without", flush=True)
    print(
        f"  p99 of claims before all of it {before.p99 * 1000:.1f} ms, with it {with_it.p99 / before.p99:.2f} x"
    )
    print(
        f"  p99 of claims without {without.p99 * 1000:.1f} ms; {logged / count:.0f} B of WAL a task, with theirs"
    )
    rate, slower = count / with_it.seconds, with_it.p99 / without.p99
    report.add(Figure("archive", rate, "tasks/s", goal="5,000", met=rate >= 5000))
    figure = Figure(
        f"claim of {CLAIM}, p99, while archiving",
        with_it.p99 * 1000,
        "ms",
        ratio=slower,
        reference="without",
        goal="2.0",
        met=slower <= 2.0,
    )
    report.add(figure)


async def _alternate(url: str, claims: "Claims", part: float) -> tuple[Seen, Seen]:
    """Parts with and without the archive by turns; the job goes on where it was interrupted."""
    with_it, without = Seen(), Seen()
    while True:
        await claims.make(without, part / 2)
        async with _archiving(url) as job:
            await claims.make(with_it, part, job)
            ended = job.done()
        if ended:
            assert job.result() == 0, "the job failed"
            await claims.make(without, part)
            return with_it, without


@contextlib.asynccontextmanager
async def _archiving(url: str) -> AsyncIterator[asyncio.Task[int]]:
    """The retention job in a process of its own, as an operator runs it; interrupted at the end of the block."""
    with psycopg.connect(url) as connection:
        former = _begun(connection)
    environment = {**os.environ, "TASKYARD_DATABASE_URL": url}
    process = await asyncio.create_subprocess_exec(sys.executable, *JOB, env=environment)
    waiting = asyncio.create_task(process.wait())
    try:
        # The start of a process is not what the leader, which is there already, lets claims feel.
        await asyncio.to_thread(_await_begin, url, former)
        yield waiting
    finally:
        if not waiting.done():
            process.kill()
            await waiting


def _await_begin(url: str, former: datetime | None) -> None:
    """Return once the job has begun since `former`."""
    with psycopg.connect(url, autocommit=True) as connection:
        while _begun(connection) == former:
            time.sleep(0.02)


def _begun(connection: psycopg.Connection) -> datetime | None:
    row = connection.execute("SELECT start_time FROM job_runs WHERE job = 'retention'").fetchone()
    return row[0] if row else None


class Claims:
    """Small claims at a steady pace; what they take is completed, and made anew."""

    def __init__(self, load: Load, epoch: int, lanes: list[LanePop]) -> None:
        self._load = load
        self._epoch = epoch
        self._lanes = lanes
        self._claimed = 0

    async def make(self, seen: Seen, seconds: float, until: "asyncio.Task[int] | None" = None) -> None:
        """Claim for so long, or until something is done."""
        begin = due = time.perf_counter()
        while time.perf_counter() < begin + seconds and not (until is not None and until.done()):
            done, _, latencies = await self._load.drain(
                self._epoch, 1, in_flight=1, batch=CLAIM, lanes=self._lanes
            )
            seen.latencies += latencies
            self._claimed += done
            if self._claimed >= 1000:
                self._claimed -= 1000
                await self._load.batch_creates(1000)
            due = max(due + PACE_SECONDS, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
        seen.seconds += time.perf_counter() - begin
