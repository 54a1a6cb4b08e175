"""The whole path: create → taskdb → scheduler → stream → runner → completed, durable, with the change log.

The runner is a fake in its own process; the services are real. Besides the rates it reports the cost of a
task in each process as CPU time, which varies little on a busy machine.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from taskyard.v1 import task_service_pb2
from taskyard_taskdb.storage.migrate import upgrade
from tests.bench import cpu, raw
from tests.bench.database import migrated
from tests.bench.fast_runner import STAMP
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import PARENT, Load, task
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.postgres import PostgresServer, migrated_template

PARTS = ("PostgreSQL", "taskdb", "scheduler", "runner")
START_SECONDS = 60
# Creates while latency is measured.
PER_SECOND = 100


@dataclass
class FastRunnerProcess:
    """A fast_runner that has connected."""

    process: asyncio.subprocess.Process

    async def seen(self) -> dict[str, Any]:
        """Its observations, once it has completed the requested tasks."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line)
        return found

    async def acknowledged(self) -> float:
        """When the last outcome was acknowledged that it had reported, if it was started with --acks."""
        assert self.process.stdout is not None
        return float(await self.process.stdout.readline())


@contextlib.asynccontextmanager
async def fast_runner(plane: ControlPlane, count: int, *flags: str) -> AsyncIterator[FastRunnerProcess]:
    """A runner of no-ops that ends after `count` tasks."""
    # An id stays taken while the session of its last process lasts.
    name = f"fast-{uuid.uuid4().hex[:8]}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.fast_runner", plane.schedulers[0].address, str(count),
        "--runner-id", name, *flags,
        env={**os.environ, "TASKYARD_KEY": plane.keys["runner"]},
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            assert await process.stdout.readline() == b"connected\n"
        yield FastRunnerProcess(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Raw limit, drain and sustained load in turn, then latency and idle load on one control plane."""
    del directory
    runs, count = (1, 2000) if quick else (3, 30_000)
    limits, drains, sustained = [], [], []
    costs: dict[str, list[float]] = {part: [] for part in PARTS}
    with migrated_template(server, upgrade) as template:
        for _ in range(runs):
            limits.append(await _limit(server, count))
            with control_plane(server, template) as plane:
                drains.append(await drain(plane, count))
            with control_plane(server, template) as plane:
                rate, spent = await create_and_run(plane, count)
                sustained.append(rate)
                for part, seconds in spent.items():
                    costs[part].append(1e6 * seconds / count)
            # Before and after, because the machine's speed swings.
            limits.append(await _limit(server, count))
            line = f"raw {limits[-1]:,.0f}, drain {drains[-1]:,.0f}, create + run {sustained[-1]:,.0f}"
            print(f"  {line} tasks/s", flush=True)
        limit = report.add(Figure("raw SQL lifecycle", median(limits), "tasks/s", tuple(limits)))
        for name, rates, goal in (
            ("drain, end to end", drains, 0.45),
            ("create + run, end to end", sustained, 0.3),
        ):
            ratio = median(rates) / limit.value
            report.add(
                Figure(
                    name, median(rates), "tasks/s", tuple(rates), ratio, "lifecycle", str(goal), ratio >= goal
                )
            )
        for part, values in costs.items():
            report.add(Figure(f"CPU of create + run, {part}", median(values), "us", tuple(values)))
        with control_plane(server, template) as plane:
            await latencies(plane, report, runs, 200 if quick else 2000)


async def _limit(server: PostgresServer, count: int) -> float:
    with migrated(server) as url:
        return (await asyncio.to_thread(raw.lifecycle_rate, url, count)).whole


async def drain(plane: ControlPlane, count: int) -> float:
    """Tasks per second from a queue that was filled before, from the first assignment to the last ack."""
    load = Load(plane.taskdbs[0].address, plane.url)
    await load.batch_creates(count)
    async with fast_runner(plane, count) as runner:
        seen = await runner.seen()
    await load.channel.close()
    return float(count / (seen["last"] - seen["first"]))


async def create_and_run(plane: ControlPlane, count: int) -> tuple[float, dict[str, float]]:
    """Tasks per second created and run at the same time, and the CPU seconds of each process."""
    load = Load(plane.taskdbs[0].address, plane.url)
    with psycopg.connect(plane.url, autocommit=True) as connection:
        async with fast_runner(plane, count) as runner:
            before = _spent(plane, runner, connection)
            start = time.monotonic()
            _, seen = await asyncio.gather(load.batch_creates(count), runner.seen())
            # The runner has nothing left to do but to end.
            after = _spent(plane, runner, connection)
    await load.channel.close()
    return count / (seen["last"] - start), {part: after[part] - before[part] for part in PARTS}


def _spent(
    plane: ControlPlane, runner: FastRunnerProcess, connection: psycopg.Connection
) -> dict[str, float]:
    return {
        "PostgreSQL": cpu.of_server(connection),
        "taskdb": cpu.of_process(plane.taskdbs[0].pid),
        "scheduler": cpu.of_process(plane.schedulers[0].pid),
        "runner": cpu.of_process(runner.process.pid),
    }


async def latencies(plane: ControlPlane, report: Report, runs: int, count: int) -> None:
    """Some runs one after the other; the median of each percentile counts."""
    # The first calls of every process are not those of a system that is idle but warm.
    await latency(plane, 100)
    measured = [await latency(plane, count) for _ in range(runs)]
    for part, name, goal in ((0, "p50", 5), (1, "p99", 20)):
        values = [run[part] for run in measured]
        value = median(values)
        title = f"create → start at {PER_SECOND}/s, {name}"
        report.add(Figure(title, value, "ms", tuple(values), goal=str(goal), met=value <= goal))


async def latency(plane: ControlPlane, count: int) -> tuple[float, float]:
    """p50 and p99 from the call of CreateTask to the arrival of the assignment, if nothing else is done."""
    load = Load(plane.taskdbs[0].address, plane.url)
    async with fast_runner(plane, count, "--capacity", "100", "--prefetch", "0") as runner:
        start = time.monotonic()
        calls = []
        for n in range(count):
            await asyncio.sleep(max(0.0, start + n / PER_SECOND - time.monotonic()))
            calls.append(asyncio.ensure_future(_create_stamped(load)))
        await asyncio.gather(*calls)
        seen = await runner.seen()
    await load.channel.close()
    found = sorted(seen["latencies_ms"])
    middle, late = found[len(found) // 2], found[len(found) * 99 // 100]
    print(f"  create → start: p50 {middle:.1f} ms, p99 {late:.1f} ms", flush=True)
    return middle, late


async def _create_stamped(load: Load) -> None:
    made = task()
    made.spec.execution.command.args.append(f"{STAMP}{time.monotonic_ns()}")
    request = task_service_pb2.CreateTaskRequest(
        parent=PARENT, task=made, view=task_service_pb2.TASK_VIEW_NAME
    )
    await load.create(request)
