"""A runner of an ordinary user, also where root runs the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
import taskyard_kit
import taskyard_runner
from services.runner.tests.runner_process import RunnerProcess

USER = 54321
SOURCES = [
    str(Path(str(package.__file__)).parents[1]) for package in (taskyard, taskyard_kit, taskyard_runner)
]


def can_reach(folder: Path) -> bool:
    return all(os.stat(path).st_mode & 0o001 for path in (folder, *folder.parents))


def python() -> str:
    """A Python that an ordinary user can execute; skips the test if there is none."""
    if os.getuid() != 0:
        return sys.executable
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(name, path="/usr/bin:/usr/local/bin")):
        if candidate and can_reach(Path(candidate).resolve().parent) and can_reach(Path(SOURCES[0])):
            return candidate
    pytest.skip(f"no {name} and sources that an ordinary user can reach")


def as_user(*argv: str) -> tuple[str, ...]:
    """The command of an ordinary user."""
    prefix = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return argv if os.getuid() else (*prefix, *argv)


@contextlib.contextmanager
def ordinary_runner(address: str, **environment: str) -> Iterator[RunnerProcess]:
    """A runner of that user, not started yet, in a directory that only it uses."""
    found = python()
    folder = tempfile.mkdtemp(prefix="taskyard-")
    os.chmod(folder, 0o777)
    path = os.pathsep.join((*SOURCES, *site.getsitepackages()))
    runner = RunnerProcess(Path(folder) / "data", address, PYTHONPATH=path, **environment)
    runner.program = as_user(found)
    try:
        yield runner
    finally:
        # Python's own removal is recursive, and some tests leave deep trees.
        subprocess.run(["rm", "-rf", folder], check=True)
