"""A receiver of webhooks on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Received:
    """A request that the receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def task(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """An HTTP server; `answer` returns the status of a response, None for no response."""

    answer: Callable[[Received], int | None] = lambda request: 204
    location: str = ""
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    arrival: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def holds(self, count: int) -> None:
        """Return once `count` requests have arrived."""
        async with self.arrival:
            await self.arrival.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = dict(
                line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in head[1:] if line
            )
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            received = Received(head[0].split()[1], headers, body)
            status = self.answer(received)
            if status is None:
                await reader.read()
            else:
                self.requests.append(received)
                async with self.arrival:
                    self.arrival.notify_all()
                moved = f"location: {self.location}\r\n" if self.location else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{moved}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def receiving(receiver: Receiver, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    server = await asyncio.start_server(receiver._serve, host, receiver.port)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
