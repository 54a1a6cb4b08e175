"""What is written of protobuf's wire format without building a message."""

from __future__ import annotations

_SHORT = [bytes((n,)) for n in range(128)]


def varint(value: int) -> bytes:
    """A number that is not negative."""
    if value < 128:
        return _SHORT[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(key: bytes, value: bytes) -> bytes:
    """A field of bytes, text or a message, with its key."""
    return b"".join((key, varint(len(value)), value))
