"""The embedded PostgreSQL: prepared, started, proved to be our own, and stopped.

It listens on a unix socket inside its own data directory, which only its user can enter, and nowhere else.
"""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from taskyard_standalone.account import server_account
from taskyard_standalone.binaries import binaries_for
from taskyard_standalone.cluster import SUPERUSER, Cluster, explain, server_environment
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import Killed, PostgresError
from taskyard_standalone.process import Child, Program, describe_end
from taskyard_standalone.socket_path import PORT, SocketDirectory
from taskyard_standalone.supervision import Announce, wait_unless_hurried

DATABASE = "taskyard"
ROLE = "taskyard"
_POLL_SECONDS = 0.02
_STOP_SECONDS = 60.0
_IMMEDIATE_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class PostgresOptions:
    """What differs from the defaults; `server_arguments` go to the postgres program as they are."""

    user: str | None = None
    server_arguments: tuple[str, ...] = ()
    caches: tuple[Path, ...] | None = None
    # How long a server that outlived its supervisor may take to end by itself before it gets SIGINT.
    predecessor_seconds: float = 30.0
    progress_seconds: float = 5.0


class EmbeddedPostgres:
    """A supervised server on the cluster of one data directory."""

    name = "postgresql"

    def __init__(self, data: DataDirectory, options: PostgresOptions, announce: Announce) -> None:
        self._options = options
        self._announce = announce
        self._cluster_path = data.cluster
        self._log = data.log(self.name)
        self._socket = SocketDirectory(data.cluster, data.path / "socket-link")
        self._host: Path | None = None
        self._child: Child | None = None
        self.version = ""
        self.ready = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, once it was started."""
        return self._child.pid if self._child else None

    def url(self, database: str = DATABASE, role: str = ROLE) -> str:
        """A URL for psycopg, SQLAlchemy and psql; it holds no secret."""
        host = quote(str(self._host), safe="")
        return f"postgresql://{quote(role)}@/{quote(database)}?host={host}&port={PORT}"

    async def start(self) -> None:
        """Returns once our own server accepts connections and has our database.

        A crash recovery may take as long as it needs. Raises PostgresError.
        """
        try:
            cluster, program = await self._prepare()
            self._host = self._socket.acquire()
            written = self._log.size()
            self._child = Child.start(program, self._log)
            await self._wait_until_ready(cluster, self._child, written)
            await self.verify()
        except OSError as error:
            raise PostgresError(
                explain([str(error)], self._cluster_path, f"cannot start PostgreSQL on {self._cluster_path}")
            ) from error
        self.ready.set()

    async def verify(self) -> None:
        """Makes sure that the server on the socket is ours and has our database; raises PostgresError."""
        cluster = Cluster(self._cluster_path, None)
        try:
            url = self.url("postgres", SUPERUSER)
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await _verify_own(connection, cluster, self.pid)
                await _ensure_database(connection)
        except psycopg.Error as error:
            raise PostgresError(f"cannot use the PostgreSQL of {cluster.path}: {_one_line(error)}") from error

    async def ended(self) -> str:
        """Returns, in words, how the server ended once it has."""
        assert self._child is not None
        code = await self._child.wait()
        self.ready.clear()
        return describe_end(code)

    def awaits(self) -> str:
        """Nothing that a user knows of."""
        return ""

    async def stop(self, hurry: asyncio.Event) -> None:
        """A fast shutdown; when hurried an immediate one, which the next start recovers from."""
        self.ready.clear()
        child = self._child
        if child is not None and child.code is None:
            child.send(signal.SIGINT)
            if not await wait_unless_hurried(child, _STOP_SECONDS, hurry):
                child.send(signal.SIGQUIT)
                if not await child.wait_at_most(_IMMEDIATE_STOP_SECONDS):
                    await child.kill()
        self._child = None
        self._socket.release()

    async def _prepare(self) -> tuple[Cluster, Program]:
        cluster = Cluster(self._cluster_path, server_account(self._cluster_path, self._options.user))
        binaries = binaries_for(cluster.account, self._options.caches)
        self.version = binaries.version()
        if not cluster.exists():
            await cluster.initialise(binaries)
        await self._wait_for_predecessor(cluster)
        cluster.remove_stale_lock()
        argv = [
            str(binaries.postgres),
            *("-D", cluster.directory_argument()),
            # Relative to the cluster, so the server never meets the length limit of socket addresses.
            *("-k", "."),
            *("-p", str(PORT)),
            *("-c", "listen_addresses="),
            *("-c", "cluster_name=taskyard"),
            *self._options.server_arguments,
        ]
        # A fast shutdown when the supervisor dies: transactions end, the log is flushed.
        program = Program(tuple(argv), server_environment(), cluster.path, cluster.account, signal.SIGINT)
        return cluster, program

    async def _wait_for_predecessor(self, cluster: Cluster) -> None:
        """Waits for servers that lost their supervisor; PDEATHSIG has already signalled them.

        Such a server has no other owner, because we hold the lock of the data directory. It is signalled once
        more, and never killed: a shutdown that takes long is writing data.
        """
        began = time.monotonic()
        terminated = announced = False
        while processes := cluster.processes():
            waited = time.monotonic() - began
            if waited > 0.5 and not announced:
                self._announce(f"waiting for PostgreSQL of an earlier run to end (pid {processes[0]})")
                announced = True
            if waited > self._options.predecessor_seconds and not terminated:
                postmaster, _ = cluster.status()
                if postmaster in processes:
                    os.kill(postmaster, signal.SIGINT)
                terminated = True
            if waited > 2 * self._options.predecessor_seconds:
                raise PostgresError(
                    f"PostgreSQL process {processes[0]} still uses {cluster.path}: end it and start again"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _wait_until_ready(self, cluster: Cluster, child: Child, written: int) -> None:
        began = reported = time.monotonic()
        while cluster.status() != (child.pid, "ready"):
            if child.code is not None:
                if child.code == -signal.SIGKILL:
                    raise Killed(f"PostgreSQL ended with {describe_end(child.code)}")
                lines = self._log.lines(written)
                raise PostgresError(explain(lines, cluster.path, "PostgreSQL did not start"))
            now = time.monotonic()
            if now - reported > self._options.progress_seconds:
                reported = now
                self._announce(
                    f"PostgreSQL is still starting after {now - began:.0f} s: {self._last_event(written)}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    def _last_event(self, written: int) -> str:
        lines = self._log.lines(written)
        return lines[-1].partition("LOG:")[2].strip() or lines[-1] if lines else "nothing logged yet"


async def _verify_own(connection: psycopg.AsyncConnection, cluster: Cluster, pid: int | None) -> None:
    """Raises PostgresError unless the server behind `connection` is process `pid`, serving `cluster`.

    The kernel names the process that listens; the identifier names the data it serves.
    """
    listener = _listener(connection.fileno())
    if listener != pid:
        raise PostgresError(
            f"process {listener} answers on the socket in {cluster.path} instead of our PostgreSQL ({pid}):"
            " stop it and start again"
        )
    cursor = await connection.execute("SELECT system_identifier FROM pg_control_system()")
    row = await cursor.fetchone()
    if row is None or row[0] != cluster.system_identifier():
        raise PostgresError(f"the server in {cluster.path} serves another cluster: stop it and start again")


def _listener(descriptor: int) -> int:
    """The process that listens at the other end of a connected unix socket."""
    size = struct.calcsize("3i")
    with contextlib.closing(socket.socket(fileno=os.dup(descriptor))) as peer:
        pid, _, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(pid)


async def _ensure_database(connection: psycopg.AsyncConnection) -> None:
    """The services' role owns the database and is no superuser, so that row-level security binds it."""
    role, database = sql.Identifier(ROLE), sql.Identifier(DATABASE)
    if not await _exists(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", ROLE):
        await connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    # For the free space of the disk and the lag of standbys, which `taskyard status` shows.
    await connection.execute(sql.SQL("GRANT pg_monitor TO {}").format(role))
    if not await _exists(connection, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
        await connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))


async def _exists(connection: psycopg.AsyncConnection, query: str, name: str) -> bool:
    return await (await connection.execute(query.encode(), [name])).fetchone() is not None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
