"""The order in which calls of several tenants begin: one with many open calls waits for the others' arrival.

gRPC hands calls over one by one, in the order of their arrival, and each is worked on at once. A tenant with
fifty open calls would delay every call of another tenant by the work of fifty; with this, by their arrival.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque

# Calls of one tenant that begin at once, however many tenants there are.
FREE_CALLS = 4
# A tenant is alone if no other one has called for this long; then nothing waits.
CONTENDED_SECONDS = 1.0
# Waiting calls begin when none has arrived for so long; about 50 µs pass between two that came together.
QUIET_SECONDS = 0.0002
# They begin after this time even if calls keep arriving.
LONGEST_SECONDS = 0.01
# The time that the loop may spend on calls that it lets begin together.
ROUND_SECONDS = 0.001
_MOST_TOGETHER = 16


class FairStarts:
    """Counts the running calls of each tenant, and lets those beyond FREE_CALLS begin in turns."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._last_owner = ""
        self._contended_until = 0.0
        self._arrived_at = 0.0
        self._released_at = 0.0
        self._together = 1
        self._measured = False

    def enter(self, owner: str) -> asyncio.Future[None] | None:
        """Count a call; returns what it has to await before it begins, if anything. `leave` ends it."""
        running = self._running.get(owner, 0)
        self._running[owner] = running + 1
        if owner != self._last_owner:
            self._last_owner = owner
            self._contended_until = time.perf_counter() + CONTENDED_SECONDS
        if running < FREE_CALLS and not self._waiting:
            return None
        return self._wait(owner, running)

    def leave(self, owner: str) -> None:
        """End a call that `enter` has counted."""
        running = self._running[owner] - 1
        if running:
            self._running[owner] = running
        else:
            del self._running[owner]

    def _wait(self, owner: str, running: int) -> asyncio.Future[None] | None:
        now = self._arrived_at = time.perf_counter()
        if running < FREE_CALLS or now >= self._contended_until:
            return None
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._released_at, self._measured = now, False
            loop.call_soon(self._release, loop)
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        return turn

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        """In each round of the loop while calls wait: let some begin, unless others are arriving."""
        now = time.perf_counter()
        if self._measured:
            # The round since the last release has worked on what that let begin.
            fast = now - self._released_at < ROUND_SECONDS
            self._together = min(self._together + 1, _MOST_TOGETHER) if fast else max(1, self._together // 2)
            self._measured = False
        arriving = now - self._arrived_at < QUIET_SECONDS
        if not arriving or now - self._released_at > LONGEST_SECONDS:
            self._release_some()
            self._released_at, self._measured = now, True
        if self._waiting:
            loop.call_soon(self._release, loop)

    def _release_some(self) -> None:
        begun = 0
        while self._waiting and begun < self._together:
            owner, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            self._waiting.move_to_end(owner)
            if not turns:
                del self._waiting[owner]
            if not turn.done():
                turn.set_result(None)
                begun += 1
