"""Follows the README of a client word for word, in a fresh copy of the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.suite import BIN, ROOT, Suite
from tests.clients.toolchain import run, tool_environment
from tests.docs.pages import Step, console_steps, matches

# A file to write: its path on a line of its own, then its content.
_FILE = r"^`(?P<path>\S+)`:\n\n```\w+\n(?P<content>.*?)^```"
_CONSOLE = r"^```console\n(?P<console>.*?)^```"
_PART = re.compile(f"{_FILE}|{_CONSOLE}", re.MULTILINE | re.DOTALL)


def fresh_copy(suite: Suite, folder: Path) -> Path:
    """The files of the checkout as a clone has them, with the suite's context and the programs of .venv."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target, follow_symlinks=False)
            shutil.copymode(source, target, follow_symlinks=False)
    (folder / ".venv").symlink_to(BIN.parent)
    (folder / ".taskyard").symlink_to(suite.data)
    return folder


def parts(readme: Path) -> Iterator[tuple[str, str] | Step]:
    """What a reader does, from top to bottom: files to write, as path and content, and commands."""
    for found in _PART.finditer(readme.read_text()):
        if found["path"]:
            yield found["path"], found["content"]
        else:
            yield from console_steps(found["console"])


def follow(readme: str, suite: Suite, folder: Path) -> None:
    """Do what the page says; fails at the first command that does not print what the page shows."""
    copy = fresh_copy(suite, folder)
    done = 0
    for part in parts(copy / readme):
        if isinstance(part, tuple):
            (copy / part[0]).parent.mkdir(parents=True, exist_ok=True)
            (copy / part[0]).write_text(part[1])
            continue
        ended = run("bash", "-c", part.command, cwd=copy, environment=tool_environment())
        shown = f"{readme}\n$ {part.command}\n{ended.stdout}\n{suite.logs()}"
        assert ended.returncode == 0 and matches(part.shown, ended.stdout), shown
        done += 1
    assert done, f"{readme} shows no command"
