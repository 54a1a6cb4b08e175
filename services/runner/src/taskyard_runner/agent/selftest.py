"""Proving what this runner can do: each kind is executed once by the warden before it is advertised."""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from taskyard.v1.runner_pb2 import (
    EXECUTION_KIND_COMMAND,
    EXECUTION_KIND_CONTAINER,
    EXECUTION_KIND_SCRIPT,
    EXECUTION_KIND_WASM,
    ExecutionKind,
)
from taskyard.v1.task_pb2 import CommandExecution, Execution, ScriptExecution, WasmExecution
from taskyard_kit.logs import get_log
from taskyard_runner.agent.config import AgentConfig
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.removal import Trash
from taskyard_runner.agent.sandbox import Sandboxes
from taskyard_runner.executors import (
    Containers,
    Engine,
    NotRunnable,
    Place,
    Workload,
    container,
    describe,
    wasm,
)
from taskyard_runner.executors.script import INTERPRETERS
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_TIMEOUT = 20.0
# Valid in bash, python and node alike.
_SCRIPT = b"1 == 1\n"
_SCRIPTS = {"bash": b"exit 0\n"}
# (module (func (export "_start")))
_MODULE = bytes.fromhex("0061736d0100000001040160000003020100070a01065f737461727400000a040102000b")
META = "selftest"

log = get_log(__name__)


@dataclass(frozen=True)
class SelfTestResult:
    """The kinds, interpreters and container engine that work on this host."""

    kinds: tuple[ExecutionKind.ValueType, ...]
    interpreters: tuple[str, ...]
    engine: Engine | None = None

    def describe(self) -> Message:
        """The result in the form kept for the next agent."""
        engine = [self.engine.name, *self.engine.client] if self.engine is not None else []
        return {"kinds": self.kinds, "interpreters": self.interpreters, "engine": engine}

    @classmethod
    def parse(cls, kept: Message) -> SelfTestResult:
        """Parse the result that an earlier agent kept."""
        engine = kept.get("engine")
        return cls(
            tuple(kept["kinds"]),
            tuple(kept["interpreters"]),
            Engine(engine[0], tuple(engine[1:])) if engine else None,
        )

    @property
    def names(self) -> frozenset[str]:
        """The kinds as Execution names them."""
        return frozenset(
            ExecutionKind.Name(kind).removeprefix("EXECUTION_KIND_").lower() for kind in self.kinds
        )


class SelfTest:
    """Runs harmless workloads through the warden, as tasks are."""

    def __init__(
        self,
        send_to_warden: Callable[[Message], None],
        runs_directory: str,
        config: AgentConfig,
        sandboxes: Sandboxes,
        trash: Trash,
    ) -> None:
        self._send_to_warden = send_to_warden
        self._runs_directory = runs_directory
        self._config = config
        self._sandboxes = sandboxes
        self._trash = trash
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    def ended(self, message: Message) -> bool:
        """Take the end of a test run; False if it is not one."""
        future = self._waiting.pop(message["run"], None)
        if future is not None and not future.done():
            future.set_result(message["result"])
        return future is not None

    async def run(self) -> SelfTestResult:
        """What works here, of the kinds that the runner is to offer."""
        command, interpreters, modules, engine = await asyncio.gather(
            self._test_command(), self._test_scripts(), self._test_wasm(), self._test_containers()
        )
        passed = {
            EXECUTION_KIND_COMMAND: command,
            EXECUTION_KIND_SCRIPT: bool(interpreters),
            EXECUTION_KIND_CONTAINER: engine is not None,
            EXECUTION_KIND_WASM: modules,
        }
        return SelfTestResult(tuple(kind for kind, works in passed.items() if works), interpreters, engine)

    async def _test_command(self) -> bool:
        program = CommandExecution(program="true")
        return self._offers("command") and await self._try(Execution(command=program))

    async def _test_scripts(self) -> tuple[str, ...]:
        if not self._offers("script"):
            return ()
        bodies = {number: _SCRIPTS.get(name, _SCRIPT) for number, name in INTERPRETERS.items()}
        passed = await asyncio.gather(
            *(
                self._try(Execution(script=ScriptExecution(interpreter=number, body=body)))
                for number, body in bodies.items()
            )
        )
        return tuple(name for name, works in zip(INTERPRETERS.values(), passed, strict=True) if works)

    async def _test_wasm(self) -> bool:
        if not self._offers("wasm"):
            return False
        if problem := wasm.problem():
            log.info("kind_not_offered", kind="wasm", why=problem)
            return False
        return await self._try(Execution(wasm=WasmExecution(inline=_MODULE)))

    async def _test_containers(self) -> Engine | None:
        if not self._offers("container"):
            return None
        choice = self._config.container_engine
        found = container.candidates(choice, self._config.path, Path(self._config.data_dir))
        for engine in found:
            if await self._probe("container", functools.partial(container.describe_probe, engine=engine)):
                return engine
        if not found:
            log.info("kind_not_offered", kind="container", why=f"no engine ({choice}) is installed")
        return None

    def _offers(self, kind: str) -> bool:
        return not self._config.kinds or kind in self._config.kinds

    async def _try(self, execution: Execution) -> bool:
        kind = str(execution.WhichOneof("kind"))
        return await self._probe(kind, functools.partial(describe, execution))

    async def _probe(self, kind: str, described: Callable[[Place], Workload]) -> bool:
        name = f"{META}-{secrets.token_hex(6)}"
        directory = RunDirectory(self._runs_directory, name)
        try:
            directory.give(self._sandboxes.take())
            workload = self._sandboxes.wrap(described(self._place(directory)), directory)
            for path, content in workload.files:
                directory.write(path, content)
            self._waiting[name] = asyncio.get_running_loop().create_future()
            self._send_to_warden(_order(name, workload, directory))
            async with asyncio.timeout(_TIMEOUT):
                result = await self._waiting[name]
        except NotRunnable:
            return False
        except (OSError, TimeoutError) as error:
            log.warning("selftest_failed", kind=kind, error=str(error))
            return False
        finally:
            self._send_to_warden({"op": "forget", "run": name})
            await self._trash.remove(name)
            self._sandboxes.release(directory.owner)
        if result.get("exit_code") != 0:
            log.warning("selftest_failed", kind=kind, result=result)
        return result.get("exit_code") == 0

    def _place(self, directory: RunDirectory) -> Place:
        env = {
            "PATH": self._config.path,
            "HOME": str(directory.work),
            "TASKYARD_RUN": str(directory.root),
        }
        place = Place(directory.root, Path(self._config.data_dir), self._config.path, env)
        return replace(place, user=directory.owner, memory_mb=64, cpu_millis=1000, pids=64)


def containers(config: AgentConfig, tested: SelfTestResult) -> Containers:
    """How containers are run with the engine that was proved."""
    return Containers(
        tested.engine,
        Path(config.image_dir),
        pull=config.container_pull,
        network=config.container_network,
    )


def _order(name: str, workload: Workload, directory: RunDirectory) -> Message:
    return {
        "op": "start",
        "run": name,
        "argv": list(workload.argv),
        "env": dict(workload.env),
        "cwd": workload.cwd,
        "token": secrets.token_hex(16),
        "lease_until": boottime() + _TIMEOUT,
        "forbid_overlap": True,
        "attempt_seconds": _TIMEOUT,
        "grace_seconds": 0,
        "user": None if workload.trusted else directory.owner,
        "shielded": workload.shielded,
        "cleanup": list(workload.cleanup),
        "meta": {META: True},
    }
