"""Finding and killing every process of a run, those that left its process group and session included."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator, Set

from taskyard_runner.warden import process
from taskyard_runner.warden.seen import Seen, all_processes, marker_of, open_files

# Its value is the run's directory, which names the run and the warden's data directory.
MARKER = "TASKYARD_RUN"
_MARKER = MARKER.encode()


def kill_run(directory: str, session: int, pipes: Set[str], own_pids: Collection[int]) -> int:
    """Kill all that is left of a run without a control group; how many processes are still to be seen.

    They are found by their session, by the marker in their environment, or, where an orphan hid both, by the
    run's pipes.
    """
    me = os.getpid()

    def belongs(seen: Seen) -> bool:
        if seen.session == session or marker_of(seen.pid, _MARKER) == directory:
            return True
        adopted = seen.parent == me and seen.pid not in own_pids
        return adopted and not pipes.isdisjoint(open_files(seen.pid))

    return _kill(belongs)


def followers(session: int) -> list[int]:
    """The processes of a session, without the one that leads it."""
    return [seen.pid for seen in all_processes() if seen.session == session and seen.pid != session]


def kill_unowned(own_pids: Collection[int]) -> int:
    """Kill adopted processes, when no run is live that could own them: they hid every sign of theirs."""
    me = os.getpid()
    return _kill(lambda seen: seen.parent == me and seen.pid not in own_pids)


def kill_leftovers(runs_directory: str, sessions: Collection[int]) -> int:
    """Kill the processes of an earlier warden of this data directory; how many survive."""
    prefix = runs_directory.rstrip("/") + "/"

    def left(seen: Seen) -> bool:
        return seen.session in sessions or marker_of(seen.pid, _MARKER).startswith(prefix)

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
    yield from (seen for seen in all_processes() if seen.pid != me and chosen(seen))
