"""What a task costs that comes alone: exchanges with PostgreSQL, commits, and CPU of each process.

Tasks are created one after the other, each long after the one before has ended. Exchanges are counted by a
proxy and commits in the log, both from the call of CreateTask until the runner has the acknowledgement of the
outcome; CPU and times are measured without the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from taskyard.v1 import task_service_pb2
from taskyard_standalone.binaries import find_binaries
from taskyard_taskdb.storage.migrate import upgrade
from tests.bench import cpu
from tests.bench.end_to_end import FastRunnerProcess, fast_runner
from tests.bench.measure import Figure, Report, median
from tests.bench.pg_exchanges import Exchange, Recorder, recorder, without
from tests.bench.taskdb import PARENT, Load, task
from tests.harness.control_plane import ControlPlane, control_plane, make_keys
from tests.harness.postgres import PostgresServer, migrated_template
from tests.integration.test_database_network import server_address, through

# Longer than anything that a create or an outcome leaves to do shortly after.
APART_SECONDS = 0.15
REST_SECONDS = 5.0
# Statements are prepared in every session, and planned once for all parameters.
WARM_UP = 60
_COMMIT = re.compile(r"desc: COMMIT (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) UTC")
PARTS = ("PostgreSQL", "taskdb", "scheduler", "runner", "client")


@dataclass(frozen=True)
class Life:
    """One task, from the call of CreateTask to the acknowledgement of its outcome (CLOCK_MONOTONIC)."""

    start: float
    end: float


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """First what is exchanged and committed, then what it costs in each process."""
    count = 20 if quick else 200
    with migrated_template(server, upgrade) as template:
        await _exchanges(server, template, directory, report, count)
        with control_plane(server, template) as plane:
            await _costs(plane, report, count)


async def _exchanges(
    server: PostgresServer, template: str, directory: Path, report: Report, count: int
) -> None:
    with psycopg.connect(server.admin_url, autocommit=True) as admin:
        async with _recorded_plane(server, template) as (plane, proxy):
            async with _runner(plane, WARM_UP + count) as runner:
                load = Load(plane.taskdbs[0].address, plane.database)
                await _lives(load, runner, WARM_UP)
                rest = time.monotonic()
                await asyncio.sleep(REST_SECONDS)
                position, start = _position(admin), time.monotonic()
                lives = await _lives(load, runner, count)
                end = time.monotonic()
                await load.channel.close()
            commits = sorted(_commits(next(directory.rglob("pg_wal")), position, _position(admin)))
    resting = proxy.between(rest, start)
    # Housekeeping goes on meanwhile, and more of it falls into a life on a busy machine.
    known = {text for exchange in resting for text in exchange.statements} - {"BEGIN", "COMMIT"}
    groups = [without(proxy.between(life.start, life.end), known) for life in lives]
    found = _add(report, "exchanges with PostgreSQL, create to outcome", [len(group) for group in groups], 5)
    _print(min(groups, key=lambda group: abs(len(group) - found.value)))
    # The log has the time of day.
    shift = time.time() - time.monotonic()
    within = [
        bisect_right(commits, life.end + shift) - bisect_left(commits, life.start + shift) for life in lives
    ]
    _add(report, "commits, create to outcome", within, 2)
    whole = len(proxy.between(start, end)) - len(resting) * (end - start) / (start - rest)
    report.add(Figure("exchanges per lone task in all, without those at rest", whole / count, ""))
    report.add(Figure("commits per lone task in all", len(commits) / count, ""))


async def _costs(plane: ControlPlane, report: Report, count: int) -> None:
    load = Load(plane.taskdbs[0].address, plane.url)
    with psycopg.connect(plane.url, autocommit=True) as connection:
        async with _runner(plane, WARM_UP + count) as runner:
            await _lives(load, runner, WARM_UP)
            before, start = _spent(plane, runner, connection), time.monotonic()
            await asyncio.sleep(count * APART_SECONDS / 2)
            between, rested = _spent(plane, runner, connection), time.monotonic() - start
            lives = await _lives(load, runner, count)
            after, worked = _spent(plane, runner, connection), time.monotonic() - start - rested
    await load.channel.close()
    whole = 0.0
    for part in PARTS:
        rest = (between[part] - before[part]) * worked / rested
        cost = 1000 * (after[part] - between[part] - rest) / count
        whole += cost
        report.add(Figure(f"CPU of a lone task, {part}", cost, "ms"))
    report.add(Figure("CPU of a lone task, in all", whole, "ms"))
    took = sorted(1000 * (life.end - life.start) for life in lives)
    for name, place in (("p50", len(took) // 2), ("p99", len(took) * 99 // 100)):
        report.add(Figure(f"lone task, create to outcome, {name}", took[place], "ms"))


async def _lives(load: Load, runner: FastRunnerProcess, count: int) -> list[Life]:
    request = task_service_pb2.CreateTaskRequest(
        parent=PARENT, task=task(), view=task_service_pb2.TASK_VIEW_NAME
    )
    lives = []
    for _ in range(count):
        start = time.monotonic()
        # The acknowledgement may precede the response to the create.
        _, end = await asyncio.gather(load.create(request), runner.acknowledged())
        lives.append(Life(start, end))
        await asyncio.sleep(max(0.0, start + APART_SECONDS - time.monotonic()))
    return lives


@contextlib.asynccontextmanager
async def _runner(plane: ControlPlane, count: int) -> AsyncIterator[FastRunnerProcess]:
    # One more than will come, so that it stays until the end.
    async with fast_runner(plane, count + 1, "--capacity", "100", "--prefetch", "0", "--acks") as runner:
        yield runner


@dataclass
class _RecordedPlane(ControlPlane):
    """Services that reach their database through a proxy; `database` is the URL without it."""

    database: str = ""


@contextlib.asynccontextmanager
async def _recorded_plane(
    server: PostgresServer, template: str
) -> AsyncIterator[tuple[_RecordedPlane, Recorder]]:
    with (
        server.database(template) as url,
        tempfile.TemporaryDirectory(prefix="taskyard-bench-") as folder,
    ):
        async with recorder(server_address(url)) as proxy:
            plane = _RecordedPlane(through(url, proxy), Path(folder), database=url)
            plane.keys = make_keys(url)
            try:
                # The proxy serves them meanwhile.
                await asyncio.to_thread(plane.add_taskdb)
                await asyncio.to_thread(plane.add_scheduler)
                yield plane, proxy
            finally:
                await asyncio.to_thread(plane.stop)


def _spent(
    plane: ControlPlane, runner: FastRunnerProcess, connection: psycopg.Connection
) -> dict[str, float]:
    return {
        "PostgreSQL": cpu.of_server(connection),
        "taskdb": cpu.of_process(plane.taskdbs[0].pid),
        "scheduler": cpu.of_process(plane.schedulers[0].pid),
        "runner": cpu.of_process(runner.process.pid),
        "client": time.process_time(),
    }


def _add(report: Report, name: str, values: list[int], goal: int) -> Figure:
    value = median([float(n) for n in values])
    runs = tuple(float(n) for n in sorted(set(values)))
    return report.add(Figure(name, value, "", runs, goal=str(goal), met=value <= goal))


def _print(group: list[Exchange]) -> None:
    for exchange in group:
        elapsed = 1000 * (exchange.time - group[0].time)
        print(f"  {elapsed:6.1f} ms  session {exchange.session:<3} {exchange.label}", flush=True)


def _position(connection: psycopg.Connection) -> str:
    # What is not flushed is not in the files that pg_waldump reads.
    row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    connection.execute("SELECT pg_switch_wal()")
    assert row is not None
    return str(row[0])


def _commits(files: Path, start: str, end: str) -> list[float]:
    """When each transaction between two places of the log was committed, in seconds of the epoch."""
    program = find_binaries().postgres.with_name("pg_waldump")
    command = [str(program), "-p", str(files), "-s", start, "-e", end, "--rmgr=Transaction"]
    listing = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"}
    ).stdout
    return [datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in _COMMIT.findall(listing)]
