"""A TCP proxy that can hold back, delay or throttle what it carries, and reset its connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

CHUNK = 64 * 1024


class TcpProxy:
    """Carries connections to `target`, host:port or the path of a socket.

    A direction is open while its event is set; what is read while it is closed waits in the proxy, as it
    would in a network that drops packets until it is healed.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.forth = asyncio.Event()
        self.back = asyncio.Event()
        self.connections = 0
        self.carried_bytes = 0
        self.delay_seconds = 0.0
        self.bytes_per_second = 0.0
        self._fatal_words: bytes | None = None
        self.heal()

    @property
    def address(self) -> str:
        """Where clients reach the target through the proxy."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def open_connections(self) -> int:
        """How many connections it carries now."""
        return len(self._writers) // 2

    def blackhole(self, *, forth: bool = True, back: bool = True) -> None:
        """Carry nothing from the client to the target (forth), from the target to the client (back)."""
        if forth:
            self.forth.clear()
        if back:
            self.back.clear()

    def lose_answers_to(self, words: bytes) -> None:
        """Drop all responses once a client has sent these bytes."""
        self._fatal_words = words

    def heal(self) -> None:
        """Carry everything again."""
        self._fatal_words = None
        self.delay_seconds = self.bytes_per_second = 0.0
        self.forth.set()
        self.back.set()

    def reset(self) -> None:
        """End every connection with RST."""
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            # A connection that its client has closed has no socket any more.
            with suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        """Begin to listen; with `tls` clients speak TLS to the proxy, which is plaintext behind it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        self.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far_reader, far_writer = await self._reach_target()
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(
                self._carry(reader, far_writer, self.forth, self._listen),
                self._carry(far_reader, writer, self.back, _ignore),
            )
        finally:
            self._writers -= {writer, far_writer}

    def _listen(self, data: bytes) -> None:
        if self._fatal_words is not None and self._fatal_words in data:
            self.blackhole(forth=False)

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_open: asyncio.Event,
        listen: Callable[[bytes], None],
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                listen(data)
                await is_open.wait()
                await self._hold_back(len(data))
                self.carried_bytes += len(data)
                writer.write(data)
                await writer.drain()
            await is_open.wait()
        writer.close()

    async def _hold_back(self, size: int) -> None:
        seconds = self.delay_seconds
        if self.bytes_per_second:
            seconds += size / self.bytes_per_second
        if seconds:
            await asyncio.sleep(seconds)

    async def _reach_target(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.target.startswith("/"):
            return await asyncio.open_unix_connection(self.target)
        host, _, port = self.target.rpartition(":")
        return await asyncio.open_connection(host, int(port))


def _ignore(data: bytes) -> None:
    """Data in this direction is not inspected."""


@asynccontextmanager
async def proxy_to(target: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[TcpProxy]:
    """A proxy for as long as the block runs."""
    proxy = TcpProxy(target)
    await proxy.start(tls)
    try:
        yield proxy
    finally:
        await proxy.stop()
