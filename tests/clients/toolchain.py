"""Toolchains of the clients in other languages, and programs that are run with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, ROOT

STEP_SECONDS = 900


def require(program: str) -> None:
    """Skip the test where a toolchain is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def tool_environment(**extra: str) -> dict[str, str]:
    """The developer's environment, in which package managers have their settings, without a Taskyard."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TASKYARD_")}
    path = os.pathsep.join([str(BIN), clean.get("PATH", os.defpath)])
    return {**clean, "PATH": path, **extra}


def run(
    *command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The ended command, with its output."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=dict(environment or tool_environment()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_SECONDS,
    )


def succeed(*command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that has to succeed."""
    ended = run(*command, cwd=cwd, environment=environment)
    shown = f"{' '.join(map(str, command))} ended with {ended.returncode}\n{ended.stdout}"
    assert ended.returncode == 0, shown
    return ended.stdout
