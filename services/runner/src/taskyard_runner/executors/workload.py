"""A workload as plain values: what to execute, where, and the files it needs beforehand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Where a workload that does not see the host's files finds those of its run.
INSIDE = "/run/taskyard"


class NotRunnable(Exception):
    """The task can never run as it is described; the text names the field, its value and the remedy."""


class Unsupported(Exception):
    """This runner does not execute such tasks; another may."""


@dataclass(frozen=True)
class Engine:
    """A container engine as the self-test proved it: its name and how its client is called."""

    name: str
    client: tuple[str, ...]


@dataclass(frozen=True)
class Containers:
    """How this runner runs containers; without an engine it does not."""

    engine: Engine | None = None
    # What runc finds root file systems in.
    image_dir: Path = Path()
    pull: bool = False
    network: bool = False


@dataclass(frozen=True)
class Place:
    """Where a run happens: its directory, what programs it finds, its environment and its limits."""

    root: Path
    data_dir: Path
    path: str
    # Variables added to the workload's environment.
    env: Mapping[str, str]
    memory_mb: int = 0
    cpu_millis: int = 0
    disk_mb: int = 0
    pids: int = 0
    # The run's own user and group; None = the runner's.
    user: tuple[int, int] | None = None
    containers: Containers = Containers()

    @property
    def private(self) -> Path:
        """Files that only the run and its runner read."""
        return self.root / "private"

    @property
    def work(self) -> Path:
        """The fresh working directory."""
        return self.root / "work"


@dataclass(frozen=True)
class Workload:
    """A program with arguments, the directory to start it in, and private files to write before."""

    argv: Sequence[str]
    cwd: str
    # Of the program; that of the workload inside a host is in the host's files.
    env: Mapping[str, str]
    files: Sequence[tuple[Path, bytes]] = field(default_factory=tuple)
    # Memory of the host beyond the workload's own.
    overhead_mb: int = 0
    # A host of ours that begins with the runner's rights and gives the workload the run's own user itself.
    trusted: bool = False
    # Its first process is an intermediary: SIGTERM goes to its children.
    shielded: bool = False
    # Whether the warden limits it; otherwise the host sees to it.
    limited: bool = True
    # What ends and removes whatever the process has left behind, if it was killed.
    cleanup: Sequence[str] = ()


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


def find_directory(directory: str, place: Place) -> str:
    """The directory to start in. Raises NotRunnable if it cannot be entered."""
    if not directory:
        return str(place.work)
    check_text("working_directory", directory)
    if not os.path.isdir(directory):
        raise NotRunnable(
            f"working_directory {directory!r} is no directory of this host; create it or leave it out"
        )
    if not os.access(directory, os.R_OK | os.X_OK):
        raise NotRunnable(
            f"working_directory {directory!r} is not readable; allow the runner's user to enter it"
        )
    return directory


def host_env(place: Place) -> dict[str, str]:
    """The environment of a host: without the task's variables, which could change the host's behaviour."""
    marker = {name: value for name, value in place.env.items() if name == "TASKYARD_RUN"}
    return {"PATH": place.path, "HOME": str(place.work), "LANG": "C.UTF-8", **marker}


def check_text(field: str, text: str) -> None:
    """Raises NotRunnable for text that no program could be given."""
    if "\0" in text:
        raise NotRunnable(f"{field} {text[:80]!r} contains a NUL character; remove it")
