"""Leftovers of an earlier warden of this data directory: kills its processes, reads its lost runs."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from taskyard_runner.warden import kill
from taskyard_runner.warden.cgroup import Hierarchy
from taskyard_runner.warden.run import boot_id

_ROUNDS = 200
_PAUSE_SECONDS = 0.02
_CLEANUP_SECONDS = 30.0


@dataclass(frozen=True)
class LostRun:
    """A run whose warden was killed before its outcome was safe."""

    run: str
    session: int
    boot_id: str
    meta: dict[str, Any]
    # What removes that which is no process of the run, a container.
    cleanup: list[str]


def read_lost_runs(runs_directory: str) -> list[LostRun]:
    """The runs that were under way."""
    return list(_read(runs_directory))


def _read(runs_directory: str) -> Iterator[LostRun]:
    for name in sorted(os.listdir(runs_directory)):
        try:
            with open(f"{runs_directory}/{name}/run.json") as file:
                content = json.load(file)
            cleanup = content.get("cleanup", [])
            yield LostRun(name, content["session"], content["boot_id"], content["meta"], cleanup)
        except (OSError, ValueError, KeyError):
            # Not started, or torn by a crash of the host: nothing can be left of it but its directory.
            continue


def kill_leftovers(runs_directory: str, lost: list[LostRun], hierarchy: Hierarchy | None) -> int:
    """Kill until nothing is left; how many processes resisted for several seconds."""
    sessions = {run.session for run in lost if run.boot_id == boot_id()}
    left = 0
    for _ in range(_ROUNDS):
        left = _kill_once(runs_directory, sessions, hierarchy)
        if not left:
            break
        time.sleep(_PAUSE_SECONDS)
    _clean(lost)
    return left


def _clean(lost: list[LostRun]) -> None:
    if any(run.cleanup for run in lost):
        # Not at the top: the warden is as small as it can be, and this is rare.
        import subprocess
    for run in lost:
        if run.cleanup:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    run.cleanup,
                    timeout=_CLEANUP_SECONDS,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )


def remove_groups(hierarchy: Hierarchy) -> None:
    """Remove every control group, at the end of the warden."""
    for _ in range(_ROUNDS):
        if all([group.kill() == 0 and group.remove() for group in hierarchy.leftovers()]):  # noqa: C419
            break
        time.sleep(_PAUSE_SECONDS)
    hierarchy.close()


def _kill_once(runs_directory: str, sessions: set[int], hierarchy: Hierarchy | None) -> int:
    left = kill.kill_leftovers(runs_directory, sessions)
    for group in hierarchy.leftovers() if hierarchy is not None else ():
        group.kill()
        left += 0 if group.remove() else 1
    return left
