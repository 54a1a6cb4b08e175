"""PostgreSQL servers with streaming replication, of the distribution's packages, run by an ordinary user."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.harness.processes import free_port

ROLE = "taskyard"
START_SECONDS = 60.0


def newest_programs() -> Path | None:
    """The folder of the newest PostgreSQL that is installed with everything replication needs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"), key=lambda path: path.parts[-3])
    return found[-1].parent if found else None


PROGRAMS = newest_programs()
needs_replication = pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL server package is installed")


def server_user() -> str | None:
    """Who runs PostgreSQL, which refuses to run as root; None: this user."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def as_server_user(signal_name: str, *argv: object) -> list[str]:
    """The command line that becomes `argv` as that user, and gets the signal when this process is gone.

    The kernel looks at the thread that starts it; that has to be one which lasts.
    """
    user = server_user()
    identity = (f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--init-groups") if user else ()
    return ["setpriv", *identity, f"--pdeathsig={signal_name}", *map(str, argv)]


@contextlib.contextmanager
def server_folder(prefix: str) -> Iterator[Path]:
    """A folder that belongs to the user of the servers, below one that this user can enter."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        folder = Path(name)
        if user := server_user():
            shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
        yield folder


@dataclass
class Node:
    """One server. `directory` is below a server_folder."""

    directory: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def initialise(self) -> None:
        """Create an empty cluster, with a database and a role that owns it, and start it."""
        self._run("initdb", "-D", self.directory, "-U", "postgres", "-A", "trust", "--no-sync")
        self._configure()
        self.start()
        self.execute(f"CREATE ROLE {ROLE} LOGIN", "postgres")
        self.execute(f"CREATE DATABASE {ROLE} OWNER {ROLE}", "postgres")

    def clone(self, primary: Node) -> None:
        """Become a standby of another server, and start."""
        self._run(
            "pg_basebackup", "-D", self.directory, "-h", "127.0.0.1", "-p", primary.port, "-U", "postgres",
            "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        self._configure()
        self._append(
            f"primary_conninfo = 'host=127.0.0.1 port={primary.port} user=postgres"
            f" application_name={self.directory.name}'\n"
        )
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        assert PROGRAMS is not None
        log = self.directory.with_suffix(".log")
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                as_server_user("QUIT", PROGRAMS / "postgres", "-D", self.directory),
                stdout=output,
                stderr=output,
                cwd="/",
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.execute("SELECT 1", "postgres")
                return
            except psycopg.OperationalError as error:
                assert self.process.poll() is None and time.monotonic() < deadline, (
                    f"{error}\n{log.read_text(errors='replace')[-4000:]}"
                )
                time.sleep(0.05)

    def url(self, user: str = ROLE) -> str:
        """Its database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{ROLE}"

    def execute(self, sql: str, database: str = ROLE) -> list[tuple[object, ...]]:
        """Execute one statement as the superuser."""
        url = f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def set(self, **settings: str) -> None:
        """Change settings of the server."""
        for name, value in settings.items():
            self.execute(f"ALTER SYSTEM SET {name} = '{value}'", "postgres")
        self.execute("SELECT pg_reload_conf()", "postgres")

    def wait_until(self, condition: str, database: str = ROLE) -> None:
        """Return once a query is true."""
        deadline = time.monotonic() + START_SECONDS
        while self.execute(condition, database) != [(True,)]:
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.05)

    def promote(self) -> None:
        """Make a standby the primary; returns once it accepts writes."""
        self.execute("SELECT pg_promote(true, 60)", "postgres")
        self.wait_until("SELECT NOT pg_is_in_recovery()", "postgres")

    def copy(self, other: Node) -> None:
        """Become a backup of another server; it is not started."""
        self._run(
            "pg_basebackup", "-D", self.directory, "-h", "127.0.0.1", "-p", other.port, "-U", "postgres",
            "--checkpoint=fast", "--no-sync",
        )  # fmt: skip

    def children(self) -> list[int]:
        """The processes of the server below the first one."""
        assert self.process is not None
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def wait_for_log(self, words: str) -> None:
        """Return once it has printed these words."""
        log = self.directory.with_suffix(".log")
        deadline = time.monotonic() + START_SECONDS
        while words not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, f"never printed: {words}"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, with all its connections, as a crash does."""
        assert self.process is not None
        for pid in (self.process.pid, *self.children()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)

    def _configure(self) -> None:
        self._append(
            f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\n"
            "shared_buffers = 16MB\nwal_keep_size = 64MB\nmax_connections = 60\n"
        )

    def _append(self, text: str) -> None:
        with (self.directory / "postgresql.auto.conf").open("a") as file:
            file.write(text)

    def _run(self, program: str, *arguments: object) -> None:
        assert PROGRAMS is not None
        done = subprocess.run(
            [PROGRAMS / program, *map(str, arguments)],
            user=server_user(), cwd="/", capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def primary_and_standby() -> Iterator[tuple[Node, Node]]:
    """A primary and its standby, which streams asynchronously as application `standby`."""
    with server_folder("taskyard-replication-") as folder:
        primary, standby = Node(folder / "primary"), Node(folder / "standby")
        try:
            primary.initialise()
            standby.clone(primary)
            primary.wait_until("SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')")
            yield primary, standby
        finally:
            for node in (standby, primary):
                node.stop()


def multi_host_url(*nodes: Node) -> str:
    """The URL with which a client follows a failover."""
    hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    return f"postgresql://{ROLE}@{hosts}/{ROLE}?target_session_attrs=read-write"
