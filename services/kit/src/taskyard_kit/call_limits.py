"""Limits of concurrent calls per caller: one tenant's heavy calls queue behind each other, not others'."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from taskyard.errors import Overloaded

MAX_WAITING = 64
_RETRY_AFTER = timedelta(seconds=1)


class CallLimits:
    """At most `at_once` calls of one owner run at a time; a bounded number waits, in order."""

    def __init__(self, at_once: int, max_waiting: int = MAX_WAITING) -> None:
        self._at_once = at_once
        self._max_waiting = max_waiting
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def call(self, owner: str) -> AsyncIterator[None]:
        """Enter when there is room for a call of this owner. Raises Overloaded if too many wait already."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: str) -> None:
        if self._running.get(owner, 0) < self._at_once:
            self._running[owner] = self._running.get(owner, 0) + 1
            return
        queue = self._waiting.setdefault(owner, deque())
        if len(queue) >= self._max_waiting:
            raise Overloaded(owner, f"{self._max_waiting} waiting heavy calls", retry_after=_RETRY_AFTER)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn came together with the cancellation: the next one gets it.
                self._leave(owner)
            elif turn in queue:
                queue.remove(turn)
            raise

    def _leave(self, owner: str) -> None:
        """Hand the place of a call to the first that waits."""
        queue = self._waiting.get(owner)
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(owner, None)
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
