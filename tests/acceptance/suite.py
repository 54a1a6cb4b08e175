"""The real suite under test: `taskyard up` as a process, and the real command line run against it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.harness.leash import tied

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
START_SECONDS = 240.0
STOP_SECONDS = 120.0
COMMAND_SECONDS = 180.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Suite:
    """A running Taskyard; `folder` is a directory in which the command line finds it."""

    def __init__(self, folder: Path, environment: Mapping[str, str], flags: Sequence[str] = ()) -> None:
        self._flags = tuple(flags)
        self.folder = folder
        self.data = folder / ".taskyard"
        self._environment = dict(environment)
        self._lines: list[str] = []
        self._ready = threading.Event()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        ports = ("--taskdb-port", "0", "--scheduler-port", "0", "--gateway-port", "0")
        process = subprocess.Popen(
            tied(BIN / "taskyard", "up", "--data-dir", self.data, *ports, *self._flags),
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.append(line)
            if line.startswith("Ready"):
                self._ready.set()
        self._ready.set()

    def until_ready(self) -> Suite:
        """Returns once everything serves; otherwise fails with the output of `up`."""
        in_time = self._ready.wait(START_SECONDS)
        output = self.output()
        assert in_time and "Ready" in output, f"taskyard up did not get ready:\n{output}{self.logs()}"
        return self

    def stop(self) -> int:
        """Ends it as Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def output(self) -> str:
        """What `up` has printed so far."""
        return "".join(self._lines)

    def logs(self) -> str:
        """The last lines of every service, for the message of a failing test."""
        found = []
        for file in sorted((self.data / "logs").glob("*.log")):
            tail = file.read_text(errors="replace").splitlines()[-15:]
            found.append("\n".join([f"--- {file.name}", *tail]))
        return "\n".join(found)

    def kill_service(self, name: str) -> None:
        """Kills one service on the spot; `up` starts it again."""
        psutil.Process(self.pid_of(name)).kill()

    def pid_of(self, name: str) -> int:
        """The process of one service."""
        for child in psutil.Process(self.process.pid).children():
            if f"taskyard_{name}" in child.cmdline():
                return child.pid
        raise AssertionError(f"{name} is not running")

    @property
    def context(self) -> dict[str, str]:
        """Where the services are, and the key."""
        return dict(tomllib.loads((self.data / "context.toml").read_text()))

    def start_cli(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Starts `taskyard` with these arguments."""
        return subprocess.Popen(
            [BIN / "taskyard", *arguments],
            cwd=self.folder,
            env={**client_environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def cli(self, *arguments: str, **environment: str) -> Ended:
        """Runs `taskyard` with these arguments to its end."""
        process = self.start_cli(*arguments, **environment)
        try:
            out, err = process.communicate(timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            failure = f"`taskyard {shlex.join(arguments)}` did not end"
            raise AssertionError(f"{failure}:\n{out}{err}\n{self.logs()}") from None
        return Ended(process.returncode, out, err)

    def done(self, *arguments: str) -> str:
        """What a command prints that has to work."""
        ended = self.cli(*arguments)
        failure = f"`taskyard {shlex.join(arguments)}` ended with {ended.code}"
        assert ended.code == 0, f"{failure}:\n{ended.out}{ended.err}\n{self.logs()}"
        return ended.out


def until_open(gate: Path) -> tuple[str, ...]:
    """A command that prints "before", waits until the file exists, and prints "after"."""
    return ("sh", "-c", f"echo before; while [ ! -e {gate} ]; do sleep 0.05; done; echo after")


def client_environment() -> dict[str, str]:
    """A bare environment: nothing of the developer's reaches the program under test."""
    return {"PATH": f"{BIN}{os.pathsep}{os.defpath}", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@contextmanager
def running_suite(flags: Sequence[str] = (), **environment: str) -> Iterator[Suite]:
    """A suite in a temporary directory of its own, stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix="taskyard-suite-", ignore_cleanup_errors=True) as folder:
        suite = Suite(Path(folder), {**client_environment(), **environment}, flags)
        try:
            yield suite.until_ready()
        finally:
            if suite.process.poll() is None:
                suite.stop()
