"""A `taskyard up` on this machine: found by the lock of its data directory, and whether it still starts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taskyard.context import CONTEXT_VARIABLE, NEARBY_FILE, config_file, default_data_dir


@dataclass(frozen=True)
class Instance:
    """A running `taskyard up`."""

    data_dir: Path
    pid: int


def nearby_data_dir(start: Path | None = None) -> Path | None:
    """The data directory in the nearest .taskyard folder upwards; None if there is none."""
    here = start or Path.cwd()
    for folder in (here, *here.parents):
        if (folder / NEARBY_FILE.parent / "lock").exists():
            return folder / NEARBY_FILE.parent
    return None


def owner_of(data_dir: Path) -> int | None:
    """The process id of the `taskyard up` that uses the directory; None if none does. Raises OSError."""
    try:
        lock = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A lock that is tried for a moment would be in the way of an `up` that starts in that moment. Its
        # owner writes its id while it holds the lock, so an id of a dead process needs no try.
        pid = _recorded_pid(lock)
        if pid is None or not _is_alive(pid):
            return None
        # After the end of `up` another process may have the same id.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _recorded_pid(lock)
    finally:
        os.close(lock)
    return None


def starting_instance(
    environment: Mapping[str, str] | None = None, start: Path | None = None
) -> Instance | None:
    """The `taskyard up` whose context file a client would read here, if it has not written that file yet."""
    environment = os.environ if environment is None else environment
    if environment.get("TASKYARD_ADDRESS") or environment.get(CONTEXT_VARIABLE):
        return None
    data_dir = nearby_data_dir(start)
    if data_dir is None and not config_file(environment).is_file():
        data_dir = default_data_dir(environment)
    try:
        if data_dir is None or _has_context(data_dir) or (pid := owner_of(data_dir)) is None:
            return None
    except OSError:
        # It belongs to another user, and so does its context file.
        return None
    return Instance(data_dir, pid)


def _has_context(data_dir: Path) -> bool:
    """Whether the context file was written by the last `up`, which writes its lock when it begins."""
    try:
        began = (data_dir / "lock").stat().st_mtime_ns
        return (data_dir / NEARBY_FILE.name).stat().st_mtime_ns >= began
    except FileNotFoundError:
        return False


def _recorded_pid(lock: int) -> int | None:
    text = os.pread(lock, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
