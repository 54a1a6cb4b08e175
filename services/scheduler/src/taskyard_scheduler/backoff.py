"""Growing, jittered waits between attempts."""

from __future__ import annotations

import random


class Backoff:
    """Each wait lies between half and all of a delay that doubles up to `longest`."""

    def __init__(self, first: float = 0.1, longest: float = 2.0, rng: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._delay = first
        self._rng = rng or random.Random()

    def next(self) -> float:
        """The next delay in seconds."""
        delay, self._delay = self._delay, min(self._longest, self._delay * 2)
        return delay * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Starts again with the first delay after a success."""
        self._delay = self._first
