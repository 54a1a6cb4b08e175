"""Ids that the server generates: UUIDv7, strictly increasing within a process."""

from __future__ import annotations

import random
import time


class Uuid7:
    """Generates ids in ascending order (RFC 9562, method 3: milliseconds and a 12-bit fraction)."""

    def __init__(self) -> None:
        self._last = 0

    def draw(self) -> bytes:
        """The next id, sixteen bytes."""
        return uuid_bytes(self.draw_texts(1)[0])

    def draw_texts(self, count: int) -> list[str]:
        """The next ids in the usual text form with hyphens."""
        milliseconds, rest = divmod(time.time_ns(), 1_000_000)
        ticks = (milliseconds << 12) | (rest * 4096 // 1_000_000)
        # If the clock stops or goes back, the fraction counts on and carries into the milliseconds.
        first = max(ticks, self._last + 1)
        self._last = first + count - 1
        # The variant is 0b10, then come 62 random bits.
        return [
            f"{tick >> 28:08x}-{tick >> 12 & 0xFFFF:04x}-7{tick & 0xFFF:03x}"
            f"-{0x8000 | end >> 48:04x}-{end & 0xFFFFFFFFFFFF:012x}"
            for tick in range(first, first + count)
            for end in (random.getrandbits(62),)
        ]


def uuid_bytes(text: str) -> bytes:
    """The sixteen bytes of an id in text form."""
    return bytes.fromhex(text.replace("-", ""))


def uuid_text(value: bytes) -> str:
    """The usual text form with hyphens."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
