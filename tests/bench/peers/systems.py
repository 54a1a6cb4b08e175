"""What is compared: Taskyard, and each peer as a program that is played through the modes of README.md."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.bench import cpu
from tests.bench.database import wal_position
from tests.bench.end_to_end import FastRunnerProcess, fast_runner, latency
from tests.bench.peers import environments
from tests.bench.peers.environments import Environment, Missing
from tests.bench.taskdb import BATCH, Load
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.postgres import PostgresServer

START_SECONDS = 90
MODE_SECONDS = 120
WARM_UP = 100
POLL_SECONDS = 0.005
Figures = dict[str, float]


@dataclass(frozen=True)
class Counts:
    """How much is done in a round; a backlog is drained together with the batch that warms up."""

    backlog: int
    slow_backlog: int
    paced: int
    single: int


class System(Protocol):
    """One of those that are compared."""

    name: str
    title: str
    # Whether thousands of tasks take seconds.
    slow: bool

    def prepare(self) -> None:
        """Make its environment. Raises Missing."""

    async def measure(self, server: PostgresServer, counts: Counts) -> Figures:
        """One round on a fresh database: everything."""

    async def drain(self, server: PostgresServer, backlog: int) -> Figures:
        """Batch creates and drain only."""


@dataclass
class Taskyard:
    """The services of this checkout: taskdb, scheduler, and a runner that does nothing."""

    template: str
    name: str = "taskyard"
    title: str = "Taskyard"
    slow: bool = False

    def prepare(self) -> None:
        """Nothing: it runs in this environment."""

    async def measure(self, server: PostgresServer, counts: Counts) -> Figures:
        with control_plane(server, self.template) as plane:
            figures = await self._backlog(plane, counts.backlog)
            await latency(plane, WARM_UP)
            figures["p50"], figures["p99"] = await latency(plane, counts.paced)
            load = Load(plane.taskdbs[0].address, plane.url)
            await load.single_creates(WARM_UP)
            figures["single"] = await load.single_creates(counts.single)
            await load.channel.close()
            return figures

    async def drain(self, server: PostgresServer, backlog: int) -> Figures:
        with control_plane(server, self.template) as plane:
            return await self._backlog(plane, backlog)

    async def _backlog(self, plane: ControlPlane, backlog: int) -> Figures:
        load = Load(plane.taskdbs[0].address, plane.url)
        services = [plane.taskdbs[0].pid, plane.schedulers[0].pid]
        with psycopg.connect(plane.url, autocommit=True) as connection:
            meter = Meter(connection, lambda: sum(map(cpu.of_process, services)) + time.process_time())
            await load.batch_creates(BATCH)
            before = meter.read()
            rate = await load.batch_creates(backlog)
            created = meter.per_task(before, backlog)
            async with fast_runner(plane, backlog + BATCH) as runner:
                meter.programs = lambda: sum(map(cpu.of_process, _with_runner(services, runner)))
                before = meter.read()
                seen = await runner.seen()
                drained = meter.per_task(before, backlog + BATCH)
        await load.channel.close()
        return {
            "batch": rate,
            "drain": (backlog + BATCH) / (seen["last"] - seen["first"]),
            **_costs(created, drained),
        }


def _with_runner(services: list[int], runner: FastRunnerProcess) -> list[int]:
    return [*services, runner.process.pid]


@dataclass
class Peer:
    """A queue on PostgreSQL: how to start its program, and whether anything is unfinished in its table."""

    name: str
    title: str
    environment: Environment
    command: Callable[[], list[str]]
    unfinished: str
    slow: bool = False

    def prepare(self) -> None:
        self.environment.prepare()

    async def measure(self, server: PostgresServer, counts: Counts) -> Figures:
        with server.database() as url:
            backlog = counts.slow_backlog if self.slow else counts.backlog
            figures = await self._backlog(url, backlog)
            async with self._program(url, "latency", counts.paced) as program:
                found = sorted((await program.play())["latencies"])
            figures["p50"] = 1000 * found[len(found) // 2]
            figures["p99"] = 1000 * found[len(found) * 99 // 100]
            async with self._program(url, "single", counts.single) as program:
                figures["single"] = counts.single / (await program.play())["seconds"]
            return figures

    async def drain(self, server: PostgresServer, backlog: int) -> Figures:
        with server.database() as url:
            return await self._backlog(url, backlog)

    async def _backlog(self, url: str, backlog: int) -> Figures:
        await self._set_up(url)
        with psycopg.connect(url, autocommit=True) as connection:
            async with self._program(url, "batch", backlog) as program:
                meter = self._meter(connection, program)
                before = meter.read()
                rate = backlog / (await program.play())["seconds"]
                created = meter.per_task(before, backlog)
            async with self._program(url, "drain", backlog + BATCH) as program:
                meter = self._meter(connection, program)
                before = meter.read()
                seen = await program.play()
                while await asyncio.to_thread(self._is_unfinished, connection):
                    await asyncio.sleep(POLL_SECONDS)
                    seen["last"] = time.time()
                drained = meter.per_task(before, backlog + BATCH)
        rates = {"batch": rate, "drain": (backlog + BATCH) / (seen["last"] - seen["first"])}
        return {**rates, **_costs(created, drained)}

    async def _set_up(self, url: str) -> None:
        process = await asyncio.create_subprocess_exec(*self.command(), "setup", env=self._environment(url))
        async with asyncio.timeout(START_SECONDS):
            if await process.wait():
                raise RuntimeError(f"{self.title} could not make its schema")

    def _program(self, url: str, mode: str, count: int) -> contextlib.AbstractAsyncContextManager[Program]:
        return _started([*self.command(), mode, str(count)], self._environment(url))

    def _environment(self, url: str) -> dict[str, str]:
        parts, query = urlsplit(url), parse_qs(urlsplit(url).query)
        return {
            **os.environ,
            "PGHOST": parts.hostname or query["host"][0],
            "PGPORT": str(parts.port or query["port"][0]),
            "PGUSER": parts.username or query["user"][0],
            "PGDATABASE": parts.path.removeprefix("/"),
        }

    def _meter(self, connection: psycopg.Connection, program: Program) -> Meter:
        return Meter(connection, lambda: _of_tree(program.process.pid))

    def _is_unfinished(self, connection: psycopg.Connection) -> bool:
        row = connection.execute(self.unfinished).fetchone()
        return row is not None and bool(row[0])


class CeleryPeer(Peer):
    """Celery, which keeps its tasks in a Redis of its own that syncs every write."""

    def prepare(self) -> None:
        if not any((Path(folder) / "redis-server").is_file() for folder in os.get_exec_path()):
            raise Missing("redis-server is not installed")
        super().prepare()
        self._socket = environments.CACHE / "redis" / "socket"

    async def measure(self, server: PostgresServer, counts: Counts) -> Figures:
        with self._redis():
            figures = await super().measure(server, counts)
        # It has no call for many, and nothing of it is in PostgreSQL.
        return {key: value for key, value in figures.items() if key not in ("batch", "batch_cpu", "wal")}

    def _environment(self, url: str) -> dict[str, str]:
        return {**super()._environment(url), "PEER_REDIS": str(self._socket)}

    def _meter(self, connection: psycopg.Connection, program: Program) -> Meter:
        meter = super()._meter(connection, program)
        meter.server = lambda: cpu.of_process(self._server.pid)
        return meter

    @contextlib.contextmanager
    def _redis(self) -> Iterator[None]:
        self._socket.parent.mkdir(parents=True, exist_ok=True)
        for left in self._socket.parent.rglob("*.aof*"):
            left.unlink()
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "dir": str(self._socket.parent),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._server = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not self._socket.exists():
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("redis-server does not start")
                time.sleep(POLL_SECONDS)
            yield
        finally:
            self._server.terminate()
            self._server.wait()


@dataclass
class Meter:
    """CPU of the programs and of the server, and WAL, since a reading."""

    connection: psycopg.Connection
    programs: Callable[[], float]
    server: Callable[[], float] | None = None

    def read(self) -> tuple[float, float, float]:
        """Seconds, seconds, bytes."""
        server = cpu.of_server(self.connection) if self.server is None else self.server()
        return self.programs(), server, float(wal_position(self.connection))

    def per_task(self, before: tuple[float, float, float], count: int) -> tuple[float, ...]:
        """Microseconds, microseconds and bytes of a task since then."""
        units = (1e6, 1e6, 1.0)
        return tuple(
            unit * (now - then) / count for now, then, unit in zip(self.read(), before, units, strict=True)
        )


def _costs(created: tuple[float, ...], drained: tuple[float, ...]) -> Figures:
    return {
        "batch_cpu": created[0] + created[1],
        "drain_cpu_programs": drained[0],
        "drain_cpu_server": drained[1],
        "drain_cpu": drained[0] + drained[1],
        "wal": created[2] + drained[2],
    }


@dataclass
class Program:
    """A program that is ready."""

    process: asyncio.subprocess.Process

    async def play(self) -> dict[str, Any]:
        """Let it work; returns its figures."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        async with asyncio.timeout(MODE_SECONDS):
            found: dict[str, Any] = json.loads(await _line(self.process))
        return found


@contextlib.asynccontextmanager
async def _started(command: list[str], environment: dict[str, str]) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
        # What it starts ends with it.
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while await _line(process) != b"ready\n":
                pass
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(START_SECONDS):
            await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError(f"a program of a peer ended with {await process.wait()}")
    return line


def _of_tree(root: int) -> float:
    """Seconds of CPU of a process and of all that it has started."""
    whole, parents = 0.0, [root]
    while parents:
        pid = parents.pop()
        whole += cpu.of_process(pid)
        for thread in Path(f"/proc/{pid}/task").iterdir():
            parents += [int(child) for child in (thread / "children").read_text().split()]
    return whole


PEERS: tuple[Peer, ...] = (
    Peer(
        "river",
        "River",
        environments.RIVER,
        environments.river_command,
        "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')",
    ),
    Peer(
        "graphile",
        "graphile-worker, batched",
        environments.NODE,
        lambda: environments.node_command("graphile.mjs"),
        "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
    ),
    Peer(
        "pgqueuer",
        "pgqueuer",
        environments.PYTHON,
        lambda: environments.python_command("pgqueuer_peer.py"),
        "SELECT EXISTS (SELECT FROM pgqueuer)",
    ),
    Peer(
        "pgboss",
        "pg-boss",
        environments.NODE,
        lambda: environments.node_command("pgboss.mjs"),
        "SELECT EXISTS (SELECT FROM pgboss.job WHERE name = 'noop' AND state < 'completed')",
    ),
    Peer(
        "procrastinate",
        "procrastinate",
        environments.PYTHON,
        lambda: environments.python_command("procrastinate_peer.py"),
        "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        slow=True,
    ),
    CeleryPeer(
        "celery",
        "Celery on Redis",
        environments.PYTHON,
        lambda: environments.python_command("celery_peer.py"),
        "SELECT false",
        slow=True,
    ),
)
