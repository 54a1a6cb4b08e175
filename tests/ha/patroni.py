"""A Patroni cluster of the distribution's packages on loopback, run by an ordinary user."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from tests.harness.processes import free_port
from tests.harness.replication import PROGRAMS, ROLE, as_server_user, server_folder

# Patroni waits `ttl` before it replaces a leader that is gone.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 8, 1, 3
WAIT_SECONDS = 120.0


def missing_program() -> str | None:
    """The name of what this host lacks."""
    for program in ("patroni", "etcd"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None if PROGRAMS else "no PostgreSQL server package is installed"


def wait_for(found: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """The first true result; errors of connections count as none."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(psycopg.OperationalError, OSError):
            if result := found():
                return result
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


@dataclass
class Member:
    """One Patroni with its PostgreSQL."""

    name: str
    folder: Path
    etcd_port: int
    synchronous: bool
    port: int = field(default_factory=free_port)
    rest_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / self.name

    def start(self) -> None:
        """Start Patroni, which starts PostgreSQL."""
        config = self.folder / f"{self.name}.yml"
        config.write_text(yaml.safe_dump(self._config()))
        self.process = _start(self.folder / f"{self.name}.log", self.folder, "patroni", config)

    def kill(self) -> None:
        """End Patroni and every process of PostgreSQL at once, as the loss of the host does."""
        assert self.process is not None
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (self.process.pid, postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End both."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def rest(self, path: str, body: object = None) -> str:
        """The answer of Patroni's REST API."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.rest_port}/{path}", data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def value(self, sql: str, database: str = ROLE) -> Any:
        """The first value of a statement, if it returns any, executed as the superuser."""
        url = self.url(database=database)
        with psycopg.connect(url, autocommit=True, connect_timeout=2) as connection:
            cursor = connection.execute(sql.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def is_writable(self) -> bool:
        """Whether it is the primary and accepts writes."""
        try:
            with psycopg.connect(self.url(), autocommit=True, connect_timeout=2) as connection:
                if connection.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
                    return False
                # A probe that waits for a standby could not be interrupted.
                connection.execute("SET synchronous_commit = local")
                connection.execute("CREATE TABLE IF NOT EXISTS probe (n int)")
                connection.execute("INSERT INTO probe VALUES (1)")
                return True
        except psycopg.Error:
            return False

    def _config(self) -> dict[str, Any]:
        local = "127.0.0.1"
        parameters = {
            "unix_socket_directories": "",
            "shared_buffers": "32MB",
            "max_connections": 100,
            # The faults are of processes; the host stays up.
            "fsync": "off",
            "wal_keep_size": "256MB",
        }
        dcs = {
            "ttl": TTL,
            "loop_wait": LOOP_WAIT,
            "retry_timeout": RETRY_TIMEOUT,
            "maximum_lag_on_failover": 1 << 30,
            "synchronous_mode": self.synchronous,
            "postgresql": {"use_pg_rewind": True, "parameters": parameters},
        }
        return {
            "scope": "taskyard",
            "name": self.name,
            "restapi": {
                "listen": f"{local}:{self.rest_port}",
                "connect_address": f"{local}:{self.rest_port}",
            },
            "etcd3": {"hosts": f"{local}:{self.etcd_port}"},
            "bootstrap": {
                "dcs": dcs,
                "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}, "data-checksums", "no-sync"],
            },
            "postgresql": {
                "listen": f"{local}:{self.port}",
                "connect_address": f"{local}:{self.port}",
                "data_dir": str(self.data),
                "bin_dir": str(PROGRAMS),
                "pgpass": str(self.folder / f"{self.name}.pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "replicator"},
                },
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
        }


@dataclass
class Cluster:
    """The members; `url` names them all."""

    folder: Path
    members: list[Member]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://{ROLE}@{hosts}/{ROLE}?target_session_attrs=read-write"

    def primary(self) -> Member:
        """The member that accepts writes."""
        found = next((member for member in self._running() if member.is_writable()), None)
        if found is None:
            raise OSError("no member is writable")
        return found

    def wait_primary(self, *, other_than: Member | None = None) -> Member:
        """The primary, as soon as there is one."""
        found: Member = wait_for(
            lambda: next((m for m in self._running() if m is not other_than and m.is_writable()), None),
            "a writable primary",
        )
        return found

    def wait_standby(self, *, synchronous: bool) -> None:
        """Return once a standby streams, with the wanted state."""
        state = "sync" if synchronous else "async"
        sql = f"SELECT 'streaming {state}' IN (SELECT state || ' ' || sync_state FROM pg_stat_replication)"
        wait_for(lambda: self.primary().value(sql, "postgres"), f"a {state} standby")

    def switchover(self) -> tuple[Member, Member]:
        """A planned change of the primary; returns the former and the new one."""
        former = self.primary()
        candidate = next(member for member in self._running() if member is not former)
        # Patroni refuses until it has recorded the candidate as synchronous.
        body = {"leader": former.name, "candidate": candidate.name}
        wait_for(lambda: former.rest("switchover", body), "a switchover")
        return former, candidate

    def logs(self) -> str:
        """The end of what every program has printed."""
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self.folder.glob("*.log")
        )

    def _running(self) -> list[Member]:
        return [m for m in self.members if m.process is not None and m.process.poll() is None]


@contextlib.contextmanager
def patroni_cluster(*, members: int = 2, synchronous: bool = True) -> Iterator[Cluster]:
    """A cluster with a database of Taskyard's role and a standby in the wanted state."""
    with server_folder("taskyard-ha-") as folder:
        etcd_port, peer = free_port(), f"http://127.0.0.1:{free_port()}"
        client = f"http://127.0.0.1:{etcd_port}"
        etcd = _start(
            folder / "etcd.log", folder, "etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        )  # fmt: skip
        made = [Member(f"node{n}", folder, etcd_port, synchronous) for n in range(1, members + 1)]
        cluster = Cluster(folder, made)
        try:
            wait_for(lambda: urllib.request.urlopen(f"{client}/health", timeout=2), "etcd")
            made[0].start()
            first = cluster.wait_primary()
            for sql in (f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE {ROLE} OWNER {ROLE}"):
                with psycopg.connect(first.url(), autocommit=True) as connection:
                    connection.execute(sql.encode())
            for member in made[1:]:
                member.start()
            cluster.wait_standby(synchronous=synchronous)
            yield cluster
        except BaseException:
            print(cluster.logs())
            raise
        finally:
            for member in made:
                member.stop()
            etcd.terminate()
            etcd.wait(30)


def _start(log: Path, folder: Path, *argv: object) -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    with log.open("ab") as output:
        return subprocess.Popen(
            as_server_user("TERM", *argv), stdout=output, stderr=output, cwd="/", env=environment
        )
