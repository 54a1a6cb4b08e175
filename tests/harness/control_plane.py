"""A control plane of real processes for tests: PostgreSQL, any number of taskdbs and schedulers, and keys."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskyard import Client
from tests.harness.link_runner import LinkRunner
from tests.harness.postgres import PostgresServer
from tests.harness.processes import Service, free_port

DATABASE = "TASKYARD_DATABASE_URL"


@dataclass
class ControlPlane:
    """The running services; `url` is their database, `keys` holds one key of each kind."""

    url: str
    folder: Path
    keys: dict[str, str] = field(default_factory=dict)
    taskdbs: list[Service] = field(default_factory=list)
    schedulers: list[Service] = field(default_factory=list)

    def make_key(self, kind: str) -> str:
        """A new key in the database."""
        extra = ("--tenant", "default") if kind == "tenant" else ()
        made = subprocess.run(
            [sys.executable, "-m", "taskyard_taskdb", "keys", "create", "--kind", kind, *extra],
            env={DATABASE: self.url},
            check=True,
            capture_output=True,
            text=True,
        )
        return made.stdout.strip()

    def add_taskdb(self, failpoints: str = "") -> Service:
        """Start one more taskdb."""
        service = self._service("taskyard_taskdb", f"taskdb-{len(self.taskdbs)}", {DATABASE: self.url})
        self.taskdbs.append(service.start(TASKYARD_FAILPOINTS=failpoints))
        return service

    def add_scheduler(self, taskdb: str = "", *flags: str, failpoints: str = "") -> Service:
        """Start one more scheduler; in front of the first taskdb unless an address is given."""
        arguments = ("--taskdb", taskdb or self.taskdbs[0].address, *flags)
        name = f"scheduler-{len(self.schedulers)}"
        key = {"TASKYARD_KEY": self.keys["scheduler"]}
        service = self._service("taskyard_scheduler", name, key, *arguments)
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
        return "\n".join(service.told() for service in (*self.taskdbs, *self.schedulers))

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
    flags: tuple[str, ...] = (),
) -> Iterator[ControlPlane]:
    """Services over a fresh database; scheduler n is in front of taskdb n, modulo their number."""
    with server.database(template) as url, tempfile.TemporaryDirectory(prefix="taskyard-test-") as folder:
        plane = ControlPlane(url, Path(folder))
        plane.keys = {kind: plane.make_key(kind) for kind in ("tenant", "admin", "scheduler", "runner")}
        try:
            for _ in range(taskdbs):
                plane.add_taskdb()
            for n in range(schedulers):
                plane.add_scheduler(plane.taskdbs[n % taskdbs].address, *flags)
            yield plane
        finally:
            plane.stop()
