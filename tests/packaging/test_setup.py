"""`make setup` under Ctrl-C: whatever it interrupts, the next run repairs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What set-up reads. The rest of the checkout is left out.
NEEDED = ("Makefile", "requirements.lock", "pyproject.toml", "LICENSE", "tools", "clients", "services")
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", "tests", ".venv")
# The words of each step, in their order, and the file whose appearance Ctrl-C follows. An environment that
# has its interpreter and no pip yet looks whole and is not.
MOMENTS = (
    ("creating .venv", ".venv/bin/python"),
    ("downloading uv", ".venv/uv.txt"),
    ("locked dependencies", ".venv/bin/uv"),
    ("packages of the workspace", ".venv/bin/pytest"),
)
STEP_SECONDS = 300.0


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what set-up reads."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=IGNORED)
        else:
            shutil.copy(source, folder / name)
    return folder


def start(checkout: Path) -> subprocess.Popen[str]:
    """`make setup` as the leader of its own process group, as a terminal starts it."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VIRTUAL_ENV"))
    }
    return subprocess.Popen(
        ["make", "setup"],
        cwd=checkout,
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def interrupt(running: subprocess.Popen[str], words: str, made: Path) -> str:
    """Ctrl-C as soon as the step with these words has begun and a file is there; returns the output."""
    assert running.stdout is not None
    seen = ""
    deadline = time.monotonic() + STEP_SECONDS
    while words not in seen:
        line = running.stdout.readline()
        assert line and time.monotonic() < deadline, f"it never came to {words!r}:\n{seen}"
        seen += line
    while not made.exists():
        assert time.monotonic() < deadline, f"{words!r} never made {made}:\n{seen}"
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    rest, _ = running.communicate(timeout=60)
    return seen + rest


@pytest.mark.timeout(900)
def test_an_interrupt_at_any_step_is_repaired_by_the_next_run(checkout: Path) -> None:
    for words, made in MOMENTS:
        running = start(checkout)
        printed = interrupt(running, words, checkout / made)
        assert running.returncode != 0, f"{words}: it ended before the interrupt\n{printed}"
        assert "interrupted; `make setup` begins again" in printed
        assert "Traceback" not in printed.partition("interrupted;")[2]
        assert not (checkout / ".venv/.setup-done").exists()
    running = start(checkout)
    printed, _ = running.communicate(timeout=STEP_SECONDS)
    assert running.returncode == 0, printed
    assert printed.rstrip().endswith("setup: done") and "Traceback" not in printed
    shown = subprocess.run(
        [checkout / ".venv/bin/taskyard", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "taskyard" in shown.stdout


@pytest.mark.timeout(300)
def test_a_silent_step_shows_progress(checkout: Path, tmp_path: Path) -> None:
    slow = tmp_path / "python3.11"
    slow.write_text('#!/bin/sh\ncase "$*" in *venv*) sleep 5; exit 1;; esac\nexec python3 "$@"\n')
    slow.chmod(0o755)
    ended = subprocess.run(
        ["tools/setup.sh"],
        cwd=checkout,
        env={**os.environ, "PYTHON": str(slow)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    lines = [line for line in ended.stdout.splitlines() if line.startswith("setup: creating .venv")]
    assert len(lines) >= 3 and lines[1].endswith("(2 s)")
    assert "cannot make virtual environments" in ended.stderr
