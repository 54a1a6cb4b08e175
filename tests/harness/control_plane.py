"""A control plane of real processes for tests: PostgreSQL, any number of taskdbs and schedulers, and keys."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskyard import Client
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.keys import insert_key
from tests.harness.link_runner import LinkRunner
from tests.harness.postgres import PostgresServer
from tests.harness.processes import Service, free_port

DATABASE = "TASKYARD_DATABASE_URL"
KINDS = {
    "tenant": api_keys.TENANT,
    "admin": api_keys.ADMIN,
    "scheduler": api_keys.SCHEDULER,
    "runner": api_keys.RUNNER,
}


@dataclass
class ControlPlane:
    """The running services; `url` is their database, `keys` holds one key of each kind."""

    url: str
    folder: Path
    keys: dict[str, str] = field(default_factory=dict)
    taskdbs: list[Service] = field(default_factory=list)
    schedulers: list[Service] = field(default_factory=list)

    def add_taskdb(self, *flags: str, failpoints: str = "", **environment: str) -> Service:
        """Start one more taskdb."""
        name = f"taskdb-{len(self.taskdbs)}"
        service = self._service("taskyard_taskdb", name, {DATABASE: self.url, **environment}, *flags)
        self.taskdbs.append(service.start(TASKYARD_FAILPOINTS=failpoints))
        return service

    def add_scheduler(
        self, taskdb: str = "", *flags: str, failpoints: str = "", **environment: str
    ) -> Service:
        """Start one more scheduler; in front of the first taskdb unless an address is given."""
        arguments = ("--taskdb", taskdb or self.taskdbs[0].address, *flags)
        name = f"scheduler-{len(self.schedulers)}"
        environment["TASKYARD_KEY"] = self.keys["scheduler"]
        service = self._service("taskyard_scheduler", name, environment, *arguments)
        self.schedulers.append(service.start(TASKYARD_FAILPOINTS=failpoints))
        return service

    def _service(self, module: str, name: str, environment: Mapping[str, str], *arguments: str) -> Service:
        port = free_port()
        listen = ("serve", "--listen", f"127.0.0.1:{port}", "--log-format", "json")
        return Service(module, (*listen, *arguments), port, self.folder / f"{name}.log", environment)

    def client(self) -> Client:
        """A client that acts for the tenant "default"."""
        return Client(self.taskdbs[0].address, key=self.keys["tenant"], tenant="default")

    def runner(self, runner_id: str, scheduler: str = "", **options: Any) -> LinkRunner:
        """A test runner, not connected yet."""
        address = scheduler or self.schedulers[0].address
        return LinkRunner(address, self.keys["runner"], runner_id, **options)

    def logs(self) -> str:
        """What every service has printed."""
        return "\n".join(service.log_text() for service in (*self.taskdbs, *self.schedulers))

    def stop(self) -> None:
        for service in (*self.schedulers, *self.taskdbs):
            service.stop()


@contextlib.contextmanager
def control_plane(
    server: PostgresServer,
    template: str,
    *,
    taskdbs: int = 1,
    schedulers: int = 1,
    taskdb_flags: tuple[str, ...] = (),
    scheduler_flags: tuple[str, ...] = (),
) -> Iterator[ControlPlane]:
    """Services over a fresh database; scheduler n is in front of taskdb n, modulo their number."""
    with server.database(template) as url, tempfile.TemporaryDirectory(prefix="taskyard-test-") as folder:
        plane = ControlPlane(url, Path(folder))
        plane.keys = make_keys(url)
        try:
            for _ in range(taskdbs):
                plane.add_taskdb(*taskdb_flags)
            for n in range(schedulers):
                plane.add_scheduler(plane.taskdbs[n % taskdbs].address, *scheduler_flags)
            yield plane
        finally:
            plane.stop()


def make_keys(url: str) -> dict[str, str]:
    """One key of each kind. The caller's thread may have an event loop running, so this takes another."""

    async def insert() -> dict[str, str]:
        return {name: (await insert_key(url, kind)).text for name, kind in KINDS.items()}

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(insert())).result()
