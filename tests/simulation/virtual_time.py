"""An event loop whose clock jumps to the next timer: hours pass in moments, and a seed fixes every step."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
# How often a leftover task is cancelled.
CANCELLATIONS = 20


class Deadlock(AssertionError):
    """Nothing is left to happen, and the simulation has not ended."""


class _JumpingSelector:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("every task waits and no timer is set")
        self._loop.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio without I/O. `now` is the time in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self._selector = _JumpingSelector(self)
        # A timer that is due counts as due although the jump ended a rounding error before it.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self.now

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    loop = VirtualLoop()
    # The loop swallows what cancelled tasks of the simulation leave behind.
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        return loop.run_until_complete(work)
    finally:
        _end_tasks(loop)
        loop.close()


def _end_tasks(loop: VirtualLoop) -> None:
    """Cancels leftover tasks repeatedly: one that ignores a cancellation would otherwise run forever."""
    for _ in range(CANCELLATIONS):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
    raise Deadlock(f"these do not end when they are cancelled: {asyncio.all_tasks(loop)}")
