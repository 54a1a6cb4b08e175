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
from urllib.parse import urlsplit

import psycopg
import pytest

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


@pytest.mark.timeout(120)
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
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
