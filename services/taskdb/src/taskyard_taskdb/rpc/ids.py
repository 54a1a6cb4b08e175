"""Ids that the server generates: UUIDv7, strictly increasing within a process."""

from __future__ import annotations

import os
import time

# An id of version 7 and a separator; the places of its other digits, of which the clock fills the first.
_BLANK = b"00000000-0000-7000-0000-000000000000 "
_PLACES = tuple(place for place in range(36) if _BLANK[place : place + 1] == b"0")
_TICK_DIGITS = 15
# Sets the first two bits of a byte to 0b10.
_VARIANT = bytes(value & 0x3F | 0x80 for value in range(256))


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
        digits = "".join([f"{tick:015x}" for tick in range(first, first + count)]).encode()
        # The variant is 0b10, then come 62 random bits.
        drawn = bytearray(os.urandom(8 * count))
        drawn[::8] = drawn[::8].translate(_VARIANT)
        ends = drawn.hex().encode()
        # By columns of digits: formatting each id in turn takes three times as long.
        texts = bytearray(_BLANK * count)
        for digit, place in enumerate(_PLACES[:_TICK_DIGITS]):
            texts[place :: len(_BLANK)] = digits[digit::_TICK_DIGITS]
        for digit, place in enumerate(_PLACES[_TICK_DIGITS:]):
            texts[place :: len(_BLANK)] = ends[digit::16]
        return texts.decode().split()


def uuid_bytes(text: str) -> bytes:
    """The sixteen bytes of an id in text form."""
    return bytes.fromhex(text.replace("-", ""))


def uuid_text(value: bytes) -> str:
    """The usual text form with hyphens."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
