"""The topologies under chaos: real processes, a proxy on every hop, and each process by its name.

`fleet` is two taskdbs, two schedulers, three runners, a function worker and a gateway over PostgreSQL;
`up` is everything that `taskyard up` starts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_taskdb.storage.migrate import upgrade
from tests.acceptance.suite import ROOT, Suite, client_environment
from tests.chaos import leadership
from tests.harness.control_plane import make_keys
from tests.harness.gateway import gateway_service
from tests.harness.processes import Service, free_port
from tests.harness.tcp_proxy import TcpProxy
from tests.integration.test_database_network import server_address, through

# As in production, a sixth as long.
LEASE_SECONDS = 5.0
FIRST_LEASE_SECONDS = 3.0
TIMES = {
    "SCHEDULER_LEASE_DURATION": f"{LEASE_SECONDS:g}s",
    "SCHEDULER_HEARTBEAT_INTERVAL": "1s",
    "SCHEDULER_FIRST_LEASE": f"{FIRST_LEASE_SECONDS:g}s",
    "SCHEDULER_HEARTBEAT_GATHER": "50ms",
    "SCHEDULER_RECONNECT_SPREAD": "500ms",
    "TASKDB_REAP_GRACE": f"{LEASE_SECONDS + 1:g}s",
}
ENVIRONMENT = {f"TASKYARD_{name}": value for name, value in TIMES.items()}
FAST = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=64MB")
DISK_MB = 24
START_ATTEMPTS = 20


@dataclass
class Target:
    """A process that may be killed or frozen; without `restart` the suite itself starts it again."""

    name: str
    kind: str
    pids: Callable[[], list[int]]
    restart: Callable[[], Awaitable[None]] | None = None

    def signal(self, number: signal.Signals) -> int:
        """The number of processes that got it."""
        sent = 0
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                sent += 1
        return sent


@dataclass
class Topology:
    """What a run needs of any topology."""

    name: str
    folder: Path
    url: str = ""
    addresses: tuple[str, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    hops: dict[str, TcpProxy] = field(default_factory=dict)
    # Starts a taskdb again with failpoints set, by the name of its target.
    failpoints: dict[str, Callable[[str], Awaitable[None]]] = field(default_factory=dict)
    # A small file system, by the runner whose data lie there.
    disks: dict[str, Path] = field(default_factory=dict)
    logs: Callable[[], str] = lambda: ""
    functions: bool = False
    gateway: Service | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def client(self, kind: str = "tenant", *, reverse: bool = False) -> Client:
        """A client that reaches every taskdb through its hops, in this order or the reverse one."""
        addresses = ",".join(self.addresses[::-1] if reverse else self.addresses)
        return Client(addresses, key=self.keys[kind], tenant="default", outage_timeout=120.0)

    async def hop(self, name: str, target: str) -> TcpProxy:
        """A proxy in front of an address."""
        proxy = TcpProxy(target)
        await proxy.start()
        self._stack.push_async_callback(proxy.stop)
        self.hops[name] = proxy
        return proxy

    async def close(self) -> None:
        await self._stack.aclose()
        shutil.rmtree(self.folder, ignore_errors=True)


def make_folder() -> Path:
    """A directory that the servers' users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="taskyard-chaos-"))
    folder.chmod(0o755)
    return folder


async def start(name: str) -> Topology:
    """The topology of that name, serving."""
    made = Topology(name, make_folder())
    try:
        await (_start_fleet(made) if name == "fleet" else _start_up(made))
    except BaseException:
        await made.close()
        raise
    return made


# -- fleet


async def _start_fleet(made: Topology) -> None:
    made.functions = True
    await _start_postgres(made)
    made.keys = await asyncio.to_thread(make_keys, made.url)
    services = await asyncio.gather(*(_start_taskdb(made, n) for n in range(2)))
    made.addresses = tuple(
        [(await made.hop(f"client-taskdb{n}", services[n].address)).address for n in range(2)]
    )
    schedulers = await asyncio.gather(*(_start_scheduler(made, n, services) for n in range(2)))
    app = ("--app", "tests.chaos.function_app:app", "--kind", "function", "--capacity", "4")
    runners = await asyncio.gather(
        *(_start_runner(made, f"runner{n}", schedulers) for n in range(3)),
        _start_runner(made, "worker", schedulers, *app),
    )
    await _start_gateway(made, services, schedulers)
    parts = [*services, *schedulers]
    made.logs = lambda: "\n".join(
        [part.log.read_text(errors="replace") for part in parts] + [runner.output() for runner in runners]
    )


async def _start_postgres(made: Topology) -> None:
    data = made._stack.enter_context(DataDirectory(made.folder / "data"))
    postgres = EmbeddedPostgres(data, PostgresOptions(server_arguments=FAST), lambda _: None)
    await postgres.start()
    hurry = asyncio.Event()
    hurry.set()
    made._stack.push_async_callback(postgres.stop, hurry)
    made.url = postgres.url()
    await asyncio.to_thread(upgrade, made.url)
    await asyncio.to_thread(leadership.install, made.url)

    async def restart() -> None:
        await postgres.ended()
        await postgres.start()

    made.targets["postmaster"] = Target("postmaster", "postmaster", lambda: [postgres.pid or 0], restart)
    made.targets["backend"] = Target("backend", "backend", lambda: _backends(made.url))


def _backends(url: str) -> list[int]:
    """One backend that serves taskdb."""
    sql = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend' ORDER BY random() LIMIT 1"
    )
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True, connect_timeout=3) as connection:
        return [row[0] for row in connection.execute(sql).fetchall()]
    return []


def _service_target(made: Topology, name: str, kind: str, service: Service) -> None:
    async def restart() -> None:
        assert service.process is not None
        await asyncio.to_thread(service.process.wait)
        await asyncio.to_thread(_start_until_it_serves, service)

    made.targets[name] = Target(name, kind, lambda: [service.pid], restart)
    made._stack.push_async_callback(asyncio.to_thread, service.stop)


def _start_until_it_serves(service: Service) -> None:
    """Starts it as a supervisor does: again, if another fault ends it meanwhile."""
    for _ in range(START_ATTEMPTS):
        with suppress(AssertionError):
            service.start()
            return
    raise AssertionError(f"{service.module} does not start\n{service.log_text()}")


async def _start_taskdb(made: Topology, n: int) -> Service:
    hop = await made.hop(f"taskdb{n}-postgres", server_address(made.url))
    port = free_port()
    url = f"{through(made.url, hop)}?application_name=taskdb{n}"
    environment = {**ENVIRONMENT, "TASKYARD_DATABASE_URL": url}
    arguments = ("serve", "--listen", f"127.0.0.1:{port}", "--log-format", "json")
    service = Service("taskyard_taskdb", arguments, port, made.folder / f"taskdb{n}.log", environment)
    _service_target(made, f"taskdb{n}", "taskdb", service)

    async def restart_with(failpoints: str) -> None:
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(lambda: service.start(wait=False, TASKYARD_FAILPOINTS=failpoints))

    made.failpoints[f"taskdb{n}"] = restart_with
    await asyncio.to_thread(service.start)
    return service


async def _start_scheduler(made: Topology, n: int, taskdbs: list[Service]) -> Service:
    # Each scheduler prefers another taskdb.
    order = taskdbs[n:] + taskdbs[:n]
    hops = [await made.hop(f"scheduler{n}-taskdb{taskdbs.index(taskdb)}", taskdb.address) for taskdb in order]
    port = free_port()
    names = ",".join(hop.address for hop in hops)
    arguments = ("serve", "--listen", f"127.0.0.1:{port}", "--log-format", "json", "--taskdb", names)
    environment = {**ENVIRONMENT, "TASKYARD_KEY": made.keys["scheduler"]}
    service = Service("taskyard_scheduler", arguments, port, made.folder / f"scheduler{n}.log", environment)
    _service_target(made, f"scheduler{n}", "scheduler", service)
    await asyncio.to_thread(service.start)
    return service


async def _start_gateway(made: Topology, taskdbs: list[Service], schedulers: list[Service]) -> None:
    hop = await made.hop("gateway-taskdb0", taskdbs[0].address)
    service = gateway_service(hop.address, schedulers[0].address, made.folder)
    _service_target(made, "gateway", "gateway", service)
    await asyncio.to_thread(service.start)
    made.gateway = service


async def _start_runner(made: Topology, id: str, schedulers: list[Service], *flags: str) -> RunnerProcess:
    hops = [await made.hop(f"{id}-scheduler{n}", part.address) for n, part in enumerate(schedulers)]
    data = made.folder / id
    if id == "runner0":
        _mount_small(made, id, data)
    addresses = ",".join(hop.address for hop in hops)
    runner = RunnerProcess(data, addresses, id=id, key=made.keys["runner"], PYTHONPATH=_python_path())
    arguments = flags or ("--capacity", "6")

    async def restart() -> None:
        await runner.wait()
        await runner.start(*arguments)
        await runner.connected(runner.sessions() + 1)

    def family() -> list[int]:
        with suppress(psutil.NoSuchProcess):
            warden = psutil.Process(runner.pid)
            return [warden.pid, *(child.pid for child in warden.children(recursive=True))]
        return []

    made.targets[f"{id}.warden"] = Target(f"{id}.warden", "warden", lambda: [runner.pid], restart)
    made.targets[f"{id}.agent"] = Target(f"{id}.agent", "agent", lambda: _agent(runner))
    made.targets[f"{id}.all"] = Target(f"{id}.all", "runner", family)
    if flags:
        made.targets[f"{id}.host"] = Target(f"{id}.host", "host", lambda: runner.host_pids()[:1])
    await runner.start(*arguments)
    made._stack.callback(runner.clean)
    made._stack.push_async_callback(runner.kill)
    return await runner.connected()


def _python_path() -> str:
    """Where functions are imported from, behind what this process puts in front of it."""
    return os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])


def _agent(runner: RunnerProcess) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [pid for pid in [runner.agent_pid] if pid]
    return []


def _mount_small(made: Topology, id: str, data: Path) -> None:
    """Puts the runner's directory on a small file system of its own, where this process may mount one."""
    data.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(data)]
    if os.geteuid() == 0 and os.spawnvp(os.P_WAIT, mount[0], mount) == 0:
        made._stack.callback(os.spawnvp, os.P_WAIT, "umount", ["umount", "-l", str(data)])
        made.disks[id] = data


# -- taskyard up


async def _start_up(made: Topology) -> None:
    environment = {
        **client_environment(),
        **ENVIRONMENT,
        "TASKYARD_RUNNER_SANDBOX": "none",
        "TASKYARD_RUNNER_KIND": "command,script",
        "TASKYARD_RUNNER_CAPACITY": "12",
        "PYTHONPATH": _python_path(),
    }
    suite = await asyncio.to_thread(lambda: Suite(made.folder, environment))
    made._stack.push_async_callback(asyncio.to_thread, _stop, suite)
    await asyncio.to_thread(suite.until_ready)
    context = suite.context
    stored = tomllib.loads((suite.data / "keys.toml").read_text())
    made.keys = {"tenant": context["key"], "admin": stored["admin"]}
    made.url = f"postgresql://taskyard@/taskyard?host={suite.data / 'postgres'}&port=5432"
    made.addresses = ((await made.hop("client-taskdb", context["address"])).address,)
    made.logs = lambda: "\n".join(
        file.read_text(errors="replace") for file in (suite.data / "logs").glob("*.log")
    )
    for part in ("taskdb", "scheduler", "gateway"):
        made.targets[part] = Target(part, part, lambda part=part: _children(suite, f"taskyard_{part}"))  # type: ignore[misc]
    made.targets["local.warden"] = Target(
        "local.warden", "warden", lambda: _children(suite, "taskyard_runner")
    )
    made.targets["local.agent"] = Target("local.agent", "agent", lambda: _up_agents(suite))
    made.targets["postmaster"] = Target("postmaster", "postmaster", lambda: _postmaster(suite))
    made.targets["backend"] = Target("backend", "backend", lambda: _backends(made.url))


def _stop(suite: Suite) -> None:
    if suite.process.poll() is None:
        suite.stop()


def _children(suite: Suite, module: str) -> list[int]:
    found = []
    for child in psutil.Process(suite.process.pid).children():
        with suppress(psutil.NoSuchProcess):
            if module in child.cmdline():
                found.append(child.pid)
    return found


def _up_agents(suite: Suite) -> list[int]:
    found = []
    for warden in _children(suite, "taskyard_runner"):
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(warden).children():
                if "taskyard_runner.agent" in child.cmdline():
                    found.append(child.pid)
    return found


def _postmaster(suite: Suite) -> list[int]:
    with suppress(OSError, ValueError, IndexError):
        return [int((suite.data / "postgres/postmaster.pid").read_text().split()[0])]
    return []
