"""What /proc shows of processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    state: str
    parent: int
    session: int
    start_ticks: int


def look(pid: int) -> Seen | None:
    """The /proc entry of a process; None if it has exited."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may contain anything, so the fields count from the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Seen(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def all_processes() -> Iterator[Seen]:
    """Every process that is alive, zombies excluded."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := look(int(name))) is not None and seen.state not in "ZX":
            yield seen


def marker_of(pid: int, variable: bytes) -> str:
    """The value of an environment variable a process was started with; empty if unknown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read()
    except OSError:
        return ""
    for entry in content.split(b"\0"):
        if entry.startswith(variable + b"="):
            return entry[len(variable) + 1 :].decode(errors="replace")
    return ""


def open_files(pid: int) -> list[str]:
    """The open files of a process, as /proc names them."""
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass
    return found
