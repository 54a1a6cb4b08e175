"""No-op tasks through WorkService, per worker library: a backlog drained by one worker of each language."""

import asyncio
import time
from pathlib import Path

from taskyard import Client, function
from tests.acceptance.suite import client_environment
from tests.bench.database import migrated
from tests.bench.functions import until_empty
from tests.bench.measure import Figure, Report, median
from tests.conformance.driver import Driver
from tests.conformance.languages import LANGUAGES, Language
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.postgres import PostgresServer

CONCURRENCY = 200


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Every language whose toolchain is installed and whose client has a worker."""
    count = 1000 if quick else 10_000
    for language in LANGUAGES:
        if language.missing():
            print(f"{language.name}: skipped, its toolchain is not installed")
            continue
        await asyncio.to_thread(language.prepare)
        folder = directory / f"worker-{language.name}"
        rates = [
            rate
            for n in range(1 if quick else 3)
            if (rate := await _drain(server, folder, language, count, n))
        ]
        if rates:
            name = f"no-op tasks, one worker in {language.name}, end to end"
            report.add(Figure(name, median(rates), "tasks/s", tuple(rates)))


async def _drain(server: PostgresServer, folder: Path, language: Language, count: int, number: int) -> float:
    """Tasks per second of one drain; 0 if the client has no worker."""
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
            if "worker" not in (await driver.send("hello", {}))["ok"]["features"]:
                return 0.0
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
