"""The archive: how fast finished tasks move there, and what claims feel of it."""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psycopg

from taskyard.v1.lease_service_pb2 import LaneClaim
from taskyard_taskdb.sweep.jobs import POLL_SECONDS
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
# Claims begin at these distances, independent of their duration: with and without the archive they are the same.
PACE_SECONDS = 0.05
# Recorded as a failed run to be repeated: the leader runs the job at its next poll.
DUE = """INSERT INTO job_runs (job, start_time, end_time, error)
VALUES ('retention', now() - interval '1 day', now() - interval '1 day', 'is due')"""
STATE = """SELECT CASE WHEN error = 'is due' THEN NULL WHEN end_time IS NULL THEN 'running'
WHEN error IS NULL THEN 'done' ELSE error END FROM job_runs WHERE job = 'retention'"""


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
    """Claims at a steady pace before, while and after the leader archives all there is."""
    count, part = (100_000, 10.0) if quick else (int(COUNT * scale), 60.0)
    with migrated(server) as url, psycopg.connect(url, autocommit=True) as connection:
        await asyncio.to_thread(fill.deepen, url, pending=0, finished=count, age=AGE)
        begin = wal_position(connection)
        with taskdb_process(url, directory) as taskdb:
            load = Load(taskdb.address, url)
            await load.batch_creates(20_000)
            epoch = await load.open_session(make_key(url, "runner").split("_")[1])
            claims = Claims(load, epoch, await load.lane_claims())
            # The first ones find plans and caches cold.
            await claims.make(Seen(), 5.0, lambda: False)
            before, with_it, after = Seen(), Seen(), Seen()
            await claims.make(before, part, lambda: False)
            connection.execute(DUE)
            await claims.make(before, POLL_SECONDS + part, lambda: _archived(connection) is not None)
            await claims.make(with_it, 3600.0, lambda: _archived(connection) != "running")
            assert _archived(connection) == "done", "the job failed"
            await claims.make(after, part, lambda: False)
            await load.channel.close()
        moved = connection.execute("SELECT count(*) FROM tasks_archive").fetchone()
        assert moved == (count,), moved
        logged = wal_position(connection) - begin
    print(f"  {len(before.latencies)} claims before, {len(with_it.latencies)} while archiving", flush=True)
    print(
        f"  p99 before {before.p99 * 1000:.1f} ms, while {with_it.p99 * 1000:.1f}, after {after.p99 * 1000:.1f}; "
        f"{logged / count:.0f} B of WAL a task, with those of claims"
    )
    rate, slower = count / with_it.seconds, with_it.p99 / before.p99
    report.add(Figure("archive", rate, "tasks/s", goal="5,000", met=rate >= 5000))
    figure = Figure(
        f"claim of {CLAIM}, p99, while archiving",
        with_it.p99 * 1000,
        "ms",
        ratio=slower,
        reference="before",
        goal="2.0",
        met=slower <= 2.0,
    )
    report.add(figure)


def _archived(connection: psycopg.Connection) -> str | None:
    """How far the leader is with the job that was made due; None before it has begun."""
    row = connection.execute(STATE).fetchone()
    return str(row[0]) if row and row[0] else None


class Claims:
    """Small claims at a steady pace; what they take is completed, and made anew."""

    def __init__(self, load: Load, epoch: int, lanes: list[LaneClaim]) -> None:
        self._load = load
        self._epoch = epoch
        self._lanes = lanes
        self._claimed = 0

    async def make(self, seen: Seen, seconds: float, done: Callable[[], bool]) -> None:
        """Claim for `seconds`, or until `done()`."""
        begin = due = time.perf_counter()
        while time.perf_counter() < begin + seconds and not done():
            claimed, _, latencies = await self._load.drain(
                self._epoch, 1, in_flight=1, batch=CLAIM, lanes=self._lanes
            )
            seen.latencies += latencies
            self._claimed += claimed
            if self._claimed >= 1000:
                self._claimed -= 1000
                await self._load.batch_creates(1000)
            due = max(due + PACE_SECONDS, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
        seen.seconds += time.perf_counter() - begin
