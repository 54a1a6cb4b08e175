"""Memory of a taskdb process under a steady load of creates, claims and reports: flat once it is warm."""

import asyncio
import time
from pathlib import Path

from tests.bench import cpu
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import BATCH, Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process

PER_SECOND = 2000
SECONDS, WARM_UP = 300.0, 60.0
QUICK_SECONDS, QUICK_WARM_UP = 20.0, 8.0
ALLOWED = 0.1
MIB = 1 << 20


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Sample the resident memory every second while tasks come and go at a bounded rate."""
    seconds, warm_up = (QUICK_SECONDS, QUICK_WARM_UP) if quick else (SECONDS, WARM_UP)
    with migrated(server) as url, taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])
        working = asyncio.create_task(_work(load, epoch, seconds))
        samples = await _sample(taskdb.pid, working)
        done = working.result()
        await load.channel.close()
    warm = [size for when, size in samples if when >= warm_up]
    middle = median(warm)
    swing = max(max(warm) / middle - 1, 1 - min(warm) / middle)
    report.add(Figure("memory of taskdb, load", done / seconds, "tasks/s"))
    report.add(Figure("memory of taskdb, before", samples[0][1], "MiB"))
    report.add(
        Figure(
            "memory of taskdb under load",
            middle,
            "MiB",
            tuple(warm),
            1 + swing,
            "median at most, after warm-up",
            f"{1 + ALLOWED:g}",
            swing <= ALLOWED,
        )
    )


async def _work(load: Load, epoch: int, seconds: float) -> int:
    """Create a batch and run it, again and again at the bounded rate; returns how many tasks there were."""
    start, done = time.monotonic(), 0
    while time.monotonic() < start + seconds:
        await asyncio.sleep(max(0.0, start + done / PER_SECOND - time.monotonic()))
        await load.batch_creates(BATCH, in_flight=1)
        ended, _, _ = await load.drain(epoch, BATCH)
        assert ended >= BATCH, ended
        done += BATCH
    return done


async def _sample(pid: int, working: asyncio.Task[int]) -> list[tuple[float, float]]:
    """Seconds since the start and mebibytes, until the work is done."""
    start, samples = time.monotonic(), [(0.0, cpu.resident_bytes(pid) / MIB)]
    while not working.done():
        await asyncio.wait([working], timeout=1.0)
        samples.append((time.monotonic() - start, cpu.resident_bytes(pid) / MIB))
        if len(samples) % 10 == 0:
            print(f"  after {samples[-1][0]:.0f} s: {samples[-1][1]:.1f} MiB", flush=True)
    return samples
