"""No-op tasks per worker library: a backlog drained by one worker of each language.

Go and TypeScript claim through WorkService; a function in Python is served by a runner, over its link.
"""

import asyncio
import time
from pathlib import Path

from taskyard import Client, function
from tests.acceptance.suite import client_environment
from tests.bench.database import migrated
from tests.bench.functions import end_to_end, until_empty
from tests.bench.measure import Figure, Report, median
from tests.conformance.driver import Driver
from tests.conformance.languages import LANGUAGES, Language
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.postgres import PostgresServer

CONCURRENCY = 200
# The clients with a worker loop.
WITH_WORKERS = ("go", "typescript")


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Every language whose toolchain is installed and whose client has a worker."""
    count, runs = (1000, 1) if quick else (10_000, 3)
    rates = [(await end_to_end(server, directory / f"worker-python-{n}", count))[0] for n in range(runs)]
    _add(report, "python", rates)
    for language in LANGUAGES:
        if language.name not in WITH_WORKERS:
            continue
        if missing := language.missing():
            print(f"{language.name}: skipped, `{missing}` fails")
            continue
        await asyncio.to_thread(language.prepare)
        folder = directory / f"worker-{language.name}"
        _add(report, language.name, [await _drain(server, folder, language, count, n) for n in range(runs)])


def _add(report: Report, language: str, rates: list[float]) -> None:
    name = f"no-op tasks, one worker in {language}, end to end"
    report.add(Figure(name, median(rates), "tasks/s", tuple(rates)))


async def _drain(server: PostgresServer, folder: Path, language: Language, count: int, number: int) -> float:
    """Tasks per second of one drain."""
    folder = folder / str(number)
    folder.mkdir(parents=True)
    with migrated(server) as url:
        plane = ControlPlane(url, folder)
        plane.keys = make_keys(url)
        plane.add_taskdb()
        plane.add_scheduler()
        environment = {**client_environment(), "HOME": str(folder)}
        driver = await Driver.start(language.command, folder, environment, folder / "driver.log")
        try:
            async with plane.client() as client:
                await _create(client, count)
            servers = {"address": plane.taskdbs[0].address, "scheduler": plane.schedulers[0].address}
            await driver.send("connect", {**servers, "key": plane.keys["runner"]})
            start = time.perf_counter()
            worker = {"worker": "w", "worker_id": "bench", "concurrency": CONCURRENCY}
            started = await driver.send("worker_start", {**worker, "lease_seconds": 60, "grace": 5})
            assert "ok" in started, started
            await until_empty(url)
            rate = count / (time.perf_counter() - start)
            await driver.send("worker_stop", {"worker": "w"})
            return rate
        finally:
            await driver.stop()
            plane.stop()


async def _create(client: Client, count: int) -> None:
    async for created in client.create_many(function("conf.echo", {}) for _ in range(count)):
        if isinstance(created, Exception):
            raise created
