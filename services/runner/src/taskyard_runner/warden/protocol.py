"""The protocol of warden and agent: JSON objects, one per line, over a socket pair.

    warden: hello  started  output  progress  ended  request  drain  release  restart
    agent:  hello  start  stop  lease  guard  unguard  note  saved  forget  keep  answer  bye

`hello` names the version that each side speaks; both then speak the lower one, so an agent may be newer than
the warden that starts it. Unknown operations and fields are ignored.
"""

from __future__ import annotations

import json
from typing import Any

VERSION = 1

# The agent finds its end of the socket pair here.
AGENT_FD = 3

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """One message as it is sent."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Decoder:
    """Cuts a byte stream into messages."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now; raises ValueError for a line that is too long or no object."""
        self._buffer += data
        if b"\n" not in data:
            self._check(len(self._buffer))
            return []
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        self._check(len(rest))
        return [self._parse(line) for line in lines if line.strip()]

    def _check(self, length: int) -> None:
        if length > self._limit:
            raise ValueError(f"a message of more than {self._limit} bytes")

    def _parse(self, line: bytes) -> Message:
        self._check(len(line))
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("a message that is no JSON object")
        return message
