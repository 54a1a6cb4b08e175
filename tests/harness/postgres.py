"""A PostgreSQL server for a test session, and a fresh database for each test, cloned from a template."""

import asyncio
import contextlib
import inspect
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import DataDirectoryError
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions

# Test data need not survive a power failure, and the kernel copies the template; everything else is as in
# production.
_FAST = (
    *("-c", "fsync=off"),
    *("-c", "full_page_writes=off"),
    *("-c", "shared_buffers=64MB"),
    *("-c", "file_copy_method=clone"),
)
_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
_PREFIX = "taskyard-postgres-"
EXISTING_SERVER = "TASKYARD_TEST_DATABASE_URL"


@dataclass(frozen=True)
class PostgresServer:
    """A running server: `url` names the role of tests, `admin_url` one that may end any backend."""

    url: str
    admin_url: str

    def database_url(self, name: str) -> str:
        """The URL of the database `name` on this server."""
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    def create(self, template: str | None = None) -> str:
        """Creates a database, empty or as a copy of `template`, and returns its name."""
        name = f"test_{secrets.token_hex(6)}"
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            # FILE_COPY is the faster strategy for a small template when nothing is synced.
            statement += sql.SQL(" TEMPLATE {} STRATEGY FILE_COPY").format(sql.Identifier(template))
        self._execute(statement)
        return name

    def drop(self, name: str) -> None:
        """Drops a database, ending all its connections, autovacuum included."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(statement)

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """The URL of a database that exists inside the with block."""
        name = self.create(template)
        try:
            yield self.database_url(name)
        finally:
            self.drop(name)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """A folder for a server, in memory if there is room: a test's database is 600 short-lived files.

    A session that was killed leaves its folder behind; the next one removes it.
    """
    in_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    if in_memory:
        for left in _MEMORY.glob(f"{_PREFIX}*/data"):
            # One whose session has only begun may not be locked yet.
            if time.time() - left.parent.stat().st_ctime > 60:
                with contextlib.suppress(DataDirectoryError), DataDirectory(left):
                    shutil.rmtree(left.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=_PREFIX, dir=_MEMORY if in_memory else None, ignore_cleanup_errors=True
    ) as name:
        # The server has a user of its own.
        os.chmod(name, 0o711)
        yield Path(name) / "data"


@contextlib.contextmanager
def postgres_server(directory: Path, arguments: tuple[str, ...] = _FAST) -> Iterator[PostgresServer]:
    """The server named by TASKYARD_TEST_DATABASE_URL, or an embedded one in `directory`.

    Must be entered on the main thread, which the embedded server's life is tied to.
    """
    if existing := os.environ.get(EXISTING_SERVER):
        yield PostgresServer(existing, existing)
        return
    with DataDirectory(directory) as data:
        postgres = EmbeddedPostgres(data, PostgresOptions(server_arguments=arguments), print)
        try:
            _run(postgres.start())
            with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
                connection.execute("ALTER ROLE taskyard CREATEDB")
            yield PostgresServer(postgres.url(), postgres.url("postgres", "postgres"))
        finally:
            _run(postgres.stop(asyncio.Event()))


@contextlib.contextmanager
def migrated_template(server: PostgresServer, migrate: Callable[[str], Any]) -> Iterator[str]:
    """The name of a database that `migrate` has brought to the current schema."""
    name = server.create()
    try:
        outcome = migrate(server.database_url(name))
        if inspect.iscoroutine(outcome):
            _run(outcome)
        yield name
    finally:
        server.drop(name)


def _run(work: Coroutine[Any, Any, None]) -> None:
    # A loop of its own: asyncio.run would take away the current loop of pytest-asyncio.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()
