"""A Taskyard of one's own (`make up`) nearby: its scheduler, and the runner key that it made for itself."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

_FOLDER = ".taskyard"
_NAMES = ("TASKYARD_SCHEDULER", "TASKYARD_KEY")


def find_nearby(argv: Sequence[str], environ: Mapping[str, str], start: Path) -> dict[str, str]:
    """The defaults of the two variables where neither they nor their flags are given.

    All or nothing: a key found here is never sent to a scheduler named elsewhere.
    """
    flags = [argument.partition("=")[0] for argument in argv]
    if "--scheduler" in flags or "--key" in flags or any(environ.get(name) for name in _NAMES):
        return {}
    for folder in (start, *start.parents):
        if not _trusted(folder / _FOLDER / "context.toml"):
            continue
        try:
            scheduler = _read(folder / _FOLDER / "context.toml")["scheduler"]
            key = _read(folder / _FOLDER / "keys.toml")["runner"]
        except (OSError, KeyError, ValueError):
            continue
        return {"TASKYARD_SCHEDULER": scheduler, "TASKYARD_KEY": key}
    return {}


def _trusted(file: Path) -> bool:
    """Only its owner, who is root or this user, can have written it: it decides whose tasks run here."""
    try:
        found = file.stat()
    except OSError:
        return False
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022


def secret_files(start: Path) -> tuple[str, ...]:
    """The files with keys of every Taskyard nearby."""
    folders = [folder / _FOLDER for folder in (start, *start.parents)]
    files = [folder / name for folder in folders for name in ("context.toml", "keys.toml")]
    return tuple(str(file) for file in files if file.exists())


def _read(file: Path) -> dict[str, str]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
