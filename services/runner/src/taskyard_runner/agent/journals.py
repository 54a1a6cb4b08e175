"""Journals of ended runs that neither the warden nor a function host lists.

A killed warden or function host loses its list of ended runs. Their output is on disk, and the journal
names its run, so the next agent ships the journal before it removes it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from taskyard.v1.lease_pb2 import LeaseRef
from taskyard_kit.logs import get_log
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.run import lease_of
from taskyard_runner.warden.journal import read_run

log = get_log(__name__)


class Journal(NamedTuple):
    """The output of an ended run, alone in a directory."""

    lease: LeaseRef
    directory: RunDirectory


def rescue_journals(runs_directory: str, listed: Collection[str]) -> list[Journal]:
    """Moves each journal of an unlisted run into a directory of its own; its other files stay."""
    rescued = []
    for name in sorted(set(os.listdir(runs_directory)) - set(listed)):
        path = Path(runs_directory, name, "journal")
        try:
            lease = _lease(path)
            if lease is not None:
                rescued.append(Journal(lease, _move(path, runs_directory)))
        except OSError as error:
            log.warning("journal_unreadable", path=str(path), error=str(error))
    return rescued


def _lease(path: Path) -> LeaseRef | None:
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return lease_of(read_run(path) or {})
    except (KeyError, TypeError, ValueError):
        # The journal of a host, of a self-test or of a version that did not name the run.
        return None


def _move(path: Path, runs_directory: str) -> RunDirectory:
    directory = RunDirectory(runs_directory, f"j{secrets.token_hex(8)}")
    directory.root.mkdir(0o700)
    path.rename(directory.journal)
    return directory
