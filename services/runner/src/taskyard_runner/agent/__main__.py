"""The agent's process: wires the parts, and ends when the runner drains, restarts or loses its warden."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import grpc.aio

from taskyard.channel import client_channel_options, open_channel
from taskyard.v1.runner_pb2 import EXECUTION_KIND_FUNCTION, RunnerRegistration
from taskyard_kit import failpoint, telemetry
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import observe
from taskyard_kit.startup import StartupError
from taskyard_kit.telemetry import TelemetrySettings
from taskyard_runner.agent import directory, registration
from taskyard_runner.agent.adoption import Adoption
from taskyard_runner.agent.agent import Agent
from taskyard_runner.agent.checkpoints import Uploads
from taskyard_runner.agent.children import Children
from taskyard_runner.agent.config import AgentConfig
from taskyard_runner.agent.default_limits import find_limits
from taskyard_runner.agent.disk import DiskWatch
from taskyard_runner.agent.downloads import Downloads
from taskyard_runner.agent.drain import Drain
from taskyard_runner.agent.function_host import HOST
from taskyard_runner.agent.function_hosts import AppBroken, Hosts, HostsConfig
from taskyard_runner.agent.function_pool import FunctionPool
from taskyard_runner.agent.journals import rescue_journals
from taskyard_runner.agent.leases import Leases, RunKey
from taskyard_runner.agent.link import Link, Refused
from taskyard_runner.agent.logs import LogShipper
from taskyard_runner.agent.metric_names import RUNS_ACTIVE, SPOOL_DEPTH
from taskyard_runner.agent.preparation import Preparation
from taskyard_runner.agent.removal import Trash
from taskyard_runner.agent.requests import Requests
from taskyard_runner.agent.runs import Runs
from taskyard_runner.agent.sandbox import Sandboxes
from taskyard_runner.agent.selftest import SelfTest, SelfTestResult, containers
from taskyard_runner.agent.spool import Spool
from taskyard_runner.agent.warden_client import WardenClient
from taskyard_runner.warden import linux
from taskyard_runner.warden.protocol import VERSION, Message

_MAX_RECEIVE_BYTES = 8 << 20
# How long a drained agent waits for an unreachable scheduler; unsent reports stay in the spool.
_GOODBYE_SECONDS = 10.0

log = get_log("taskyard_runner.agent")


class AgentTelemetry(TelemetrySettings):
    """The telemetry settings, as the runner was given them."""

    service: ClassVar[str] = "runner"


def main() -> None:
    """Exit code 0; the warden decides by `bye` whether another agent follows."""
    linux.die_with(os.getppid())
    linux.hide_from_others()
    asyncio.run(_main())


async def _main() -> None:
    warden = await WardenClient.connect()
    hello = await warden.hello()
    warden.send({"op": "hello", "protocol": VERSION, "version": registration.version()})
    config = AgentConfig.parse(hello["config"])
    try:
        _observe(config)
        await AgentProcess(warden, hello, config).serve()
    except (Refused, StartupError, failpoint.FailpointError) as error:
        sys.stderr.write(f"taskyard-runner: {error}\n")
        warden.send({"op": "bye", "code": 1})
    await warden.close()
    # Skips the shutdown of the channel's threads and the metrics' exporters.
    sys.stderr.flush()
    os._exit(0)


def _observe(config: AgentConfig) -> None:
    failpoint.configure(os.environ.get(failpoint.ENVIRONMENT, ""), "runner")
    settings = AgentTelemetry(
        log_format=config.log_format,
        log_level=config.log_level,
        otlp_endpoint=config.otlp_endpoint,
        metrics_listen=config.metrics_listen,
    )
    for problem in settings.check():
        raise Refused(str(problem))
    telemetry.configure(settings)


def _open_channel(config: AgentConfig) -> grpc.aio.Channel:
    try:
        return open_channel(
            config.scheduler,
            key=config.key,
            tls=config.tls,
            tls_ca=Path(config.tls_ca) if config.tls_ca else None,
            allow_plaintext=config.allow_plaintext,
            options=client_channel_options(_MAX_RECEIVE_BYTES),
        )
    except (ValueError, OSError) as error:
        raise Refused(f"scheduler = {config.scheduler!r}: {error}") from None


class AgentProcess:
    """The parts of one agent and their wiring."""

    def __init__(self, warden: WardenClient, hello: Message, config: AgentConfig) -> None:
        self._warden = warden
        self._hello = hello
        self._config = config
        self._changed = asyncio.Event()
        self._runs_changed = asyncio.Event()
        self._restarting = False
        self._channel = _open_channel(config)
        self._leases = Leases()
        self._spool = Spool(Path(config.data_dir) / "spool", config.spool_limit_bytes)
        self._logs = LogShipper(self._touch, self._logs_finished)
        self._uploads = Uploads(self._touch)
        downloads = Downloads(self._channel, config.id)
        self._stock = directory.DirectoryStock(hello["runs_directory"])
        self._trash = Trash(hello["runs_directory"])
        self._sandboxes = Sandboxes(hello.get("sandbox", {}), config.data_dir, hello["socket"])
        groups = hello["limits"] != "rlimits"
        self._defaults = find_limits(
            config.task_memory_mb, config.task_disk_mb, hello["runs_directory"], groups=groups
        )
        self._preparation = Preparation(
            config, self._stock, hello["socket"], self._sandboxes, downloads.fetch, self._defaults
        )
        self._runs = Runs(
            self._preparation,
            self._leases,
            self._spool,
            self._logs,
            self._uploads,
            self._trash,
            send_to_warden=warden.send,
            changed=self._touch,
        )
        self._drain = Drain(self._runs, self._touch)
        children = Children(self._channel, config.id)
        self._requests = Requests(self._runs, self._uploads, children)
        self._hosts = self._make_hosts(downloads) if config.app else None
        self._selftest = SelfTest(warden.send, hello["runs_directory"], config, self._sandboxes, self._trash)
        self._link: Link | None = None
        self._agent: Agent | None = None
        self._tested = SelfTestResult((), ())
        self._spool.on_durable = self._touch

    def _make_hosts(self, downloads: Downloads) -> Hosts:
        config, runs_directory = self._config, self._hello["runs_directory"]
        pool = FunctionPool(
            config.capacity,
            runs_directory,
            self._runs,
            self._leases,
            self._uploads,
            self._requests,
            downloads.fetch,
            self._warden.send,
        )
        # Hosts inherit the application's variables; the runner's key was never in the environment.
        inherited = {name: value for name, value in os.environ.items() if name != failpoint.ENVIRONMENT}
        hosts_config = HostsConfig(
            app=config.app,
            runs_directory=runs_directory,
            socket=os.path.join(os.path.dirname(self._hello["socket"]), "host.sock"),
            env={**inherited, **config.env, "PYTHONUNBUFFERED": "1"},
            log_limit_bytes=config.log_limit_bytes,
            capacity=config.capacity,
            shared_count=config.function_hosts,
            max_tasks=config.host_max_tasks,
            growth_bytes=config.host_growth_bytes,
        )
        pool.hosts = Hosts(hosts_config, self._warden.send, pool)
        pool.hosts.on_functions = self._register
        self._runs.functions = pool
        self._drain.on_lift = pool.hosts.reload
        return pool.hosts

    async def serve(self) -> None:
        """Serve until the runner drains, the agent restarts or the warden exits. Raises Refused."""
        listener = asyncio.create_task(self._warden.listen(self._handle_warden_message))
        writer = asyncio.create_task(self._spool.run())
        adoption = Adoption(
            self._runs, self._leases, self._spool, self._logs, self._uploads, self._warden.send
        )
        adoption.take_over(self._hello)
        kept_names = [run["run"] for run in (*self._hello["runs"], *self._hello["lost"])]
        if self._hosts is not None:
            await self._hosts.open([run for run in self._hello["runs"] if HOST in run["meta"]])
            kept_names += [run.name for run in self._runs.table]
        journals = await asyncio.to_thread(rescue_journals, self._hello["runs_directory"], kept_names)
        adoption.ship(journals)
        kept_names += [journal.directory.name for journal in journals]
        self._trash.discard_except(kept_names)
        sweeper = asyncio.create_task(self._trash.sweep())
        self._stock.refill()
        agent = await self._introduce()
        self._link = Link(self._channel, agent)
        link = asyncio.create_task(self._link.run())
        leaver = asyncio.create_task(self._leave(agent))
        self._answer_old_requests()
        disk = asyncio.create_task(DiskWatch(self._runs, self._defaults.disk_mb).run(self._runs_changed))
        parts = (listener, writer, link, leaver, disk, sweeper)
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        if link in done or leaver in done:
            await self._end(link)

    async def _introduce(self) -> Agent:
        tested = await self._run_self_test()
        self._preparation.kinds = tested.names
        self._preparation.containers = containers(self._config, tested)
        limits = self._hello["limits"]
        log.info(
            "agent_started",
            runner=self._config.id,
            limits=limits,
            sandbox=self._sandboxes.describe(),
            interpreters=list(tested.interpreters),
        )
        if problem := self._hello["limits_problem"]:
            log.warning("limits_are_weak", using=limits, missing="memory, cpu and pids per task", why=problem)
        sandbox = self._hello.get("sandbox", {})
        if self._sandboxes.mode == "none" and os.geteuid() == 0:
            log.warning("sandbox_is_weak", effect="tasks run as root", why=sandbox.get("why", ""))
        if self._sandboxes.one_tenant:
            log.warning("sandbox_is_weak", effect="one tenant is served", why=sandbox.get("why", ""))
        if not tested.kinds:
            raise Refused("no execution kind works on this host; the log names what each self-test met")
        self._tested = tested
        evidence = Path(self._config.data_dir) / "runner-id"
        ours = evidence.exists() and evidence.read_text() == self._config.id
        observe(SPOOL_DEPTH, lambda: [(self._spool.depth, {})])
        observe(RUNS_ACTIVE, lambda: [(self._leases.active_count, {})])
        self._agent = Agent(
            runner_id=self._config.id,
            instance_id=str(uuid.uuid4()),
            takeover=self._config.takeover or ours,
            one_tenant=self._sandboxes.one_tenant,
            registration=self._describe(),
            evidence=evidence,
            leases=self._leases,
            spool=self._spool,
            logs=self._logs,
            uploads=self._uploads,
            runs=self._runs,
            drain=self._drain,
            send_to_warden=self._warden.send,
        )
        return self._agent

    def _describe(self) -> RunnerRegistration:
        functions = self._hosts.functions if self._hosts is not None else ()
        sandbox, limits = self._sandboxes.describe(), self._hello["limits"]
        return registration.describe(self._config, self._tested, limits, sandbox, functions)

    def _register(self) -> None:
        if self._agent is not None:
            self._agent.register(self._describe())
            self._touch()

    async def _run_self_test(self) -> SelfTestResult:
        """What works on this host; an agent of the same version reuses the result and sends hello sooner."""
        found = await self._test_app(self._hosts) if self._hosts is not None else SelfTestResult((), ())
        if self._hosts is not None and not set(self._config.kinds) - {"function"}:
            return found
        others = await self._test_programs()
        return replace(others, kinds=(*found.kinds, *others.kinds))

    async def _test_programs(self) -> SelfTestResult:
        kept = self._hello["kept"].get("proof")
        if kept is not None and kept["version"] == registration.version():
            return SelfTestResult.parse(kept)
        tested = await self._selftest.run()
        if not tested.kinds and kept is not None:
            # Runs exist, and an agent that exits now would end them.
            return SelfTestResult.parse(kept)
        values = {"version": registration.version(), **tested.describe()}
        self._warden.send({"op": "keep", "values": {"proof": values}})
        return tested

    async def _test_app(self, hosts: Hosts) -> SelfTestResult:
        reload = self._hello["kept"].get("reload")
        try:
            await (hosts.reload_or_keep() if reload else hosts.load())
        except AppBroken as error:
            raise Refused(str(error)) from None
        if reload:
            self._warden.send({"op": "keep", "values": {"reload": False}})
        log.info("app_loaded", app=self._config.app, functions=sorted(hosts.functions))
        return SelfTestResult((EXECUTION_KIND_FUNCTION,), ())

    # -- the warden

    def _handle_warden_message(self, message: Message) -> None:
        match message.get("op"):
            case "started":
                self._runs.started(message)
            case "output":
                if self._hosts is None or not self._hosts.grown(message):
                    self._runs.grown(message)
            case "progress":
                self._runs.progress_reported(message)
            case "ended":
                if not self._selftest.ended(message) and not (self._hosts and self._hosts.ended(message)):
                    self._runs.ended(message)
            case "request":
                self._answer(message["request"], message["message"])
            case "drain":
                self._drain.begin(message["seconds"])
            case "release":
                self._drain.release_all()
            case "restart":
                self._restarting = True
                self._warden.send({"op": "keep", "values": {"reload": True}})
                self._drain.restart()

    def _answer(self, number: int, request: Message) -> None:
        self._requests.handle(
            request,
            lambda reply: self._warden.send({"op": "answer", "request": number, "message": reply}),
        )

    def _answer_old_requests(self) -> None:
        for request in self._hello["requests"]:
            self._answer(request["request"], request["message"])
        stopping = self._hello["stopping"]
        if stopping == 1:
            self._drain.begin(self._hello["drain_seconds"])
        elif stopping > 1:
            self._drain.release_all()

    def _touch(self) -> None:
        self._changed.set()
        self._runs_changed.set()
        if self._link is not None:
            self._link.wake()

    def _logs_finished(self, key: RunKey) -> None:
        self._runs.logs_finished(key)
        self._touch()

    # -- leaving

    async def _leave(self, agent: Agent) -> None:
        """Returns when the process may end without the scheduler; otherwise the link's goodbye ends it."""
        while not self._restarting and not (self._drain.exits and not any(self._runs.table.live())):
            self._changed.clear()
            await self._changed.wait()
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _GOODBYE_SECONDS
        while loop.time() < give_up:
            if agent.settled and self._drain.goodbye is None:
                self._drain.goodbye = self._drain.final_goodbye()
                self._touch()
            self._changed.clear()
            try:
                async with asyncio.timeout_at(give_up):
                    await self._changed.wait()
            except TimeoutError:
                break

    async def _end(self, link: asyncio.Task[None]) -> None:
        link.cancel()
        await self._channel.close()
        log.info("agent_leaves", restart=self._restarting, spooled=self._spool.depth)
        if not self._restarting:
            if self._hosts is not None:
                await self._hosts.close()
            await self._trash.settle()
            self._warden.send({"op": "bye", "code": 0})


if __name__ == "__main__":
    main()
