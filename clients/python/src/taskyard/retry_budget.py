"""How much of the load of a client may be repeated calls while a server fails some of them or all."""

from __future__ import annotations

TOKENS = 10.0
PER_SUCCESS = 0.02
PROBE_SECONDS = 0.5
# So many successes in a row mean that the failures are over.
RECOVERED = 30


class RetryBudget:
    """Shared by all calls of a client, so that repeating them does not keep an overloaded server down.

    Calls that succeed at once earn a fiftieth of a retry, a retry that succeeds earns the next one, and one
    retry per half second is always allowed, to notice the end of an outage.
    """

    def __init__(self) -> None:
        self._tokens = TOKENS
        self._in_a_row = 0
        self._next_probe = 0.0

    def succeeded(self, *, retry: bool) -> None:
        self._in_a_row += 1
        earned = TOKENS if self._in_a_row >= RECOVERED else 1.0 if retry else PER_SUCCESS
        self._tokens = min(TOKENS, self._tokens + earned)

    def failed(self) -> None:
        self._in_a_row = 0

    def take(self, now: float) -> bool:
        """Whether a retry may be sent at this time, in seconds of the monotonic clock."""
        if self._tokens >= 1.0:
            self._tokens -= 1.0
        elif now < self._next_probe:
            return False
        self._next_probe = now + PROBE_SECONDS
        return True
