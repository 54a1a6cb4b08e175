"""Whether an interrupted call should be retried, how long to wait before the retry, and when to stop."""

from __future__ import annotations

import asyncio
import random
import time

from taskyard import errors

FIRST_DELAY = 0.1
MAX_DELAY = 1.0


def transient(error: errors.TaskyardError) -> bool:
    """Whether a retry may succeed: the server asks for one, is unavailable, or the connection broke."""
    if error.retryable or isinstance(error, errors.ConsumerStalled):
        return True
    # Errors that gRPC itself raises for a broken connection carry no reason; our servers always set one.
    broken = (errors.Code.INTERNAL, errors.Code.UNKNOWN, errors.Code.CANCELLED)
    return not error.reason and error.code in broken


def is_outage(error: errors.TaskyardError) -> bool:
    """Whether the server is away or the connection broke; a server that refuses is not away."""
    return transient(error) and not isinstance(error, errors.ResourceExhausted)


class RetryTimer:
    """Waits longer with each failure in a row, for at most `limit` seconds since the last success.

    `remark` is added to the message of the error that is raised when time is up.
    """

    def __init__(self, limit: float, remark: str = "") -> None:
        self._limit = limit
        self._remark = remark if limit else ""
        self._delay = FIRST_DELAY
        self._deadline = time.monotonic() + limit

    def refresh(self) -> None:
        """Restart the limit after a success."""
        self._delay = FIRST_DELAY
        self._deadline = time.monotonic() + self._limit

    async def wait(self, error: errors.TaskyardError) -> None:
        """Returns when the call should be retried; raises `error` if it is permanent or time is up."""
        requested = error.retry_after.total_seconds() if error.retry_after else 0.0
        delay = max(requested, self._delay * random.uniform(0.5, 1.0))
        if not transient(error):
            raise error
        if time.monotonic() + delay > self._deadline:
            if self._remark:
                error.message = f"{error.message}; {self._remark}"
            raise error
        self._delay = min(MAX_DELAY, self._delay * 2)
        await asyncio.sleep(delay)
