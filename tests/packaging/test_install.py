"""A fresh machine: the built distributions in an empty environment, used as docs/howto/install.md says."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, matches, steps
from tests.docs.shell import follow
from tests.harness.processes import free_port

PAGE = "docs/howto/install.md"
PAGE_SECONDS = 400
DATABASE = "postgresql://taskyard:secret@db.example.com/taskyard"
PACKAGES = 7


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    command = [sys.executable, "tools/dist.py", "--target", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "built twice with equal bytes and checked by twine" in made.stdout
    return folder


@pytest.mark.timeout(400)
def test_the_distributions_are_complete_and_listed_with_their_digests(dist: Path) -> None:
    files = sorted(path.name for path in dist.iterdir())
    assert sum(name.endswith(".whl") for name in files) == PACKAGES
    assert sum(name.endswith(".tar.gz") for name in files) == PACKAGES
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sorted([*sums, "SHA256SUMS"]) == files
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest


def empty_environment(folder: Path) -> dict[str, str]:
    """A machine with python3 and nothing of this checkout; pip resolves to the locked versions."""
    programs = folder / "bin"
    programs.mkdir()
    python = getattr(sys, "_base_executable", sys.executable)
    (programs / "python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (programs / "python3").chmod(0o755)
    pins = folder / "pins.txt"
    locked = (ROOT / "requirements.lock").read_text().splitlines()
    pins.write_text("\n".join(line.rstrip(" \\") for line in locked if "==" in line))
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HOME"))}
    path = f"{programs}{os.pathsep}{os.defpath}"
    return {
        **kept,
        "PATH": path,
        "LANG": "C.UTF-8",
        "PIP_CONSTRAINT": str(pins),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.mark.timeout(PAGE_SECONDS + 60)
def test_the_page_works_on_a_fresh_machine(dist: Path, empty_database_url: str, tmp_path: Path) -> None:
    shutil.copytree(dist, tmp_path / "dist")
    ports = {documented: str(free_port()) for documented in ("7420", "7421", "7480")}
    done = []
    for step in steps(PAGE):
        command, shown = step.command.replace(DATABASE, f"'{empty_database_url}'"), step.shown
        for documented, own in ports.items():
            command, shown = command.replace(documented, own), shown.replace(documented, own)
        done.append((command, shown))
    outputs = follow([command for command, _ in done], tmp_path, empty_environment(tmp_path), PAGE_SECONDS)
    logs = "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in tmp_path.glob("*.log"))
    for (command, shown), printed in zip(done, outputs, strict=True):
        assert matches(shown, printed), f"{PAGE}\n$ {command}\n{printed}\n{logs}"
