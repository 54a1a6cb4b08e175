"""Proving what this runner can do: each kind is executed once by the warden before it is advertised."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass

from taskyard.v1.runner_pb2 import EXECUTION_KIND_COMMAND, EXECUTION_KIND_SCRIPT, ExecutionKind
from taskyard.v1.task_pb2 import CommandExecution, Execution, ScriptExecution
from taskyard_kit.logs import get_log
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.executors import NotRunnable, Place, describe
from taskyard_runner.executors.script import INTERPRETERS
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_TIMEOUT = 20.0
# Valid in bash, python and node alike.
_SCRIPT = b"1 == 1\n"
_SCRIPTS = {"bash": b"exit 0\n"}
META = "selftest"

log = get_log(__name__)


@dataclass(frozen=True)
class Proof:
    """What was proved."""

    kinds: tuple[ExecutionKind.ValueType, ...]
    interpreters: tuple[str, ...]


class SelfTest:
    """Runs harmless workloads through the warden, as tasks are."""

    def __init__(self, tell_warden: Callable[[Message], None], runs_directory: str, path: str) -> None:
        self._tell = tell_warden
        self._runs_directory = runs_directory
        self._path = path
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    def ended(self, message: Message) -> bool:
        """Take the end of a test run; False if it is not one."""
        future = self._waiting.pop(message["run"], None)
        if future is not None and not future.done():
            future.set_result(message["result"])
        return future is not None

    async def prove(self) -> Proof:
        """What works here."""
        command = Execution(command=CommandExecution(program=sys.executable, args=["-S", "-c", "pass"]))
        scripts = {
            name: Execution(script=ScriptExecution(interpreter=number, body=_SCRIPTS.get(name, _SCRIPT)))
            for number, name in INTERPRETERS.items()
        }
        proved = await asyncio.gather(*(self._try(execution) for execution in (command, *scripts.values())))
        interpreters = tuple(name for name, works in zip(scripts, proved[1:], strict=True) if works)
        kinds = [EXECUTION_KIND_COMMAND] if proved[0] else []
        kinds += [EXECUTION_KIND_SCRIPT] if interpreters else []
        return Proof(tuple(kinds), interpreters)

    async def _try(self, execution: Execution) -> bool:
        name = f"{META}-{secrets.token_hex(6)}"
        directory = RunDirectory(self._runs_directory, name)
        try:
            directory.make()
            workload = describe(execution, Place(directory.private, directory.work, self._path))
            for path, content in workload.files:
                directory.write(path, content)
            self._waiting[name] = asyncio.get_running_loop().create_future()
            self._tell(_order(name, list(workload.argv), workload.cwd, self._path, str(directory.root)))
            result = await asyncio.wait_for(self._waiting[name], _TIMEOUT)
        except NotRunnable:
            return False
        except (OSError, TimeoutError) as error:
            log.warning("selftest_failed", kind=execution.WhichOneof("kind"), error=str(error))
            return False
        finally:
            self._tell({"op": "forget", "run": name})
            await directory.remove()
        if result.get("exit_code") != 0:
            log.warning("selftest_failed", kind=execution.WhichOneof("kind"), result=result)
        return result.get("exit_code") == 0


def _order(name: str, argv: list[str], cwd: str, path: str, root: str) -> Message:
    return {
        "op": "start",
        "run": name,
        "argv": argv,
        "env": {"PATH": path, "HOME": cwd, "TASKYARD_RUN": root},
        "cwd": cwd,
        "token": secrets.token_hex(16),
        "lease_until": boottime() + _TIMEOUT,
        "forbid_overlap": True,
        "attempt_seconds": _TIMEOUT,
        "grace_seconds": 0,
        "meta": {META: True},
    }
