"""The order in which calls of several tenants begin while the server is saturated.

gRPC hands calls over one by one, in the order of their arrival, and each is worked on at once: a tenant
that keeps fifty calls open delays every call of another tenant by the work of fifty. While the loop is late
and more than one tenant calls, the calls of a busy tenant wait here instead, and as many begin as keep the
loop in time. Long calls rest between their parts.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque

# Calls of one tenant that always begin at once, in each window.
FREE_CALLS = 2
WINDOW_SECONDS = 0.02
# A tenant is alone if no other one has called for this long; then nothing waits.
CONTENDED_SECONDS = 1.0
# How often the loop is measured while calls exceed the free ones, and how late it may be.
TICK_SECONDS = 0.003
LATE_SECONDS = 0.002
# After so long without being late, calls begin at once again.
CONGESTED_SECONDS = 0.5
_LEAST_PER_TICK, _MOST_PER_TICK = 0.05, 50.0
# How long a call with much work rests between two parts of it, of about half a millisecond each.
REST_SECONDS = 0.003


class FairStarts:
    """Decides for each call whether it begins at once or waits for its tenant's turn."""

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._window_end = 0.0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._last_owner = ""
        self._contended_until = 0.0
        self._congested_until = 0.0
        # When the next tick is due, 0 if there is none; and how many calls each lets begin.
        self._due = 0.0
        self._busy_until = 0.0
        self._per_tick = 4.0
        self._credit = 0.0

    def enter(self, owner: str) -> asyncio.Future[None] | None:
        """What a call of this tenant has to await before it begins, if anything."""
        now = time.perf_counter()
        if owner != self._last_owner:
            self._last_owner = owner
            self._contended_until = now + CONTENDED_SECONDS
        if now >= self._window_end:
            self._begun.clear()
            self._window_end = now + WINDOW_SECONDS
        begun = self._begun[owner] = self._begun.get(owner, 0) + 1
        if begun <= FREE_CALLS or now > self._contended_until:
            return None
        return self._exceed(owner, now)

    def accept(self, method: str) -> asyncio.Future[None] | None:
        """What has to be awaited before the next call of this method is accepted, if anything.

        Methods take turns with the tenants whose calls wait.
        """
        now = time.perf_counter()
        return None if now > self._contended_until else self._exceed(method, now)

    async def rest(self) -> None:
        """Let other calls run, in the middle of one with much work."""
        await asyncio.sleep(REST_SECONDS if time.perf_counter() < self._congested_until else 0)

    def _exceed(self, owner: str, now: float) -> asyncio.Future[None] | None:
        loop = asyncio.get_running_loop()
        self._busy_until = now + CONGESTED_SECONDS
        if not self._due:
            self._schedule(loop, now)
        if now > self._congested_until:
            return None
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        return turn

    def _schedule(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._due = now + TICK_SECONDS
        loop.call_later(TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.perf_counter()
        if now - self._due > LATE_SECONDS:
            self._per_tick = max(_LEAST_PER_TICK, self._per_tick * 0.7)
            self._congested_until = now + CONGESTED_SECONDS
        else:
            self._per_tick = min(self._per_tick + 0.05 + self._per_tick * 0.05, _MOST_PER_TICK)
        if now > self._contended_until:
            self._begin_some(sum(map(len, self._waiting.values())))
        elif (credit := self._credit + self._per_tick) >= 1.0:
            self._begin_some(int(credit))
            self._credit = credit % 1.0
        else:
            self._credit = credit
        self._due = 0.0
        if self._waiting or now < self._busy_until:
            self._schedule(loop, now)

    def _begin_some(self, most: int) -> None:
        """Let waiting calls begin, tenants in turn."""
        begun = 0
        while self._waiting and begun < most:
            owner, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            self._waiting.move_to_end(owner)
            if not turns:
                del self._waiting[owner]
            if not turn.done():
                turn.set_result(None)
                begun += 1
