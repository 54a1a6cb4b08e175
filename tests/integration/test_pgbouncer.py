"""taskdb behind pgbouncer in transaction mode."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client, Created, EventType, Phase, command
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.invariants import assert_invariants
from tests.harness.logged_changes import LOGGED
from tests.harness.processes import free_port
from tests.harness.taskdb_process import crashing_taskdb
from tests.harness.tcp_proxy import TcpProxy, proxy_to
from tests.integration.test_database_network import repeat, server_address

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
USER = "nobody"


@contextlib.asynccontextmanager
async def pgbouncer(url: str, proxy: TcpProxy, directory: Path) -> AsyncIterator[str]:
    """The URL of the database through a pgbouncer that has four connections to it."""
    parts = urlsplit(url)
    target = f"host=127.0.0.1 port={proxy.address.rpartition(':')[2]}"
    port = free_port()
    directory.chmod(0o755)
    users, config, log = directory / "users.txt", directory / "pgbouncer.ini", directory / "log"
    users.write_text(f'"{parts.username}" ""\n')
    config.write_text(
        f"[databases]\n* = {target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"unix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
        "default_pool_size = 4\nmax_client_conn = 200\n"
    )
    # It refuses to run as root.
    user = USER if os.geteuid() == 0 else None
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(PGBOUNCER), str(config), stdout=output, stderr=output, user=user
        )
    try:
        through = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query="").geturl()
        await asyncio.to_thread(_wait_for, through, log)
        yield through
    finally:
        process.terminate()
        await process.wait()


def _wait_for(url: str, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            with psycopg.connect(url, connect_timeout=2, prepare_threshold=None) as connection:
                connection.execute("SELECT 1")
                return
        except psycopg.OperationalError as error:
            assert time.monotonic() < deadline, f"{error}\n{log.read_text()}"
            time.sleep(0.05)


needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.mark.timeout(120)
@needs_pgbouncer
async def test_creates_are_served_through_pgbouncer_in_transaction_mode(
    database_url: str, tmp_path: Path
) -> None:
    # Below a directory that the user of pgbouncer can enter, unlike that of the test.
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as directory:
        async with (
            proxy_to(server_address(database_url)) as proxy,
            pgbouncer(database_url, proxy, Path(directory)) as pooled,
            crashing_taskdb(database_url, tmp_path) as taskdb,
        ):
            await asyncio.to_thread(
                taskdb.service.start,
                TASKYARD_DATABASE_URL=pooled,
                TASKYARD_DATABASE_DIRECT_URL=database_url,
            )
            names = await asyncio.gather(*(repeat(taskdb, f"pooled-{n}") for n in range(100)))
            assert len(set(names)) == 100
            assert await asyncio.gather(*(repeat(taskdb, f"pooled-{n}") for n in range(100))) == names
            assert await taskdb.value("SELECT count(*) FROM tasks") == 100


@contextlib.asynccontextmanager
async def pooled_suite(url: str, folder: Path) -> AsyncIterator[tuple[ControlPlane, Client]]:
    """Two taskdbs behind pgbouncer, a scheduler and a runner; LISTEN goes to PostgreSQL itself."""
    runner: RunnerProcess | None = None
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as directory:
        async with (
            proxy_to(server_address(url)) as proxy,
            pgbouncer(url, proxy, Path(directory)) as pooled,
        ):
            plane = ControlPlane(pooled, folder)
            plane.keys = await asyncio.to_thread(make_keys, url)
            try:
                for _ in range(2):
                    await asyncio.to_thread(plane.add_taskdb, "--database-direct-url", url)
                await asyncio.to_thread(plane.add_scheduler)
                address = plane.schedulers[0].address
                runner = RunnerProcess(folder / "runner", address, id="pooled", key=plane.keys["runner"])
                await runner.start()
                await runner.connected()
                # The second replica: a change gets there through PostgreSQL only.
                key, admin = plane.keys["tenant"], plane.keys["admin"]
                async with Client(plane.taskdbs[1].address, key=key, admin_key=admin) as client:
                    yield plane, client
            finally:
                if runner is not None:
                    await runner.kill()
                    runner.clean()
                await asyncio.to_thread(plane.stop)


@pytest.mark.timeout(180)
@needs_pgbouncer
async def test_the_whole_suite_works_through_pgbouncer_in_transaction_mode(
    database_url: str, tmp_path: Path
) -> None:
    async with pooled_suite(database_url, tmp_path) as (plane, client):
        watched: list[tuple[str, int]] = []

        async def watch() -> None:
            async for event in client.watch(bookmarks=True):
                if event.type is not EventType.BOOKMARK:
                    watched.append((event.task.id, event.version))
                more.set()

        more = asyncio.Event()
        watching = asyncio.create_task(watch())
        async with asyncio.timeout(150):
            await more.wait()
            # Claim, start, logs, report.
            talking = await client.create(command("sh", "-c", "for n in 1 2 3; do echo $n; done", id="talks"))
            assert [entry.message async for entry in client.logs(talking, follow=True)] == ["1", "2", "3"]
            assert (await client.wait(talking)).phase is Phase.SUCCEEDED
            failing = await client.create(command("sh", "-c", "exit 3", id="fails"))
            assert (await client.wait(failing)).exit_code == 3
            many = [created async for created in client.create_many(command("true") for _ in range(100))]
            ended = [
                task async for task in client.wait_all([one for one in many if isinstance(one, Created)])
            ]
            assert len(ended) == 100
            assert {task.phase for task in ended} == {Phase.SUCCEEDED}
            # Cancel of a running task.
            sleeping = await client.create(command("sleep", "600", id="sleeps"))
            async for event in client.watch(sleeping, snapshot=True):
                if event.phase is Phase.RUNNING:
                    break
            await client.cancel(sleeping, grace=0)
            assert (await client.wait(sleeping)).phase is Phase.CANCELLED
            report = await client.admin.doctor()
            assert report.healthy, report
            logged = await logged_changes(database_url)
            while set(watched) != logged:
                await more.wait()
                more.clear()
        watching.cancel()
        assert len(watched) == len(logged)
        # A reader that holds a transaction is ended by the server's timeout.
        assert "watch.reader_lost" not in plane.logs()
        assert "INTERNAL" not in plane.logs()
    await asyncio.to_thread(assert_invariants, database_url)


async def logged_changes(url: str) -> set[tuple[str, int]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        rows = await connection.execute(f"SELECT resource_id, version FROM {LOGGED} WHERE resource_kind = 1")
        return set(await rows.fetchall())


@pytest.mark.timeout(120)
@needs_pgbouncer
async def test_an_idle_watch_holds_no_connection_of_the_pooler(database_url: str, tmp_path: Path) -> None:
    async with pooled_suite(database_url, tmp_path) as (_, client):
        events = client.watch(bookmarks=True)
        await anext(aiter(events))
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            sql = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
            found = [await _value(connection, sql) for _ in range(50)]
        await events.aclose()
    # Statements of other parts come and go; a watch that holds its transaction is in every sample.
    assert min(found) == 0


async def _value(connection: psycopg.AsyncConnection[Any], sql: str) -> int:
    row = await (await connection.execute(sql.encode())).fetchone()
    assert row is not None
    return int(row[0])
