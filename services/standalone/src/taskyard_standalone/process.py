"""Child programs: started so that they cannot outlive the supervisor, awaited, signalled and ended."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from taskyard_standalone.account import Account
from taskyard_standalone.logs import LogFile

_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class Program:
    """What to execute and as whom; `environment` is the whole environment it gets."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directory: Path | None = None
    account: Account | None = None
    # Sent when the supervisor dies. Services keep nothing that a kill could lose.
    death_signal: signal.Signals = signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """What a program left behind that ran to its end."""

    code: int
    output: str = field(repr=False)
    complaints: str = field(repr=False)

    @property
    def last_complaint(self) -> str:
        """The last line it wrote to stderr, or its exit code if it wrote none."""
        lines = [line.strip() for line in self.complaints.splitlines() if line.strip()]
        return lines[-1] if lines else describe_end(self.code)


class Child:
    """A running program, leading a session of its own: a terminal's Ctrl-C reaches the supervisor only."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen

    @classmethod
    def start(cls, program: Program, log: LogFile) -> "Child":
        """Starts `program` with both outputs appended to `log`.

        Must be called on the main thread: the kernel sends the death signal when the starting thread ends.
        """
        descriptor = log.open()
        try:
            return cls(_spawn(program, descriptor, descriptor))
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Returns the exit code once the program has ended."""
        if self.code is None:
            await _readable(os.pidfd_open(self.pid))
        return self._popen.wait()

    async def wait_at_most(self, seconds: float) -> bool:
        """Whether the program ended within that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait()
        return self.code is not None

    def send(self, number: signal.Signals) -> None:
        """Signals the program itself; nothing happens if it has ended."""
        self._popen.send_signal(number)

    async def kill(self) -> None:
        """Ends the program and all of its process group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self.wait()


async def run_to_end(program: Program) -> Ended:
    """Runs `program` and returns what it wrote; when cancelled, ends it first."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        child = Child(_spawn(program, output.fileno(), complaints.fileno()))
        try:
            code = await child.wait()
        except BaseException:
            await child.kill()
            raise
        return Ended(code, _text(output), _text(complaints))


def describe_end(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _spawn(program: Program, stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
    account = program.account
    how = {
        "parent": os.getpid(),
        "death_signal": int(program.death_signal),
        "directory": str(program.directory) if program.directory else None,
        "account": [account.uid, account.gid] if account else None,
    }
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(how), *program.argv],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=dict(program.environment),
        start_new_session=True,
    )


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
