"""Exchanges with PostgreSQL, counted on the wire by a proxy that understands its protocol.

An exchange is what a client sends until it has to wait for the server: statements that are sent together are
one, COPY from the client is two (the statement, then the rows).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from tests.harness.tcp_proxy import CHUNK, TcpProxy

# Requests for encryption, which a server on a local socket refuses with one byte.
_ENCRYPTION = (80877103, 80877104)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
LABEL_WIDTH = 80


@dataclass
class Exchange:
    """What was sent together: when (CLOCK_MONOTONIC), by which session, and the statements."""

    time: float
    session: int
    statements: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The beginnings of its statements."""
        return "; ".join(text[:LABEL_WIDTH] for text in self.statements) or "(rows)"


class _Messages:
    """Cuts a stream into messages of a type and a body."""

    def __init__(self) -> None:
        self.data = bytearray()

    def cut(self) -> Iterator[tuple[bytes, bytes]]:
        while len(self.data) >= 5:
            (length,) = struct.unpack_from("!I", self.data, 1)
            if len(self.data) <= length:
                return
            kind, body = bytes(self.data[:1]), bytes(self.data[5 : length + 1])
            del self.data[: length + 1]
            yield kind, body


class _Connection:
    """Reads along with one connection."""

    def __init__(self, number: int, seen: list[Exchange]) -> None:
        self._number = number
        self._seen = seen
        self._forth = _Messages()
        self._back = _Messages()
        self._greeted = False
        self._refusals = 0
        # Nothing counts before the first ReadyForQuery: until then the session is being opened.
        self._current: Exchange | None = None
        self._waited = False
        self._prepared: dict[bytes, str] = {}

    def sent(self, data: bytes) -> None:
        self._forth.data += data
        if not self._greeted:
            self._greet()
        if self._greeted:
            for kind, body in self._forth.cut():
                self._client_message(kind, body)

    def received(self, data: bytes) -> None:
        self._back.data += data
        while self._refusals and self._back.data:
            self._refusals -= 1
            del self._back.data[:1]
        for kind, _ in self._back.cut():
            # ReadyForQuery, CopyInResponse: the client may go on.
            if kind in (b"Z", b"G"):
                self._waited = True

    def _greet(self) -> None:
        while not self._greeted and len(self._forth.data) >= 8:
            length, code = struct.unpack_from("!II", self._forth.data)
            if len(self._forth.data) < length:
                return
            del self._forth.data[:length]
            if code in _ENCRYPTION:
                self._refusals += 1
            else:
                self._greeted = True

    def _client_message(self, kind: bytes, body: bytes) -> None:
        if kind == b"X":
            return
        if self._waited:
            self._waited = False
            self._current = Exchange(time.monotonic(), self._number)
            self._seen.append(self._current)
        if self._current is not None:
            self._note(self._current, kind, body)

    def _note(self, exchange: Exchange, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            exchange.statements.append(_text(body[:-1]))
        elif kind == b"P":
            name, statement, _ = body.split(b"\0", 2)
            self._prepared[name] = _text(statement)
            exchange.statements.append("prepare")
        elif kind == b"B":
            text = self._prepared.get(body.split(b"\0", 2)[1], "(unknown)")
            if exchange.statements and exchange.statements[-1] == "prepare":
                exchange.statements.pop()
            exchange.statements.append(text)


def _text(statement: bytes) -> str:
    words = _COMMENT.sub(" ", statement.decode(errors="replace")).split()
    return " ".join(words)


class Recorder(TcpProxy):
    """A proxy in front of PostgreSQL; `seen` holds every exchange of sessions that are open."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.seen: list[Exchange] = []
        self._numbers = itertools.count()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(next(self._numbers), self.seen)
        far_reader, far_writer = await self._reach_target()
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(
                _copy(reader, far_writer, connection.sent), _copy(far_reader, writer, connection.received)
            )
        finally:
            self._writers -= {writer, far_writer}

    def between(self, start: float, end: float) -> list[Exchange]:
        """The exchanges that began in this time."""
        return [exchange for exchange in self.seen if start <= exchange.time <= end]


def without(exchanges: list[Exchange], known: set[str]) -> list[Exchange]:
    """The exchanges without the transactions that have one of the known statements."""
    kept: list[Exchange] = []
    by_session: dict[int, list[Exchange]] = {}
    for exchange in exchanges:
        transaction = by_session.setdefault(exchange.session, [])
        transaction.append(exchange)
        if exchange.statements[-1:] == ["COMMIT"] or transaction[0].statements[:1] != ["BEGIN"]:
            kept += [] if _has(transaction, known) else by_session[exchange.session]
            by_session[exchange.session] = []
    kept += [item for rest in by_session.values() if not _has(rest, known) for item in rest]
    return sorted(kept, key=lambda exchange: exchange.time)


def _has(transaction: list[Exchange], known: set[str]) -> bool:
    return any(text in known for exchange in transaction for text in exchange.statements)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listen: Callable[[bytes], None]
) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            listen(data)
            writer.write(data)
    writer.close()


@contextlib.asynccontextmanager
async def recorder(target: str) -> AsyncIterator[Recorder]:
    """A recorder for as long as the block runs."""
    proxy = Recorder(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
