"""Ids that the server generates: UUIDv7, strictly increasing within a process."""

from __future__ import annotations

import random
import time

_VERSION = 7 << 76
_VARIANT = 0b10 << 62


class Uuid7:
    """Generates ids in ascending order (RFC 9562, method 3: milliseconds and a 12-bit fraction)."""

    def __init__(self) -> None:
        self._last = 0

    def draw(self) -> bytes:
        """The next id, sixteen bytes."""
        milliseconds, rest = divmod(time.time_ns(), 1_000_000)
        ticks = (milliseconds << 12) | (rest * 4096 // 1_000_000)
        # If the clock stops or goes back, the fraction counts on and carries into the milliseconds.
        self._last = ticks = max(ticks, self._last + 1)
        high = (ticks >> 12) << 80
        return (high | _VERSION | (ticks & 0xFFF) << 64 | _VARIANT | random.getrandbits(62)).to_bytes(16)


def uuid_text(value: bytes) -> str:
    """The usual text form with hyphens."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
