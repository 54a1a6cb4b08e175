"""Places that tenants take in turn: many requests of one tenant delay that tenant, not the others."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

# The owner of work that belongs to no tenant, or to several; it has no limit of its own.
SHARED = ""


class NoTurn(Exception):
    """No place became free in time."""


class Turns:
    """A number of places; one tenant has `per_owner` of them at most, and those that wait take turns."""

    def __init__(self, places: int, per_owner: int, seconds: float) -> None:
        self.per_owner = per_owner
        self._free = places
        self._seconds = seconds
        self._used: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def enter(self, owner: str) -> None:
        """Take a place. Raises NoTurn if none becomes free in time."""
        if self._free and self._admits(owner) and owner not in self._waiting:
            self._take(owner)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # The turn came together with the cancellation.
                self.leave(owner)
            else:
                self._forget(owner, turn)
            if isinstance(error, TimeoutError):
                raise NoTurn from None
            raise

    def leave(self, owner: str) -> None:
        """Give a place back; the next tenant in turn gets it."""
        self._free += 1
        self._used[owner] -= 1
        if not self._used[owner]:
            del self._used[owner]
        if self._waiting:
            self._admit_next()

    def _admits(self, owner: str) -> bool:
        return owner == SHARED or self._used[owner] < self.per_owner

    def _take(self, owner: str) -> None:
        self._free -= 1
        self._used[owner] += 1

    def _admit_next(self) -> None:
        for owner in list(self._waiting):
            if not self._free:
                return
            turns = self._waiting[owner]
            # Callers that were cancelled a moment ago and have not left yet.
            while turns and turns[0].done():
                turns.popleft()
            if turns and self._admits(owner):
                self._waiting.move_to_end(owner)
                self._take(owner)
                turns.popleft().set_result(None)
            if not turns:
                del self._waiting[owner]

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(owner)
        if turns is None or turn not in turns:
            return
        turns.remove(turn)
        if not turns:
            del self._waiting[owner]
