"""The function hosts of a runner: started when there is work, replaced when they leak, hang or end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from taskyard_kit.logs import get_log
from taskyard_runner.agent.function_host import HOST, Connection, FunctionHost
from taskyard_runner.executors.function import HostClass
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.journal import JournalReader
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_HELLO_SECONDS = 60.0
# A host that does not send hello to a new agent within this time is hung and is killed.
_ADOPTION_SECONDS = 10.0
# The approximate start time of a host: work that the others finish sooner needs no new host.
_START_SECONDS = 0.2
_IDLE_SECONDS = 30.0
_TRIM_SECONDS = 5.0
_FIRST_BACKOFF = 1.0
_MAX_BACKOFF = 30.0
_OUTPUT_BYTES = 65536
_CLOSE_SECONDS = 2.0

log = get_log(__name__)


class AppBroken(Exception):
    """Why the application cannot be served."""


@dataclass(frozen=True)
class HostsConfig:
    """Settings shared by all hosts."""

    app: str
    runs_directory: str
    socket: str
    env: Mapping[str, str]
    log_limit_bytes: int
    # Maximum of concurrent runs.
    capacity: int
    # Shared hosts that are kept.
    shared_count: int
    # Runs after which a host is replaced, and its maximum growth in bytes; 0 = no limit.
    max_tasks: int
    growth_bytes: int


class HostHandler(Protocol):
    """Assigns runs to hosts and handles their messages."""

    def host_ready(self, host: FunctionHost, hello: Message) -> None: ...

    def host_updated(self, host: FunctionHost, message: Message) -> None: ...

    def host_requested(self, host: FunctionHost, message: Message) -> None: ...

    def host_ended(self, host: FunctionHost, result: Message) -> None: ...

    def wake(self) -> None:
        """Dispatch queued runs."""
        ...


class Hosts:
    """All hosts, by name."""

    def __init__(
        self, config: HostsConfig, send_to_warden: Callable[[Message], None], handler: HostHandler
    ) -> None:
        self._config = config
        self._send_to_warden = send_to_warden
        self._handler = handler
        self._hosts: dict[str, FunctionHost] = {}
        self._journals: dict[str, JournalReader] = {}
        # Name to whether it is `async def`, from the newest host's hello.
        self.functions: dict[str, bool] = {}
        self.on_functions: Callable[[], None] = lambda: None
        self._hello = asyncio.Event()
        self._problem = ""
        self._failures = 0
        self._start_after = 0.0
        self._looking: asyncio.TimerHandle | None = None
        self._server: asyncio.AbstractServer | None = None
        self._code = boottime()

    # -- beginning and end

    async def open(self, described: Iterable[Message]) -> None:
        """Listen, and wait for the hellos of an earlier agent's hosts."""
        for described_host in described:
            meta = described_host["meta"]
            host = FunctionHost(described_host["run"], HostClass(**meta[HOST]), meta["token"], meta["code"])
            if described_host["result"] is None:
                self._hosts[host.name] = host
            else:
                self._forget(host.name)
        self._code = max((host.code for host in self._hosts.values()), default=boottime())
        for host in self._hosts.values():
            # Hosts with older code finish their runs.
            host.retired = host.code < self._code
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._config.socket)
        loop = asyncio.get_running_loop()
        mask = os.umask(0o177)
        try:
            self._server = await loop.create_unix_server(
                lambda: Connection(self._received, self._lost), self._config.socket
            )
        finally:
            os.umask(mask)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ADOPTION_SECONDS):
                while any(not host.ready for host in self._hosts.values()):
                    self._hello.clear()
                    await self._hello.wait()
        for host in [found for found in self._hosts.values() if not found.ready]:
            log.warning("host_unresponsive", host=host.name)
            self.kill(host, StopReason.ABORT)
        loop.call_later(_TRIM_SECONDS, self._trim)

    async def load(self) -> None:
        """Returns once the application's functions are known. Raises AppBroken."""
        if not any(not host.retired for host in self._hosts.values()):
            self._problem = ""
            self.start(HostClass(shared=True))
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                while not self.functions and not self._problem:
                    self._hello.clear()
                    await self._hello.wait()
        except TimeoutError:
            self._problem = f"app {self._config.app!r} was not loaded within {_HELLO_SECONDS:g} s"
        if not self.functions:
            raise AppBroken(self._problem)

    async def reload_or_keep(self) -> None:
        """Reload the application; if it is broken, the present hosts keep their code."""
        before, hosts = self.functions, [host for host in self._hosts.values() if not host.retired]
        self.functions = {}
        self._problem = ""
        self.reload()
        try:
            await self.load()
        except AppBroken:
            if not before:
                raise
            self.functions = before
            for host in hosts:
                host.retired = host.leaving

    def reload(self) -> None:
        """Reload the application; hosts with the old code finish their runs."""
        self._code = boottime()
        for host in list(self._hosts.values()):
            self.retire(host, "reload")
        self.start(HostClass(shared=True))

    async def close(self) -> None:
        """Give idle hosts a moment to exit."""
        for host in list(self._hosts.values()):
            self.retire(host, "end")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                while self._hosts:
                    self._hello.clear()
                    await self._hello.wait()

    # -- starting and stopping

    def of(self, place: HostClass) -> Iterator[FunctionHost]:
        """The hosts of a class."""
        return (host for host in self._hosts.values() if host.place == place)

    def start(self, place: HostClass) -> None:
        """Order one more host."""
        name, token = f"host-{secrets.token_hex(6)}", secrets.token_hex(16)
        host = FunctionHost(name, place, token, self._code)
        try:
            os.mkdir(f"{self._config.runs_directory}/{host.name}", 0o700)
        except OSError as error:
            self._failed(f"no directory for a host can be made: {error.strerror}")
            return
        self._hosts[host.name] = host
        config = {
            "app": self._config.app,
            "socket": self._config.socket,
            "runs_directory": self._config.runs_directory,
            "log_limit_bytes": self._config.log_limit_bytes,
        }
        self._send_to_warden(host.order(config, self._config.env, self._config.runs_directory))

    def request_hosts(self, place: HostClass, waiting: int) -> None:
        """Start a host for runs that no host of the class can take now, if that speeds them up."""
        loop = asyncio.get_running_loop()
        now = boottime()
        hosts = [host for host in self.of(place) if not host.retired]
        starting = sum(not host.ready for host in hosts)
        if now < self._start_after:
            loop.call_later(self._start_after - now, self._handler.wake)
        elif place.shared:
            if sum(not host.stalled for host in hosts) < self._config.shared_count:
                self.start(place)
        elif len(hosts) < self._config.capacity and starting < min(waiting, os.cpu_count() or 1):
            if waiting >= _START_SECONDS * sum(host.rate(now) for host in hosts):
                self.start(place)
            else:
                self._look_again()

    def _look_again(self) -> None:
        """Check again later, because the expected hosts may be blocked by then."""
        if self._looking is None or self._looking.when() <= asyncio.get_running_loop().time():
            self._looking = asyncio.get_running_loop().call_later(_START_SECONDS, self._handler.wake)

    def retire(self, host: FunctionHost, why: str) -> None:
        """Give a host no more runs; it exits when it has none."""
        if not host.retired:
            host.retired = True
            log.info("host_retired", host=host.name, why=why)
        self.leave_if_idle(host)

    def leave_if_idle(self, host: FunctionHost) -> None:
        """End a retired host without runs."""
        if host.retired and host.ready and not host.leaving and not host.runs and not host.kept:
            host.leaving = True
            host.send({"op": "exit"})

    def kill(self, host: FunctionHost, reason: StopReason, grace: float = 0.0) -> None:
        """Have the warden end it."""
        host.retired = True
        self._send_to_warden({"op": "stop", "run": host.name, "reason": reason, "grace": grace})

    def _trim(self) -> None:
        now = boottime()
        kept: dict[HostClass, int] = {}
        for host in list(self._hosts.values()):
            plain = host.place in (HostClass(shared=True), HostClass(shared=False))
            spared = 0 if not plain else self._config.shared_count if host.place.shared else 1
            idle = host.usable and not host.runs and not host.kept
            if idle and kept.get(host.place, 0) >= spared and now - host.idle_since > _IDLE_SECONDS:
                self.retire(host, "idle")
            else:
                kept[host.place] = kept.get(host.place, 0) + 1
        asyncio.get_running_loop().call_later(_TRIM_SECONDS, self._trim)

    # -- messages of hosts

    def _received(self, connection: Connection, message: Message) -> None:
        host = connection.host
        if host is None:
            self._handle_hello(connection, message)
        elif message.get("op") == "request":
            self._handler.host_requested(host, message)
        else:
            self._note_health(host, message)
            self._handler.host_updated(host, message)

    def _handle_hello(self, connection: Connection, message: Message) -> None:
        host = self._hosts.get(str(message.get("host")))
        authentic = host is not None and secrets.compare_digest(host.token, str(message.get("token")))
        if host is None or not authentic or message.get("op") != "hello":
            connection.close()
            return
        if problem := message.get("error"):
            self._failed(str(problem))
            return
        connection.host, host.connection, host.ready = host, connection, True
        host.first_rss = message["rss"]
        self._failures = 0
        self._update_functions(host, message["functions"])
        self._handler.host_ready(host, message)
        self.leave_if_idle(host)
        self._hello.set()
        self._handler.wake()

    def _update_functions(self, host: FunctionHost, functions: Mapping[str, Mapping[str, Any]]) -> None:
        if host.retired:
            return
        found = {name: bool(description["async"]) for name, description in functions.items()}
        if found != self.functions:
            self.functions = found
            self.on_functions()
        if host.place == HostClass(shared=True) and not any(found.values()):
            # It was started to list the functions; none of them runs in a shared host.
            self.retire(host, "no async functions")
            self.start(HostClass(shared=False))

    def _lost(self, connection: Connection) -> None:
        if connection.host is not None and connection.host.connection is connection:
            connection.host.connection = None

    def _note_health(self, host: FunctionHost, message: Message) -> None:
        done = message.get("done")
        if done:
            host.idle_since = host.last_moved = boottime()
            host.done_count += len(done)
            if self._config.max_tasks and host.done_count >= self._config.max_tasks and not host.retired:
                self.retire(host, f"{host.done_count} runs")
        if "rss" in message:
            gained = message["rss"] - host.first_rss
            if self._config.growth_bytes and gained > self._config.growth_bytes and not host.retired:
                self.retire(host, f"gained {gained} bytes")
            if message["stalled"] and not host.stalled:
                log.warning("host_stalled", host=host.name, seconds=message["stalled"], runs=len(host.runs))
            host.stalled = message["stalled"]
            self._handler.wake()

    # -- messages of the warden

    def ended(self, message: Message) -> bool:
        """A host has ended; False if it is none."""
        host = self._hosts.pop(message["run"], None)
        if host is None:
            return False
        result = message["result"]
        if not host.ready:
            tail = str(result.get("stderr_tail", "")).strip() or f"exit code {result.get('exit_code')}"
            self._failed(self._problem or f"app {self._config.app!r}: its host ended at start: {tail}")
        elif not host.leaving:
            log.warning("host_ended", host=host.name, result=result)
        self._show_output(host.name)
        self._handler.host_ended(host, result)
        self._forget(host.name)
        self._hello.set()
        self._handler.wake()
        return True

    def grown(self, message: Message) -> bool:
        """A host wrote something that belongs to no run; False if it is no host."""
        if message["run"] not in self._hosts:
            return False
        self._show_output(message["run"])
        return True

    def _show_output(self, name: str) -> None:
        try:
            reader = self._journals.get(name)
            if reader is None:
                path = f"{self._config.runs_directory}/{name}/journal"
                reader = self._journals[name] = JournalReader(path)
            for record in reader.read(_OUTPUT_BYTES):
                for line in record.data.decode(errors="replace").splitlines():
                    log.info("host_output", host=name, text=line)
        except OSError:
            # Nothing was written yet.
            return

    def _failed(self, problem: str) -> None:
        if problem != self._problem:
            log.error("app_failed", error=problem)
        self._problem = problem
        self._failures += 1
        delay = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._failures - 1, 5))
        self._start_after = boottime() + delay
        self._hello.set()

    def _forget(self, name: str) -> None:
        if (reader := self._journals.pop(name, None)) is not None:
            reader.close()
        self._send_to_warden({"op": "forget", "run": name})
        shutil.rmtree(f"{self._config.runs_directory}/{name}", ignore_errors=True)
