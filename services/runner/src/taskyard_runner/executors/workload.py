"""A workload as plain values: what to execute, where, and the files it needs beforehand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NotRunnable(Exception):
    """The task can never run as it is described; the text names the field, its value and the remedy."""


class Unsupported(Exception):
    """This runner does not execute such tasks; another may."""


@dataclass(frozen=True)
class Place:
    """Where a run happens: its private and its fresh working directory, and where programs are found."""

    private: Path
    work: Path
    path: str


@dataclass(frozen=True)
class Workload:
    """A program with arguments, the directory to start it in, and private files to write before."""

    argv: Sequence[str]
    cwd: str
    files: Sequence[tuple[Path, bytes]] = ()


def find_program(field: str, program: str, path: str) -> str:
    """The absolute path of a program. Raises NotRunnable if there is none that can be executed."""
    check_text(field, program)
    if "/" in program and not program.startswith("/"):
        raise NotRunnable(f"{field} {program!r} is a relative path; use an absolute one or a name in PATH")
    found = shutil.which(program, path=path)
    if found is not None:
        return found
    if not program.startswith("/"):
        raise NotRunnable(
            f"{field} {program!r} is not in the runner's PATH ({path}); install it or name its path"
        )
    if not os.path.exists(program):
        raise NotRunnable(f"{field} {program!r} does not exist on this host; install it or correct the path")
    raise NotRunnable(f"{field} {program!r} cannot be executed; make it an executable file")


def find_directory(wanted: str, place: Place) -> str:
    """The directory to start in. Raises NotRunnable if it cannot be entered."""
    if not wanted:
        return str(place.work)
    check_text("working_directory", wanted)
    if not os.path.isdir(wanted):
        raise NotRunnable(
            f"working_directory {wanted!r} is no directory of this host; create it or leave it out"
        )
    if not os.access(wanted, os.R_OK | os.X_OK):
        raise NotRunnable(
            f"working_directory {wanted!r} is not readable; allow the runner's user to enter it"
        )
    return wanted


def check_text(field: str, text: str) -> None:
    """Raises NotRunnable for text that no program could be given."""
    if "\0" in text:
        raise NotRunnable(f"{field} {text[:80]!r} contains a NUL character; remove it")
