"""The digest of what a task runs: its type and its execution, taken from the spec as it is stored."""

import hashlib
from collections.abc import Iterator

# Fields of TaskSpec.
_TASK_TYPE = 1
_EXECUTION = 3
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


def spec_digest(spec: bytes) -> str:
    """Equal for tasks with the same executor; payload, labels and policy do not count."""
    made = hashlib.sha256()
    for number, value in sorted(_fields(spec)):
        if number in (_TASK_TYPE, _EXECUTION):
            made.update(f"{number}:{len(value)}:".encode() + value)
    return made.hexdigest()[:32]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that are texts or messages."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == _LENGTH_DELIMITED:
            length, at = _varint(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        elif tag & 7 == 0:
            _, at = _varint(message, at)
        else:
            at += _FIXED[tag & 7]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
