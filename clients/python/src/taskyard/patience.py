"""When an interrupted call is worth another try, how long to wait before it, and when to give up."""

from __future__ import annotations

import asyncio
import random
import time

from taskyard import errors

FIRST_DELAY = 0.1
LONGEST_DELAY = 1.0


def transient(error: errors.TaskyardError) -> bool:
    """Whether the same call may work later: the server asks for it, is away, or the connection broke."""
    if error.retryable or isinstance(error, errors.ConsumerStalled):
        return True
    # What gRPC says of a connection that ended badly carries no reason; our servers always give one.
    broken = (errors.Code.INTERNAL, errors.Code.UNKNOWN, errors.Code.CANCELLED)
    return not error.reason and error.code in broken


class Patience:
    """Waits longer with each failure in a row, for at most `limit` seconds since the last success."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._delay = FIRST_DELAY
        self._give_up = time.monotonic() + limit

    def refresh(self) -> None:
        """Note a success."""
        self._delay = FIRST_DELAY
        self._give_up = time.monotonic() + self._limit

    async def wait(self, error: errors.TaskyardError) -> None:
        """Returns when the call may be repeated; raises `error` if that is of no use or the time is up."""
        asked = error.retry_after.total_seconds() if error.retry_after else 0.0
        delay = max(asked, self._delay * random.uniform(0.5, 1.0))
        if not transient(error) or time.monotonic() + delay > self._give_up:
            raise error
        self._delay = min(LONGEST_DELAY, self._delay * 2)
        await asyncio.sleep(delay)
