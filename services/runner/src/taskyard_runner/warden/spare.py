"""A child forked ahead: it has joined its control groups and waits for the command to execute.

Joining a control group takes the kernel ten milliseconds and more (an RCU grace period), which no start
should have to wait for.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
from dataclasses import asdict

from taskyard_runner.warden import process
from taskyard_runner.warden.cgroup import Group, Hierarchy
from taskyard_runner.warden.loop import Loop, Timer
from taskyard_runner.warden.process import ChildSetup, Launch

# A spare unused for this long is ended, so that an idle runner stays small.
_IDLE_SECONDS = 60.0

_numbers = itertools.count(1)


class Spare:
    """A waiting child with its pipes and its group. Raises OSError if the system has no room for it."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        # The pid keeps the name apart from those of an earlier warden.
        name = f"{os.getpid()}-{next(_numbers)}"
        self.group: Group | None = hierarchy.make(name) if hierarchy is not None else None
        with contextlib.ExitStack() as stack:
            self._go_read, self._go = _pipe(stack)
            self.stdout, stdout = _pipe(stack)
            self.stderr, stderr = _pipe(stack)
            self._order = os.memfd_create("order")
            stack.callback(os.close, self._order)
            joins = self.group.joins() if self.group is not None else ()
            self.pid, self.errors = process.spawn(ChildSetup(stdout, stderr, joins=joins), self._await)
            stack.pop_all()
        for fd in (self._go_read, stdout, stderr):
            os.close(fd)

    def _await(self) -> Launch | None:
        """In the child: what to execute, None if the warden gives the spare up."""
        os.close(self._go)
        if not os.read(self._go_read, 1):
            return None
        launch = json.loads(os.pread(self._order, os.fstat(self._order).st_size, 0))
        launch["rlimits"] = {int(kind): value for kind, value in launch["rlimits"].items()}
        return Launch(**launch)

    def launch(self, launch: Launch) -> None:
        """Have the child execute it. Raises OSError if the child has exited."""
        content = json.dumps(asdict(launch)).encode()
        try:
            os.write(self._order, content)
            os.write(self._go, b"!")
        finally:
            os.close(self._order)
            os.close(self._go)

    def discard(self) -> None:
        """Give it up."""
        process.signal_process(self.pid, signal.SIGKILL)
        for fd in (self._order, self._go, self.stdout, self.stderr, self.errors):
            os.close(fd)


class SpareStock:
    """Keeps one spare while there are starts."""

    def __init__(self, loop: Loop, hierarchy: Hierarchy | None) -> None:
        self._loop = loop
        self._hierarchy = hierarchy
        self._spare: Spare | None = None
        self._idle: Timer | None = None

    @property
    def pid(self) -> int:
        """Of the spare; 0 if there is none."""
        return self._spare.pid if self._spare is not None else 0

    def take(self) -> Spare:
        """A spare, made now if there is none; the next one follows. Raises OSError."""
        taken, self._spare = self._spare or Spare(self._hierarchy), None
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.after(_IDLE_SECONDS, self.clear)
        self._loop.after(0, self._make)
        return taken

    def _make(self) -> None:
        if self._spare is None:
            # If there is no room, the next start meets the same problem and reports it.
            with contextlib.suppress(OSError):
                self._spare = Spare(self._hierarchy)

    def clear(self) -> None:
        """Give the spare up, or note that it has ended."""
        spare, self._spare = self._spare, None
        if spare is not None:
            self.give_up(spare)

    def give_up(self, spare: Spare) -> None:
        """End a spare that executes nothing."""
        spare.discard()
        if spare.group is not None:
            remove_group(self._loop, spare.group)


def remove_group(loop: Loop, group: Group, attempt: int = 1) -> None:
    """Remove a group whose processes are ending."""
    if not group.remove() and attempt < 50:
        loop.after(0.02 * attempt, lambda: remove_group(loop, group, attempt + 1))


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    stack.callback(os.close, read_end)
    stack.callback(os.close, write_end)
    return read_end, write_end
