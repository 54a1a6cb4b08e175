"""A `taskyard up` in the background: started, found by its data directory, and stopped."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import click

from taskyard.cli.failure import FAILED, TIME_UP, CommandFailed
from taskyard.context import NEARBY_FILE

READY = "Ready"


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
    if given is not None:
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / NEARBY_FILE.parent / "lock").exists():
            return folder / NEARBY_FILE.parent
    return default


def owner_of(data_dir: Path) -> int | None:
    """The process id of the `taskyard up` that uses the directory; None if none does."""
    try:
        lock = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{data_dir / 'lock'} cannot be read: {error.strerror}") from None
    try:
        # `up` holds this lock while it runs. After its end another process may have the same id.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(lock, 32, 0))
    finally:
        os.close(lock)
    return None


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
