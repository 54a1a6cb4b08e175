"""The agent's end of the socket pair: sends orders to the warden and receives its messages."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from taskyard_runner.warden.protocol import AGENT_FD, Decoder, Message, encode

_MESSAGE_LIMIT = 64 << 20
_READ_BYTES = 1 << 18


class WardenClient:
    """Sends orders without waiting; they are small and the warden always reads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = Decoder(_MESSAGE_LIMIT)
        self._early: list[Message] = []

    @classmethod
    async def connect(cls, fd: int = AGENT_FD) -> WardenClient:
        """Take over the descriptor that the warden left open."""
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
        return cls(reader, writer)

    async def hello(self) -> Message:
        """The warden's first message; raises ConnectionError if there is none."""
        while not self._early:
            self._early += await self._receive()
        return self._early.pop(0)

    async def listen(self, handler: Callable[[Message], None]) -> None:
        """Pass on every message; returns when the warden has exited."""
        try:
            while True:
                for message in self._early or await self._receive():
                    handler(message)
                self._early = []
        except ConnectionError:
            return

    async def _receive(self) -> list[Message]:
        data = await self._reader.read(_READ_BYTES)
        if not data:
            raise ConnectionResetError("the warden is gone")
        return self._decoder.feed(data)

    def send(self, message: Message) -> None:
        """Order something."""
        self._writer.write(encode(message))

    async def close(self) -> None:
        """Send the remaining messages and close."""
        self._writer.close()
        # A warden that was killed resets the connection.
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
