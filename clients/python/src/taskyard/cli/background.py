"""A `taskyard up` in another process: started, found by its data directory, awaited and stopped."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taskyard.cli.failure import FAILED, TIME_UP, UNREACHABLE, CommandFailed
from taskyard.context import patience_seconds
from taskyard.local_instance import nearby_data_dir, starting_instance

if TYPE_CHECKING:
    from taskyard.cli.session import Connection

READY = "Ready"
POLL_SECONDS = 0.1


def start_detached(arguments: list[str]) -> int:
    """Runs `taskyard up` with these arguments in a session of its own; returns once it serves or failed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "taskyard.cli.main", "up", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith(READY):
                click.echo("Ready. `taskyard down` stops it.")
                # The process is left running on purpose.
                process.returncode = 0
                return 0
            click.echo(line, nl=False)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        raise
    return process.wait() or FAILED


def find_data_dir(given: Path | None, default: Path) -> Path:
    """The data directory: the given one, the nearest .taskyard upwards, or the default."""
    return given or nearby_data_dir() or default


def await_start(connection: Connection) -> None:
    """Waits for a `taskyard up` that is starting and whose server the command is for.

    Raises CommandFailed if it still starts when the patience of the connection is over.
    """
    if connection.address or connection.context or (instance := starting_instance()) is None:
        return
    patience = patience_seconds(connection.patience)
    state = f"`taskyard up` (process {instance.pid}) is starting in {instance.data_dir}"
    if patience:
        click.echo(f"taskyard: {state}; waiting for it, up to {patience:g} s", err=True)
    deadline = time.monotonic() + patience
    while starting_instance() == instance:
        if time.monotonic() >= deadline:
            remark = f" after {patience:g} s (the setting `patience`)" if patience else ""
            hint = f"try again once it is ready; its logs are in {instance.data_dir / 'logs'}"
            raise CommandFailed(f"{state}{remark}; {hint}", UNREACHABLE)
        time.sleep(POLL_SECONDS)


def stop(pid: int, timeout: float) -> None:
    """Stops a `taskyard up` as Ctrl-C does and waits for its end; raises CommandFailed after `timeout`."""
    try:
        process = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        message = f"process {pid} belongs to another user; stop it as that user"
        raise CommandFailed(message) from None
    try:
        if not select.select([process], [], [], timeout)[0]:
            raise CommandFailed(f"process {pid} has not ended after {timeout:g} s", TIME_UP)
    finally:
        os.close(process)
