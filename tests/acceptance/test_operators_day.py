"""An operator's day: two of each service on one PostgreSQL, a rolling restart under load, a dead runner."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, Phase, command
from tests.acceptance.suite import BIN, client_environment
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.processes import Service

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# A session lives for 30 s; the rest is for a busy machine.
NOTICE_SECONDS = 60.0


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, taskdbs=2, schedulers=2) as running:
        both = ",".join(service.address for service in running.taskdbs)
        for scheduler in running.schedulers:
            # Each scheduler knows both replicas.
            place = scheduler.arguments.index("--taskdb") + 1
            scheduler.terminate()
            scheduler.arguments = (*scheduler.arguments[:place], both, *scheduler.arguments[place + 1 :])
            scheduler.start()
        yield running


class Operator:
    """The command line with an administrator's key, and runners."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.address = ",".join(service.address for service in plane.taskdbs)
        self.scheduler = ",".join(service.address for service in plane.schedulers)
        self.runners: list[subprocess.Popen[bytes]] = []

    def start_runner(self, name: str) -> subprocess.Popen[bytes]:
        flags = ("--scheduler", self.scheduler, "--id", name, "--capacity", "4", "--log-format", "json")
        with (self.folder / f"{name}.log").open("wb") as log:
            runner = subprocess.Popen(
                [BIN / "taskyard-runner", *flags, "--data-dir", str(self.folder / name)],
                env={**client_environment(), "TASKYARD_KEY": self.plane.keys["runner"]},
                stdout=log,
                stderr=log,
            )
        self.runners.append(runner)
        return runner

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "TASKYARD_ADDRESS": self.address,
            "TASKYARD_SCHEDULER": self.scheduler,
            "TASKYARD_KEY": self.plane.keys["tenant"],
            "TASKYARD_ADMIN_KEY": self.plane.keys["admin"],
            "TASKYARD_TENANT": "default",
        }
        return subprocess.run(
            [BIN / "taskyard", *arguments],
            env={**client_environment(), **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def until_status(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Wait until `status` shows all of these words."""
        deadline = time.monotonic() + NOTICE_SECONDS
        while True:
            shown = self.cli("status")
            if all(word in shown.stdout + shown.stderr for word in words):
                return shown
            assert time.monotonic() < deadline, f"{words}\n{shown.stdout}{shown.stderr}\n{self.plane.logs()}"

    def stop(self) -> None:
        for runner in self.runners:
            if runner.poll() is None:
                runner.kill()
                runner.wait()


@pytest.fixture
def operator(plane: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(plane, tmp_path)
    yield made
    made.stop()


async def restart(service: Service) -> None:
    """As the page says: SIGTERM, wait for its end, start it, wait until it serves."""
    assert await asyncio.to_thread(service.terminate, 60) == 0
    await asyncio.to_thread(service.start)


class Load:
    """Creates and reads without a pause, and keeps every error."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.created: list[str] = []
        self.errors: list[BaseException] = []
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        while not self.stopped.is_set():
            try:
                made = await self._client.create(command("true"))
                await self._client.get(made.id)
                self.created.append(made.id)
            except Exception as error:
                self.errors.append(error)


@pytest.mark.timeout(400)
async def test_a_rolling_restart_under_load_fails_no_call_and_loses_no_task(operator: Operator) -> None:
    for name in ("worker-1", "worker-2"):
        operator.start_runner(name)
    await asyncio.to_thread(operator.until_status, "2 healthy")
    async with Client(operator.address, key=operator.plane.keys["tenant"], tenant="default") as client:
        loads = [Load(client) for _ in range(3)]
        running = [asyncio.create_task(load.run()) for load in loads]
        for service in (*operator.plane.taskdbs, *operator.plane.schedulers):
            before = sum(len(load.created) for load in loads)
            await restart(service)
            async with asyncio.timeout(60):
                while sum(len(load.created) for load in loads) < before + 20:  # noqa: ASYNC110 (a count)
                    await asyncio.sleep(0.05)
        for load in loads:
            load.stopped.set()
        await asyncio.gather(*running)
        assert [error for load in loads for error in load.errors] == []
        created = [task for load in loads for task in load.created]
        for task in created[-20:]:
            assert (await client.wait(task, timeout=60)).phase is Phase.SUCCEEDED
    shown = operator.cli("status")
    assert shown.returncode == 0, shown.stdout + shown.stderr


@pytest.mark.timeout(400)
def test_status_shows_a_dead_runner_within_a_minute_and_fails_when_none_is_left(operator: Operator) -> None:
    first, second = operator.start_runner("worker-1"), operator.start_runner("worker-2")
    shown = operator.until_status("2 healthy")
    assert shown.returncode == 0 and shown.stdout.count("serving") == 4
    for line in ("database ", "leader ", "runners ", "waiting "):
        assert f"\n{line}" in shown.stdout
    assert "writable" in shown.stdout

    second.terminate()
    second.wait(60)
    shown = operator.until_status("1 stopped")
    assert shown.returncode == 0 and "dead" not in shown.stdout, "a runner that ended by itself is not dead"

    first.kill()
    first.wait()
    shown = operator.until_status("1 dead", "worker-1")
    assert shown.returncode == 1
    assert "no runner is healthy (1 dead), so that no task starts" in shown.stderr
    found = json.loads(operator.cli("status", "-o", "json").stdout)
    assert found["runners"]["deadExamples"] == ["runners/worker-1"]
    assert found.get("operational", False) is False
    listed = operator.cli("runners").stdout
    assert "stopped" in listed and "dead" in listed


@pytest.mark.timeout(200)
def test_status_names_a_replica_that_is_away_and_a_suite_that_does_not_serve(operator: Operator) -> None:
    operator.start_runner("worker-1")
    operator.until_status("1 healthy")
    operator.plane.taskdbs[1].kill()
    shown = operator.cli("status")
    assert shown.returncode == 0 and "not reachable" in shown.stdout
    operator.plane.taskdbs[0].kill()
    shown = operator.cli("status")
    assert shown.returncode == 3 and shown.stdout.count("not reachable") >= 2


@pytest.mark.timeout(200)
def test_a_support_bundle_has_what_support_needs_and_no_secret(operator: Operator, tmp_path: Path) -> None:
    operator.start_runner("worker-1")
    operator.until_status("1 healthy")
    canary = "canary-" + os.urandom(8).hex()
    log = tmp_path / "own.log"
    key = operator.plane.keys["runner"]
    log.write_text(
        f"connected to postgresql://taskyard:{canary}@db/taskyard\n"
        f'authorization: Bearer {canary}{canary}\npassword={canary}\n{{"token": "{canary}"}}\n'
        f"key {key}\nwhsec_{canary.replace('-', '')}\nan ordinary line\n"
    )
    logs = [str(service.log) for service in operator.plane.taskdbs]
    flags = [flag for path in (str(log), *logs) for flag in ("--log", path)]
    made = operator.cli("support-bundle", "--to", "bundle.tar.gz", *flags)
    assert made.returncode == 0, made.stderr
    bundle = tmp_path / "bundle.tar.gz"
    assert bundle.stat().st_mode & 0o077 == 0
    with tarfile.open(bundle) as archive:
        files = {
            member.name.removeprefix("taskyard-support/"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive
        }
    for name in (
        "versions.json",
        "configuration.json",
        "health.json",
        "status.json",
        "doctor.json",
        "runners.json",
    ):
        json.loads(files[name])
    assert "an ordinary line" in "".join(text for name, text in files.items() if name.endswith("own.log"))
    assert any('"serving"' in text for name, text in files.items() if name.startswith("logs/"))
    everything = "".join(files.values())
    for secret in (canary, canary.replace("-", ""), *operator.plane.keys.values()):
        assert secret not in everything
