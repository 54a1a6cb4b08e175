"""Watching: lag and cost of many streams on one taskdb, and what an idle or a stalled one costs."""

import asyncio
import contextlib
import multiprocessing
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.watch.log_rows import change
from taskyard.v1 import common_pb2, task_service_pb2, task_service_pb2_grpc
from taskyard_taskdb.storage.change_log.append import insert_changes
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report
from tests.bench.taskdb import PARENT, task
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.processes import Service
from tests.harness.taskdb_process import taskdb_process

STREAMS_PER_CONNECTION = 100
CHANGES_PER_SECOND = 2000
EVERYTHING = 10
ROUND = 1000
Stub = task_service_pb2_grpc.TaskServiceStub


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """All figures of watching."""
    watchers, idle, opened, seconds = (100, 500, 2000, 5) if quick else (1000, 10_000, 50_000, 30)
    with migrated(server) as url, taskdb_process(url, directory) as taskdb:
        names = await _create(taskdb.address, make_key(url, "tenant", "default"), watchers)
        await _measure_idle(url, taskdb, report, names[0], idle, opened)
        for stalled in (0, 1):
            await _measure_lag(url, taskdb, report, names, seconds, stalled=stalled)


async def _create(address: str, key: str, count: int) -> list[str]:
    names: list[str] = []
    async with _channels(address, 1) as [channel]:
        for start in range(0, count, 500):
            wanted = range(start, min(start + 500, count))
            items = [task_service_pb2.CreateTaskRequest(task=task(), task_id=f"t{n}") for n in wanted]
            await Stub(channel).BatchCreateTasks(
                task_service_pb2.BatchCreateTasksRequest(
                    parent=PARENT, requests=items, mode=common_pb2.BATCH_MODE_PER_ITEM
                ),
                metadata=_metadata(key),
            )
            names += [f"{PARENT}/tasks/t{n}" for n in wanted]
    return names


@contextlib.asynccontextmanager
async def _channels(address: str, streams: int) -> AsyncIterator[list[grpc.aio.Channel]]:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20)]
    count = max(1, streams // STREAMS_PER_CONNECTION)
    made = [grpc.aio.insecure_channel(address, options) for _ in range(count)]
    try:
        yield made
    finally:
        for channel in made:
            await channel.close()


def _metadata(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


def _resident(taskdb: Service) -> int:
    for line in Path(f"/proc/{taskdb.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError("it has no memory")


def _processor_seconds(taskdb: Service) -> float:
    fields = Path(f"/proc/{taskdb.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _measure_idle(
    url: str, taskdb: Service, report: Report, name: str, count: int, opened: int
) -> None:
    """Memory of streams on which nothing happens, and what is left when they and many others have gone."""
    key = make_key(url, "tenant", "default")
    before = _resident(taskdb)
    async with _channels(taskdb.address, count) as channels:
        calls = await _open(channels, key, name, count)
        each = (_resident(taskdb) - before) / count
        await _cancel(calls)
        kept = _resident(taskdb)
        for _ in range(0, opened, ROUND):
            await _cancel(await _open(channels, key, name, ROUND), seconds=0)
    await asyncio.sleep(5)
    grown = _resident(taskdb) - kept
    words = f"memory of an idle stream, {count:,} open"
    report.add(Figure(words, each / 1000, "kB", goal="100", met=each <= 1e5))
    report.add(Figure("memory kept after they were cancelled", (kept - before) / 1e6, "MB"))
    words = f"memory grown by {opened:,} opened and cancelled"
    report.add(Figure(words, grown / 1e6, "MB", goal="20", met=grown <= 20e6))


async def _open(channels: list[grpc.aio.Channel], key: str, name: str, count: int) -> list[Any]:
    request = task_service_pb2.WatchTasksRequest(
        parent=PARENT, names=[name], bookmark_interval=Duration(seconds=60)
    )
    calls: list[Any] = []
    for start in range(0, count, 500):
        made = [
            Stub(channels[n % len(channels)]).WatchTasks(request, metadata=_metadata(key))
            for n in range(start, min(start + 500, count))
        ]
        await asyncio.gather(*(call.read() for call in made))
        calls += made
    return calls


async def _cancel(calls: list[Any], seconds: float = 5) -> None:
    """Cancel them, and give the server the time to notice."""
    for call in calls:
        call.cancel()
    await asyncio.sleep(seconds)


async def _measure_lag(
    url: str, taskdb: Service, report: Report, names: list[str], seconds: int, *, stalled: int
) -> None:
    """From the time of a change to its delivery, with streams of one task each and streams of everything."""
    key = make_key(url, "tenant", "default")
    lags: list[float] = []
    async with _channels(taskdb.address, len(names)) as channels:
        requests = [task_service_pb2.WatchTasksRequest(parent=PARENT, names=[name]) for name in names]
        requests += [task_service_pb2.WatchTasksRequest(parent=PARENT)] * EVERYTHING
        calls = [
            Stub(channels[n % len(channels)]).WatchTasks(request, metadata=_metadata(key))
            for n, request in enumerate(requests)
        ]
        async with _channels(taskdb.address, 1) as [slow]:
            sleepers = [Stub(slow).WatchTasks(requests[-1], metadata=_metadata(key)) for _ in range(stalled)]
            await asyncio.gather(*(call.read() for call in (*calls, *sleepers)))
            readers = [asyncio.create_task(_read(call, lags)) for call in calls]
            writer = multiprocessing.get_context("spawn").Process(
                target=_write, args=(url, len(names), seconds), daemon=True
            )
            expected = CHANGES_PER_SECOND * seconds * (EVERYTHING + 1)
            processor = _processor_seconds(taskdb)
            writer.start()
            await asyncio.to_thread(writer.join)
            for _ in range(300):
                # Late ones count as late, not as missing.
                if len(lags) >= expected:
                    break
                await asyncio.sleep(0.1)
            processor = _processor_seconds(taskdb) - processor
            for call in (*calls, *sleepers):
                call.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
    lags.sort()
    words = ", one reader stalled" if stalled else ""
    p99 = lags[int(len(lags) * 0.99)] * 1000
    report.add(
        Figure(
            f"watch lag p99{words}",
            p99,
            "ms",
            goal=f"250 at {(EVERYTHING + 1) * CHANGES_PER_SECOND:,} deliveries/s",
            met=p99 <= 250,
        )
    )
    report.add(Figure(f"watch lag p50{words}", lags[len(lags) // 2] * 1000, "ms"))
    report.add(Figure(f"CPU of taskdb per delivery{words}", processor / len(lags) * 1e6, "µs"))
    missing = expected - len(lags)
    report.add(Figure(f"deliveries missing{words}", missing, "of all", goal="0", met=missing == 0))


async def _read(call: Any, lags: list[float]) -> None:
    with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
        while response := await call.read():
            now = time.time()
            for event in response.events:
                lags.append(now - event.time.seconds - event.time.nanos / 1e9)


def _write(url: str, tasks: int, seconds: int) -> None:
    asyncio.run(_write_changes(url, tasks, seconds))


async def _write_changes(url: str, tasks: int, seconds: int) -> None:
    """Append changes of all tasks in turn, in fifty transactions a second, as other replicas would."""
    pool = Pool(url, PoolOptions(size=2))
    await pool.open()
    batch = CHANGES_PER_SECOND // 50
    start = time.monotonic()
    for step in range(seconds * 50):
        await asyncio.sleep(max(0.0, start + step / 50 - time.monotonic()))
        first = step * batch
        rows = [change(f"t{(first + n) % tasks}", 2 + (first + n) // tasks) for n in range(batch)]
        now = datetime.now(UTC)
        async with pool.transaction() as tx:
            await insert_changes(tx, [row._replace(time=now) for row in rows])
    await pool.close()
