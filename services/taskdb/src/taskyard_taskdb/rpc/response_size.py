"""The bound of responses in bytes: below the 4 MiB that gRPC clients accept unless they are configured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf.message import Message

# One item that is larger is returned alone: its own limits are those of the request that stored it.
MAX_RESPONSE_BYTES = 3_500_000
# What one call reads from the database for a response that leaves most of it out, and holds at a time.
MAX_READ_BYTES = 64 * 1024 * 1024
HELD_BYTES = 8 * 1024 * 1024
# Tag and length of an item in a repeated field.
_FRAME = 6

M = TypeVar("M", bound=Message)


def size_in_response(message: Message) -> int:
    """The bytes that an item adds to its response."""
    return message.ByteSize() + _FRAME


def fitting(messages: Iterable[M]) -> list[M]:
    """The first messages that fit into one response, at least one; later ones are not made."""
    found: list[M] = []
    size = 0
    for message in messages:
        size += size_in_response(message)
        if found and size > MAX_RESPONSE_BYTES:
            break
        found.append(message)
    return found
