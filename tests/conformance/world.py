"""The world around a driver: the real suite, proxies, TLS, a foreign server, and the acts of the tables."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from taskyard import Client, Phase, command
from taskyard.v1 import api_key_pb2, tenant_pb2
from tests.acceptance.suite import Suite, client_environment, running_suite
from tests.conformance.certificates import make_authority
from tests.conformance.driver import Driver
from tests.conformance.second_worker import finish_claimed
from tests.harness.processes import free_port
from tests.harness.tcp_proxy import TcpProxy, proxy_to

NEARBY = ".taskyard/context.toml"
CONFIG = ".config/taskyard/config.toml"
# Of the 60 s after which taskdb ends the stream of a reader that accepts nothing; `--stall 65` plays that.
STALL_SECONDS = 2.0
REAP_GRACE = "12s"


class ActError(AssertionError):
    """An act of the kit did not come about."""


@dataclass
class World:
    """All that the plays share."""

    suite: Suite
    client: Client
    variables: Mapping[str, str]
    proxies: Mapping[str, TcpProxy]

    def heal(self) -> None:
        """Let every proxy carry everything again."""
        for proxy in self.proxies.values():
            proxy.heal()


@contextlib.asynccontextmanager
async def open_world(stall: float = STALL_SECONDS) -> AsyncIterator[World]:
    """The suite with everything that a table may name, for as long as the block runs.

    A stalled reader stalls for `stall` seconds.
    """
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="taskyard-conformance-")))
        folder.chmod(0o755)
        # A worker's lease is to expire soon after its time, also when taskdb was killed by an earlier play.
        suite = await asyncio.to_thread(
            stack.enter_context, running_suite(TASKYARD_TASKDB_REAP_GRACE=REAP_GRACE)
        )
        found = suite.context
        client = await stack.enter_async_context(
            Client(
                found["address"],
                key=found["key"],
                admin_key=found["admin_key"],
                scheduler=found["scheduler"],
            )
        )
        ca, tls = make_authority(folder, "own")
        other_ca, _ = make_authority(folder, "other")
        proxies = {
            "taskdb": await stack.enter_async_context(proxy_to(found["address"])),
            "scheduler": await stack.enter_async_context(proxy_to(found["scheduler"])),
            "tls": await stack.enter_async_context(proxy_to(found["address"], tls)),
        }
        variables = {
            **{name: found[name] for name in ("address", "scheduler", "key")},
            "runner_key": await _key(client, api_key_pb2.PRINCIPAL_KIND_RUNNER),
            "other_key": await _key_of_another_tenant(client),
            "proxy": proxies["taskdb"].address,
            "scheduler_proxy": proxies["scheduler"].address,
            "tls": proxies["tls"].address,
            "ca": str(ca),
            "other_ca": str(other_ca),
            "foreign": await stack.enter_async_context(_foreign_server()),
            "nobody": f"127.0.0.1:{free_port()}",
            "folder": str(folder),
            "stall": str(stall),
        }
        yield World(suite, client, variables, proxies)


async def _key(client: Client, kind: api_key_pb2.PrincipalKind.ValueType, tenant: str = "") -> str:
    made = api_key_pb2.ApiKey(description="conformance", kind=kind, tenant=tenant)
    _, secret = await client.admin.create_key(made)
    return secret


async def _key_of_another_tenant(client: Client) -> str:
    tenant = tenant_pb2.Tenant(display_name="Conformance", tier=tenant_pb2.TENANT_TIER_FREE)
    await client.admin.create_tenant("conformance", tenant)
    return await _key(client, api_key_pb2.PRINCIPAL_KIND_TENANT, "conformance")


@contextlib.asynccontextmanager
async def _foreign_server() -> AsyncIterator[str]:
    """A gRPC server that serves none of our services."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


class Stage:
    """One play's part of the world: its driver, its folder and its variables."""

    def __init__(self, world: World, command: tuple[str, ...], folder: Path) -> None:
        self.world = world
        self.variables = dict(world.variables)
        self.variables["run"] = f"c{uuid.uuid4().hex[:12]}"
        self.variables["gate"] = str(folder / "gate")
        self._command = command
        self._folder = folder
        self._driver: Driver | None = None

    async def driver(self) -> Driver:
        """The driver; the first use starts it where the suite's context is found."""
        if self._driver is None:
            await self.restart({NEARBY: _toml(self.world.suite.context)}, {}, 0o600)
        assert self._driver is not None
        return self._driver

    async def restart(self, files: Mapping[str, str], environment: Mapping[str, str], mode: int) -> None:
        """Start the driver anew, with these files in its home and current folder, and these variables."""
        await self.close()
        home = self._folder / "home"
        for name in (NEARBY, CONFIG):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).unlink(missing_ok=True)
        for name, text in files.items():
            (home / name).write_text(text)
            (home / name).chmod(mode)
        variables = {**client_environment(), "HOME": str(home), **environment}
        self._driver = await Driver.start(self._command, home, variables, self._folder / "driver.log")

    async def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.stop()

    async def act(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Carry out an act of the kit; raises ActError if it does not come about."""
        acts: dict[str, Callable[..., Awaitable[None]]] = {
            "driver": self._act_driver,
            "kill": self._act_kill,
            "lose answers": self._act_lose_answers,
            "cut": self._act_cut,
            "blackhole": self._act_blackhole,
            "heal": self._act_heal,
            "open gate": self._act_open_gate,
            "until": self._act_until,
            "count": self._act_count,
            "create": self._act_create,
            "until created": self._act_until_created,
            "phases": self._act_phases,
            "names": self._act_names,
            "finish elsewhere": self._act_finish_elsewhere,
            "stall": self._act_stall,
        }
        if name not in acts:
            raise ActError(f"no such act: {name}; use {', '.join(acts)}")
        await acts[name](**arguments)

    async def _act_driver(
        self,
        context: Mapping[str, str] | None = None,
        contexts: Mapping[str, Mapping[str, str]] | None = None,
        current: str = "",
        env: Mapping[str, str] | None = None,
        mode: str = "600",
    ) -> None:
        """A new driver with another context file, contexts of the user by name, and environment."""
        files = {NEARBY: _toml(context)} if context else {}
        if contexts:
            tables = [f"[contexts.{name}]\n{_toml(values)}" for name, values in contexts.items()]
            files[CONFIG] = "".join([_toml({"current": current}), *tables])
        await self.restart(files, env or {}, int(mode, 8))

    async def _act_kill(self, service: str) -> None:
        """kill -9 of a service; the suite starts it again."""
        await asyncio.to_thread(self.world.suite.kill_service, service)

    async def _act_lose_answers(self, to: str) -> None:
        """Drop what taskdb answers through $proxy once a request with these bytes has passed."""
        self.world.proxies["taskdb"].lose_answers_to(to.encode())

    async def _act_cut(self, proxy: str = "taskdb") -> None:
        """Reset every connection of a proxy; new ones carry everything."""
        self.world.proxies[proxy].heal()
        self.world.proxies[proxy].reset()

    async def _act_blackhole(self, proxy: str) -> None:
        """Carry nothing any more, without closing a connection."""
        self.world.proxies[proxy].blackhole()

    async def _act_heal(self) -> None:
        """Every proxy carries everything again."""
        self.world.heal()

    async def _act_open_gate(self) -> None:
        """Create the file $gate, for which a command may wait."""
        Path(self.variables["gate"]).touch()

    async def _act_until(self, task: str, phase: str, seconds: float = 30.0) -> None:
        """Wait until a task is in a phase."""
        async with asyncio.timeout(seconds):
            async for event in self.world.client.watch(task, snapshot=True):
                if event.phase is Phase[phase]:
                    return

    async def _act_count(self, filter: str, tasks: int) -> None:
        """Exactly this many tasks match."""
        found = [task.name async for task in self.world.client.list(filter)]
        if len(found) != tasks:
            raise ActError(f"{len(found)} tasks match {filter}, expected {tasks}: {found}")

    async def _act_create(self, count: int, label: str, filler_labels: int = 0) -> None:
        """Create tasks that no runner takes, labelled conformance=LABEL, and a quarter KiB per filler."""
        filler = {f"filler-{number}": "x" * 250 for number in range(filler_labels)}
        made = (
            command(
                "true",
                id=f"{label}-{number:04}",
                labels={"conformance": label, **filler},
                runner_labels={"zone": "nowhere"},
            )
            for number in range(count)
        )
        async for created in self.world.client.create_many(made):
            if isinstance(created, Exception):
                raise ActError(str(created))

    async def _act_until_created(self, filter: str) -> None:
        """Wait until a task matches."""
        async for _ in self.world.client.watch(filter=filter, snapshot=True):
            return

    async def _act_phases(self, items: str, last: str) -> None:
        """Items of a watch of one task: versions ascend, no change is repeated, and the last phase."""
        found = json.loads(items)
        versions = [item["version"] for item in found]
        if versions != sorted(set(versions)):
            raise ActError(f"changes are repeated or out of order: {found}")
        if not found or found[-1]["phase"] != last:
            raise ActError(f"the last change is not {last}: {found}")

    async def _act_names(self, items: str, prefix: str, count: int) -> None:
        """Items of a watch of new tasks: each of PREFIX0000 … once, in order."""
        found = [item["name"] for item in json.loads(items)]
        expected = [f"{prefix}{number:04}" for number in range(count)]
        if sorted(found) != expected:
            missing, extra = set(expected) - set(found), set(found) - set(expected)
            raise ActError(
                f"{len(found)} items; missing {sorted(missing)[:5]}, not expected {sorted(extra)[:5]}"
            )

    async def _act_stall(self, seconds: str) -> None:
        """Let a stream go unread for this long."""
        await asyncio.sleep(float(seconds))

    async def _act_finish_elsewhere(self, task: str, output: str, seconds: float = 60.0) -> None:
        """Claim the task as another worker once its lease has expired, and report a success."""
        key, scheduler = self.variables["runner_key"], self.variables["scheduler"]
        await finish_claimed(scheduler, key, f"other-{self.variables['run']}", task, output, seconds)


def _toml(values: Mapping[str, str]) -> str:
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in values.items())


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
