"""The runner under test: a command line against a test scheduler, and the files that its tasks write."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.leash import leashed
from tests.runner_kit.broken import Tampering, proxied
from tests.runner_kit.peer import KitScheduler

ROOT = Path(__file__).parents[2]
_FILL = ("--scheduler", "{scheduler}", "--id", "{id}", "--data-dir", "{data}", "--capacity", "4")
OURS = (sys.executable, "-m", "taskyard_runner", *_FILL, "--kind", "command", "--sandbox", "none")
GO = (str(ROOT / "clients/go/build/taskyard-go-runner"), *_FILL)
KNOWN = {"ours": OURS, "go": GO}
START_SECONDS = 60.0
STOP_SECONDS = 60.0


def build_go_runner() -> None:
    """Build the runner in Go; raises CalledProcessError."""
    build = ["go", "-C", "clients/go", "build", "-o", "build/", "./cmd/taskyard-go-runner"]
    subprocess.run(build, cwd=ROOT, check=True)


class NotExercised(Exception):
    """The runner does not offer what a rule is about."""


@dataclass(frozen=True)
class Runner:
    """A runner by its command line; `tampering` breaks a rule on its link."""

    command: Sequence[str]
    tampering: Callable[[], Tampering] = Tampering


@dataclass
class Subject:
    """A scheduler and the runner that is connected to it, at the address `scheduler`."""

    peer: KitScheduler
    scheduler: str
    command: Sequence[str]
    folder: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the runner; what it prints is appended to runner.log."""
        values = {"{scheduler}": self.scheduler, "{id}": "kit", "{data}": str(self.folder / "data")}
        argv = [values.get(part, part) for part in self.command]
        (self.folder / "data").mkdir(exist_ok=True)
        with (self.folder / "runner.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *leashed(*argv),
                env={**os.environ, "TASKYARD_KEY": "ty_kit_0123456789abcdef"},
                stdout=log,
                stderr=log,
            )

    async def kill(self) -> None:
        """kill -9 of the runner, with all that it started."""
        assert self.process is not None
        for child in _children(self.process.pid):
            os.kill(child, signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> None:
        """SIGTERM, then the end of the process; killed if it does not come."""
        if self.process is None or self.process.returncode is not None:
            return
        for child in _children(self.process.pid):
            os.kill(child, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.process.wait()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"the runner does not end within {STOP_SECONDS:g} s of SIGTERM") from None

    def path(self, name: str) -> Path:
        return self.folder / name

    def until_open(self, name: str) -> str:
        """Shell text that waits until a file exists."""
        return f"while [ ! -e {self.path(name)} ]; do sleep 0.05; done"

    def beating(self, name: str) -> tuple[str, ...]:
        """A command that touches a file ten times a second for as long as it lives."""
        return ("sh", "-c", f"while :; do touch {self.path(name)}; sleep 0.1; done")

    async def has_stopped(self, name: str, seconds: float) -> bool:
        """Whether a beating command stops within this time."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self.path(name).exists() and time.time() - self.path(name).stat().st_mtime > 1.5:
                return True
            await asyncio.sleep(0.1)
        return False


def _children(pid: int) -> list[int]:
    """The runner itself: the only child of its leash."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@asynccontextmanager
async def subject(runner: Runner, folder: Path, **settings: Any) -> AsyncIterator[Subject]:
    """A connected runner, ended afterwards."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(KitScheduler(**settings))
        scheduler = peer.address
        if runner.tampering is not Tampering:
            scheduler = await stack.enter_async_context(proxied(scheduler, runner.tampering()))
        under_test = Subject(peer, scheduler, runner.command, folder)
        await under_test.start()
        try:
            await peer.session_number(1, START_SECONDS)
            yield under_test
        finally:
            if under_test.process is not None and under_test.process.returncode is None:
                await under_test.kill()
