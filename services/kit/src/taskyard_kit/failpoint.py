"""Failpoints: named steps at which a test kills, stops, delays or fails the process, by TASKYARD_FAILPOINTS.

    CREATE_BEFORE_COMMIT = failpoint.declare("create.before_commit")
    ...
    CREATE_BEFORE_COMMIT.hit()          # or: await CREATE_BEFORE_COMMIT.reach()

    TASKYARD_FAILPOINTS="create.before_commit=kill@3;taskdb/sweep.expiry=pause:/tmp/fifo;x=raise;y=sleep:0.5"

Actions: kill (SIGKILL to itself), stop (SIGSTOP), raise, sleep:SECONDS, pause:FIFO; `@3` waits for the third
hit. A name may be prefixed with a service, `taskdb/`, so that one environment serves several processes.
A pause writes its name to the FIFO when it is reached and continues once something is written back.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

ENVIRONMENT = "TASKYARD_FAILPOINTS"

_declared: dict[str, Failpoint] = {}


class FailpointError(RuntimeError):
    """Raised by the action `raise`, and for a setting with an unknown failpoint or action."""


class Failpoint:
    """One named step. Passing it costs an attribute test while it is not set."""

    __slots__ = ("_action", "_skip", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._action: Callable[[str], None] | None = None
        self._skip = 0

    @property
    def is_set(self) -> bool:
        """Whether a test wants something to happen at this step."""
        return self._action is not None

    def hit(self) -> None:
        """Pass this step; a sleep or pause blocks the thread."""
        if self._action is not None and self._due():
            self._action(self.name)

    async def reach(self) -> None:
        """Pass this step; a sleep or pause blocks this coroutine only."""
        if self._action is not None and self._due():
            await asyncio.to_thread(self._action, self.name)

    def _due(self) -> bool:
        # Only the configured hit acts: a process that continued after a pause does not pause again.
        self._skip -= 1
        return self._skip == 0

    def _set(self, action: Callable[[str], None] | None, hit: int) -> None:
        self._action, self._skip = action, hit


def declare(name: str) -> Failpoint:
    """Declares a failpoint, at module level; raises FailpointError if the name is declared twice."""
    if name in _declared:
        raise FailpointError(f"failpoint {name} is declared twice")
    _declared[name] = Failpoint(name)
    return _declared[name]


def declared() -> tuple[str, ...]:
    """The names of all failpoints of the modules imported so far."""
    return tuple(sorted(_declared))


def configure(setting: str, service: str = "") -> None:
    """Set failpoints as in TASKYARD_FAILPOINTS; raises FailpointError for an unknown name or action."""
    for point in _declared.values():
        point._set(None, 0)
    for entry in filter(None, (part.strip() for part in setting.split(";"))):
        name, _, action = entry.partition("=")
        owner, _, bare = name.rpartition("/")
        if not owner or owner == service:
            _find(bare)._set(*_parse(entry, action))


def _find(name: str) -> Failpoint:
    if name not in _declared:
        near = difflib.get_close_matches(name, _declared, n=1, cutoff=0.3)
        hint = f"did you mean {near[0]}?" if near else f"declared are: {', '.join(declared()) or 'none'}"
        raise FailpointError(f"{ENVIRONMENT}: unknown failpoint {name!r}; {hint}")
    return _declared[name]


def _parse(entry: str, action: str) -> tuple[Callable[[str], None], int]:
    action, _, count = action.partition("@")
    verb, _, argument = action.partition(":")
    verbs = ("kill", "stop", "raise") if not argument else ("sleep", "pause")
    if verb not in verbs or (count and not count.isdigit()) or count == "0":
        raise FailpointError(
            f"{ENVIRONMENT}: {entry!r} is not <name>=kill|stop|raise|sleep:<seconds>|pause:<fifo>[@<hit>]"
        )
    return _action(entry, verb, argument), int(count or 1)


def _action(entry: str, verb: str, argument: str) -> Callable[[str], None]:
    if verb == "sleep":
        try:
            seconds = float(argument)
        except ValueError:
            raise FailpointError(
                f"{ENVIRONMENT}: {entry!r}: {argument!r} is not a number of seconds"
            ) from None
        return lambda name: time.sleep(seconds)
    if verb == "pause":
        return lambda name: _pause(name, Path(argument))
    return {"kill": _kill, "stop": _stop, "raise": _raise}[verb]


def _kill(name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise FailpointError(f"failpoint {name}")


def _pause(name: str, fifo: Path) -> None:
    fifo.write_text(name)
    fifo.read_text()
