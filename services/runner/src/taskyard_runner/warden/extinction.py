"""Finding and killing every process of a run, those that left its process group and session included."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator

from taskyard_runner.warden import process
from taskyard_runner.warden.cgroup import Group
from taskyard_runner.warden.process import Seen

# Its value is the run's directory, which names the run and the warden's data directory.
MARKER = "TASKYARD_RUN"
_MARKER = MARKER.encode()


def kill_run(directory: str, session: int, group: Group | None) -> int:
    """Kill all that is left of a run; how many processes are still to be seen."""
    if group is not None:
        group.kill()
        return len(group.pids())
    return _kill(lambda seen: seen.session == session or process.marker_of(seen.pid, _MARKER) == directory)


def kill_unowned(own: Collection[int], live: Collection[int]) -> int:
    """Kill adopted processes that no live run could own: they hid their session and their environment."""
    me = os.getpid()
    if live:
        return 0
    return _kill(lambda seen: seen.parent == me and seen.pid not in own)


def kill_leftovers(runs_directory: str, sessions: Collection[int]) -> int:
    """Kill what an earlier warden of this data directory left behind; how many are still to be seen."""
    prefix = runs_directory.rstrip("/") + "/"

    def left(seen: Seen) -> bool:
        return seen.session in sessions or process.marker_of(seen.pid, _MARKER).startswith(prefix)

    return _kill(left)


def _kill(chosen: Callable[[Seen], bool]) -> int:
    found = list(_find(chosen))
    # Stopped first, so that none of them forks while the others are killed.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for seen in found:
            process.signal_process(seen.pid, number)
    return len(found)


def _find(chosen: Callable[[Seen], bool]) -> Iterator[Seen]:
    me = os.getpid()
    yield from (seen for seen in process.all_processes() if seen.pid != me and chosen(seen))
