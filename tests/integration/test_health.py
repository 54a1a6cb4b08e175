"""Health of real processes: serving means able to serve, while liveness only means that the process runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskyard import Client, command, errors
from taskyard.v1 import admin_service_pb2 as admin
from taskyard.v1.admin_service_pb2_grpc import AdminServiceStub
from taskyard_standalone.cluster import SUPERUSER
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_taskdb.storage import migrate
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.processes import Service, free_port

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
# Two probes in a row, then two checks of the scheduler: some 8 s; the rest is for a busy machine.
NOTICE_SECONDS = 60.0
FAST = ("-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB")


@asynccontextmanager
async def own_plane(folder: Path, data: Path) -> AsyncIterator[tuple[ControlPlane, EmbeddedPostgres]]:
    """A taskdb and a scheduler over a PostgreSQL that the test may stop."""
    with DataDirectory(data) as directory:
        postgres = EmbeddedPostgres(directory, PostgresOptions(server_arguments=FAST), print)
        await postgres.start()
        plane = ControlPlane(postgres.url(), folder)
        try:
            await asyncio.to_thread(migrate.upgrade, postgres.url())
            plane.keys = make_keys(postgres.url())
            await asyncio.to_thread(plane.add_taskdb, "--metrics-listen", f"127.0.0.1:{free_port()}")
            await asyncio.to_thread(plane.add_scheduler)
            yield plane, postgres
        finally:
            await asyncio.to_thread(plane.stop)
            await postgres.stop(asyncio.Event())


def health(service: Service, name: str = "") -> int | None:
    """The status that a process reports; None if it does not answer."""
    with grpc.insecure_channel(service.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            return int(stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5).status)
        except grpc.RpcError:
            return None


async def until(condition: Callable[[], Any], seconds: float = NOTICE_SECONDS) -> float:
    """Wait for a condition; returns the seconds it took."""
    began = time.monotonic()
    while not await asyncio.to_thread(condition):
        assert time.monotonic() - began < seconds, "it never came true"
        await asyncio.sleep(0.1)
    return time.monotonic() - began


def metrics_port(service: Service) -> str:
    return service.arguments[service.arguments.index("--metrics-listen") + 1]


def page(service: Service, path: str) -> int:
    """The status of a page of the metrics endpoint."""
    try:
        with urllib.request.urlopen(f"http://{metrics_port(service)}{path}", timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def events(service: Service, name: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["event"] == name]


def cli_status(plane: ControlPlane, key: str) -> subprocess.CompletedProcess[str]:
    """What `taskyard status` prints with this key."""
    environment = {
        "TASKYARD_ADDRESS": plane.taskdbs[0].address,
        "TASKYARD_SCHEDULER": plane.schedulers[0].address,
        "TASKYARD_KEY": key,
        "HOME": "/nonexistent",
    }
    command = [sys.executable, "-m", "taskyard.cli.main", "status"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=NOTICE_SECONDS
    )


async def status_after(
    plane: ControlPlane, taskdb: Service, seconds: float
) -> subprocess.CompletedProcess[str]:
    """What `taskyard status` prints once taskdb has logged the outage for this long."""
    [lost] = events(taskdb, "database_lost")
    began = datetime.fromisoformat(lost["time"])
    await until(lambda: (datetime.now(UTC) - began).total_seconds() > seconds)
    return await asyncio.to_thread(cli_status, plane, plane.keys["admin"])


async def system_status(plane: ControlPlane) -> admin.GetSystemStatusResponse:
    async with grpc.aio.insecure_channel(plane.taskdbs[0].address) as channel:
        stub: Any = AdminServiceStub(channel)
        metadata = (("authorization", f"Bearer {plane.keys['admin']}"),)
        found: admin.GetSystemStatusResponse = await stub.GetSystemStatus(
            admin.GetSystemStatusRequest(), metadata=metadata, timeout=20
        )
        return found


@pytest.mark.timeout(240)
async def test_taskdb_and_scheduler_do_not_serve_while_postgresql_is_away(tmp_path: Path) -> None:
    async with own_plane(tmp_path, tmp_path / "data") as (plane, postgres):
        taskdb, scheduler = plane.taskdbs[0], plane.schedulers[0]
        assert health(taskdb) == SERVING == health(scheduler)
        assert page(taskdb, "/ready") == 200
        await postgres.stop(asyncio.Event())
        await until(lambda: health(taskdb) == NOT_SERVING)
        await until(lambda: health(scheduler) == NOT_SERVING)
        assert page(taskdb, "/ready") == 503
        assert page(taskdb, "/live") == 200 and page(taskdb, "/nowhere") == 404
        assert health(taskdb, "liveness") == SERVING == health(scheduler, "liveness")
        # It takes several rounds of every loop, in which the outage stays one line.
        shown = await status_after(plane, taskdb, seconds=3)
        assert shown.returncode == 3 and re.search(r"taskdb +\S+ +not serving", shown.stdout)
        found = re.fullmatch(
            r"taskyard: work cannot proceed; the database cannot be reached, for (\d+) s now;"
            r" is PostgreSQL running\?\n",
            shown.stderr,
        )
        assert found and int(found[1]) >= 3, shown.stderr
        await postgres.start()
        await until(lambda: health(taskdb) == SERVING and health(scheduler) == SERVING)
        assert page(taskdb, "/ready") == 200

        [lost] = events(taskdb, "database_lost")
        assert lost["level"] == "error" and "cannot be reached" in lost["problem"]
        [restored] = events(taskdb, "database_restored")
        assert restored["outage_seconds"] >= 3
        during = [
            line["event"]
            for line in map(json.loads, taskdb.log.read_text().splitlines())
            if lost["time"] <= line["time"] <= restored["time"]
        ]
        assert len(during) <= 6, f"an outage is few lines, not {during}"


@pytest.mark.timeout(240)
async def test_calls_are_repeated_after_an_outage_although_health_is_not_serving(tmp_path: Path) -> None:
    async with own_plane(tmp_path, tmp_path / "data") as (plane, postgres):
        two = f"{plane.taskdbs[0].address},127.0.0.1:{free_port()}"
        async with Client(two, key=plane.keys["tenant"], tenant="default") as client:
            await client.create(command("true"))
            await postgres.stop(asyncio.Event())
            await until(lambda: health(plane.taskdbs[0]) == NOT_SERVING)
            await postgres.start()
            async with asyncio.timeout(NOTICE_SECONDS):
                while True:
                    try:
                        await client.create(command("true", id="after"))
                        break
                    except errors.Unavailable:
                        continue
            assert (await client.get("after")).id == "after"


@pytest.mark.timeout(240)
async def test_a_read_only_database_is_not_serving_and_is_named(tmp_path: Path) -> None:
    async with own_plane(tmp_path, tmp_path / "data") as (plane, postgres):
        taskdb = plane.taskdbs[0]
        set_read_only(postgres.url(role=SUPERUSER), True)
        await until(lambda: health(taskdb) == NOT_SERVING)
        found = await system_status(plane)
        assert found.database.state == admin.DATABASE_STATE_READ_ONLY and not found.operational
        assert "the database is read-only; point taskdb to the primary" in found.problems
        shown = await asyncio.to_thread(cli_status, plane, plane.keys["admin"])
        assert shown.returncode == 3 and "database  read only, PostgreSQL" in shown.stdout
        assert "taskyard: the database is read-only; point taskdb to the primary\n" in shown.stderr
        # With another key only the servers themselves are shown.
        shown = await asyncio.to_thread(cli_status, plane, plane.keys["tenant"])
        assert shown.returncode == 3 and "database" not in shown.stdout
        assert shown.stderr == (
            "taskyard: work cannot proceed; the log of a service that does not serve has the reason\n"
        )
        set_read_only(postgres.url(role=SUPERUSER), False)
        await until(lambda: health(taskdb) == SERVING)
        assert (await system_status(plane)).database.state == admin.DATABASE_STATE_WRITABLE


def set_read_only(url: str, on: bool) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if on else 'off'}")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.getuid() != 0:
        pytest.skip("is about what root does")
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=192m,mode=0755", "none", str(mounted))
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this environment does not let root mount")
    yield mounted
    subprocess.run(("umount", "--lazy", str(mounted)), check=True)


def fill(disk: Path) -> Path:
    """Leave no byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


@pytest.mark.timeout(240)
async def test_a_full_disk_is_noticed_and_so_is_the_room_that_was_made(
    tmp_path: Path, small_disk: Path
) -> None:
    async with own_plane(tmp_path, small_disk / "data") as (plane, _):
        taskdb = plane.taskdbs[0]
        async with plane.client() as client:
            await client.create(command("true", id="before"))
            filler = await asyncio.to_thread(fill, small_disk)
            await until(lambda: health(taskdb) == NOT_SERVING)
            await until(lambda: health(plane.schedulers[0]) == NOT_SERVING)
            found = await system_status(plane)
            assert found.database.state == admin.DATABASE_STATE_DISK_FULL and not found.operational
            assert "the disk of the database is full; make room on it" in found.problems
            assert found.database.disk_free_bytes < 1 << 20
            assert (await client.get("before")).id == "before", "what is stored can be read"
            filler.unlink()
            await until(lambda: health(taskdb) == SERVING and health(plane.schedulers[0]) == SERVING)
            await client.create(command("true", id="after"))
            assert (await system_status(plane)).database.disk_free_bytes > 1 << 20


@pytest.mark.timeout(240)
async def test_the_scheduler_does_not_serve_while_taskdb_is_away(tmp_path: Path) -> None:
    async with own_plane(tmp_path, tmp_path / "data") as (plane, _):
        scheduler = plane.schedulers[0]
        plane.taskdbs[0].kill()
        await until(lambda: health(scheduler) == NOT_SERVING)
        assert health(scheduler, "liveness") == SERVING
        await asyncio.to_thread(plane.taskdbs[0].start)
        await until(lambda: health(scheduler) == SERVING)
        [not_serving] = events(scheduler, "not_serving")
        assert not_serving["problem"].startswith("taskdb does not serve")
