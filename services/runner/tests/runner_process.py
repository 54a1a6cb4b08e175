"""A real runner process for tests, and what can be seen of it from outside."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from taskyard.v1.common_pb2 import EnvVar
from taskyard.v1.task_pb2 import (
    INTERPRETER_BASH,
    CommandExecution,
    Execution,
    FunctionExecution,
    Interpreter,
    ScriptExecution,
    TaskSpec,
)
from taskyard_runner.warden.cgroup import find_hierarchy
from taskyard_runner.warden.leftovers import remove_groups
from taskyard_runner.warden.naming import digest

EXIT_SECONDS = 60.0
_IN_MODIFY = 2
DEFAULTS = {
    # Proving the other kinds takes a while, and few tests need them.
    "TASKYARD_RUNNER_KIND": "command,script",
    # The tasks of most tests write where the tests see it.
    "TASKYARD_RUNNER_SANDBOX": "none",
}


def command(*argv: str, **fields: object) -> TaskSpec:
    """A command task."""
    execution = Execution(command=CommandExecution(program=argv[0], args=argv[1:]))
    return TaskSpec(execution=execution, **fields)  # type: ignore[arg-type]


def shell(text: str, **fields: object) -> TaskSpec:
    """A bash script task."""
    return script(text, INTERPRETER_BASH, **fields)


def script(text: str, interpreter: Interpreter.ValueType, **fields: object) -> TaskSpec:
    """A script task."""
    execution = Execution(script=ScriptExecution(interpreter=interpreter, body=text.encode()))
    return TaskSpec(execution=execution, **fields)  # type: ignore[arg-type]


def function(name: str, payload: object = None, **fields: object) -> TaskSpec:
    """A function task."""
    spec = TaskSpec(
        execution=Execution(function=FunctionExecution(function=name)),
        **fields,  # type: ignore[arg-type]
    )
    if payload is not None:
        spec.payload.raw = json.dumps(payload).encode()
    return spec


def variables(**values: str) -> list[EnvVar]:
    return [EnvVar(name=name, value=value) for name, value in values.items()]


class RunnerProcess:
    """`taskyard-runner` on a data directory of its own."""

    def __init__(
        self, data_dir: Path, address: str, *, id: str = "r1", key: str = "ty_test_secret", **environment: str
    ) -> None:
        self.data_dir = data_dir
        self.address = address
        self.id = id
        self.key = key
        self.environment = environment
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self.program: tuple[str, ...] = (sys.executable,)
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *arguments: str, **environment: str) -> RunnerProcess:
        """Start it; what it prints is appended to `log`."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TASKYARD_", "OTEL_"))}
        flags = ("--scheduler", self.address, "--id", self.id, "--data-dir", str(self.data_dir))
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.program,
                "-m",
                "taskyard_runner",
                *flags,
                *arguments,
                env={
                    **clean,
                    **DEFAULTS,
                    "TASKYARD_KEY": self.key,
                    **self.environment,
                    **environment,
                },
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    @property
    def pid(self) -> int:
        """Of the warden."""
        assert self.process is not None
        return self.process.pid

    @property
    def agent_pid(self) -> int:
        """Of the agent that runs now; 0 if there is none."""
        for child in psutil.Process(self.pid).children():
            try:
                if "taskyard_runner.agent" in child.cmdline():
                    return child.pid
            except psutil.NoSuchProcess:
                continue
        return 0

    def host_pids(self) -> list[int]:
        """Of the function hosts that run now."""
        found = []
        for child in psutil.Process(self.pid).children():
            try:
                if "taskyard_runner.functions.host" in child.cmdline():
                    found.append(child.pid)
            except psutil.NoSuchProcess:
                continue
        return found

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def wait(self) -> int:
        """Its exit code."""
        assert self.process is not None
        return await asyncio.wait_for(self.process.wait(), EXIT_SECONDS)

    async def kill(self) -> None:
        """SIGKILL to the warden; the agent and the tasks die with it."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def clean(self) -> None:
        """Remove the control groups that a killed warden leaves for the next one on its directory."""
        hierarchy, _ = find_hierarchy(digest(str(self.data_dir)))
        if hierarchy is not None:
            remove_groups(hierarchy)

    async def connected(self, times: int = 1) -> RunnerProcess:
        """Returns once it has opened that many sessions with a scheduler."""
        await self.printed(lambda output: output.count('"session_opened"') >= times)
        return self

    async def printed(self, found: Callable[[str], bool]) -> None:
        """Returns once its output meets the condition; inotify reports new output."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch = watch_file(self.log)

        def more() -> None:
            os.read(watch, 4096)
            changed.set()

        loop.add_reader(watch, more)
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                while not found(self.output()):
                    await changed.wait()
                    changed.clear()
        finally:
            loop.remove_reader(watch)
            os.close(watch)

    def sessions(self) -> int:
        """How many sessions it has opened so far."""
        return self.output().count('"session_opened"')

    def kept_runs(self) -> list[Path]:
        """Directories of runs; those that are made ahead hold no file yet."""
        return [path for path in (self.data_dir / "runs").iterdir() if _holds_files(path)]

    def output(self) -> str:
        return self.log.read_text()


def watch_file(path: Path) -> int:
    """A descriptor that becomes readable with every change of the file (inotify)."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if libc.inotify_add_watch(watch, os.fsencode(path), _IN_MODIFY) < 0:
        raise OSError(ctypes.get_errno(), f"inotify_add_watch {path}")
    return watch


async def wait_gone(pid: int, seconds: float = 10.0) -> None:
    """Returns once no such process exists, or raises TimeoutError."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), seconds)
    finally:
        loop.remove_reader(fd)
        os.close(fd)


class Gate:
    """Holds workloads that come to it (`flock -s "$GATE" true`) until it is opened."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self.path = folder / name
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        """Let everybody through."""
        os.close(self._fd)


class Pause:
    """A failpoint that stops the process at a named step until it is released."""

    def __init__(self, folder: Path, failpoint: str) -> None:
        self.fifo = folder / f"pause-{failpoint}"
        os.mkfifo(self.fifo)
        self.setting = f"{failpoint}=pause:{self.fifo}"

    async def reached(self) -> None:
        """Returns once the process is there."""
        await asyncio.wait_for(asyncio.to_thread(self.fifo.read_text), EXIT_SECONDS)

    async def proceed(self) -> None:
        """Let it go on."""
        await asyncio.to_thread(self.fifo.write_text, "go")


def _holds_files(folder: Path) -> bool:
    return any(files for _, _, files in os.walk(folder))
