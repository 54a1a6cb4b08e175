"""The engine of `taskyard up`: everything on this machine, from the first word on the screen to the last."""

import asyncio
import sys
from pathlib import Path

from taskyard_standalone.console_link import console_link
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import StandaloneError
from taskyard_standalone.settings import UpSettings
from taskyard_standalone.signals import StopRequests
from taskyard_standalone.supervision import Announce
from taskyard_standalone.welcome import welcome
from taskyard_standalone.yard import Yard

__all__ = ["UpSettings", "run_up", "up"]


def run_up(settings: UpSettings) -> int:
    """Runs Taskyard until it is stopped; returns the exit code. Must be called on the main thread."""
    return asyncio.run(up(settings))


async def up(settings: UpSettings, announce: Announce | None = None) -> int:
    """0 after a stop by SIGINT, SIGTERM or SIGHUP; 1 after an error, of which one line goes to stderr."""
    requests = StopRequests()
    requests.install()
    try:
        settings.check()
        with DataDirectory(settings.data_path()) as data:
            await _run(settings, data, requests, announce or _print)
    except StandaloneError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or settings.data_dir}: {error.strerror or error}")
    return 0


async def _run(settings: UpSettings, data: DataDirectory, requests: StopRequests, announce: Announce) -> None:
    yard = Yard(settings, data, announce)
    announce(f"Starting Taskyard in {data.path}")
    try:
        if await requests.unless_stopped(yard.start()):
            served = yard.addresses
            assert served is not None
            link = await console_link(served.gateway, data.path / "context.toml") if served.gateway else None
            announce(welcome(settings, data.path, Path.cwd(), served.gateway, served.global_tasks, link))
            await requests.unless_stopped(yard.keep())
    finally:
        if yard.parts:
            announce("Stopping (once more to hurry)")
        await yard.stop(requests.hurry)
    announce("Stopped. The data is kept; start again to go on.")


def _fail(line: str) -> int:
    print(f"taskyard up: {line}", file=sys.stderr, flush=True)
    return 1


def _print(line: str) -> None:
    # A closed terminal or pipe is no reason to stop serving.
    try:
        print(line, flush=True)
    except BrokenPipeError:
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
