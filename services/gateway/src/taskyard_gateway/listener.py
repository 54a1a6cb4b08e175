"""Listening for HTTP: uvicorn, with bounds on connections, headers and on how long a client may take."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from taskyard.errors import Code
from taskyard_gateway.answers import Refusal, failed, refuse
from taskyard_gateway.metric_names import REFUSED
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_kit.startup import StartupError

log = get_log(__name__)

_REFUSED = instrument(REFUSED)
_BACKLOG = 2048
# Bytes around one byte of body in a chunk of its own, and some more.
_FRAMING = 8
# Below that it reports what any client can cause; it is answered and counted here.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
_PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


@dataclass(frozen=True)
class Limits:
    """What one client, and all of them together, may ask of a listener."""

    connections: int
    header_bytes: int
    header_seconds: float
    stall_seconds: float
    keep_alive_seconds: float


def bound_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which has no bounds of its own on headers, within these limits."""

    class BoundProtocol(HttpToolsProtocol):
        """One connection."""

        _timer: asyncio.TimerHandle | None = None
        # What has arrived of the message at hand, and how much of it was body.
        _arrived = _fed = 0
        _body = 0
        # How much of it was request line and headers.
        _counted = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            _limit_unread(transport, limits.stall_seconds)
            # What uvicorn uses of a transport.
            self.transport = cast(asyncio.Transport, _Joining(transport, self.loop))
            if len(self.connections) > limits.connections:
                message = (
                    f"the gateway has {limits.connections} connections already; repeat it a moment later"
                )
                headers = {"retry-after": "1"}
                self._end(refuse(503, Code.UNAVAILABLE, "OVERLOADED", message, headers), "connections")
                return
            self._expect_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            self._arrived += len(data)
            self._fed = len(data)
            super().data_received(data)
            # The parser keeps an unfinished header, and uvicorn every trailer: what is no body is bounded,
            # with some more for the frames of small chunks.
            if self._arrived - self._body > limits.header_bytes + _FRAMING * self._body:
                self._end_too_large()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            # Of data with several requests, each but the first is let off what came along with it.
            self._arrived, self._fed = self._fed, 0
            self._body = self._counted = 0
            self._expect_headers()

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value) + 4)
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._cancel_timer()
            if not self.transport.is_closing():
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            if not self.transport.is_closing():
                super().on_body(body)

        def on_message_complete(self) -> None:
            if not self.transport.is_closing():
                super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            """The parser's verdict, in the form of every other error."""
            message = "this is not HTTP/1.1: a malformed request line, header or chunk"
            self._end(refuse(400, Code.INVALID_ARGUMENT, "FIELD_INVALID", message), "malformed")

        def _count(self, size: int) -> None:
            self._counted += size
            if self._counted > limits.header_bytes:
                self._end_too_large()

        def _end_too_large(self) -> None:
            if not self.transport.is_closing():
                message = f"request line and headers have more than {limits.header_bytes} bytes"
                self._end(refuse(431, Code.INVALID_ARGUMENT, "TOO_LARGE", message), "headers")

        def _expect_headers(self) -> None:
            self._cancel_timer()
            self._timer = self.loop.call_later(limits.header_seconds, self._give_up)

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                message = f"the headers did not arrive within {limits.header_seconds:g} s"
                self._end(refuse(408, Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", message), "slow_headers")

        def _cancel_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end(self, refusal: Refusal, reason: str) -> None:
            """Answer and close; nothing that still arrives is looked at."""
            _REFUSED.add(1, {"reason": reason})
            self._cancel_timer()
            # A request that is being answered has begun its own status line.
            if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
                self.transport.write(_raw(refusal))
            self.transport.close()

    return BoundProtocol


class _Joining:
    """A transport that sends in one piece what is written in one turn of the event loop.

    uvicorn writes the headers of an answer and its body one after the other; two system calls and two packets
    took a quarter of the CPU of a small request.
    """

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop
        self._waiting: list[bytes] = []
        self.is_closing = inner.is_closing
        self.pause_reading = inner.pause_reading
        self.resume_reading = inner.resume_reading
        self.get_extra_info = inner.get_extra_info

    def write(self, data: bytes) -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def _flush(self) -> None:
        if self._waiting:
            data, self._waiting = b"".join(self._waiting), []
            if data and not self._inner.is_closing():
                self._inner.write(data)


def _raw(refusal: Refusal) -> bytes:
    response = failed(refusal)
    phrase = _PHRASES.get(refusal.http, "Service Unavailable")
    lines = [f"HTTP/1.1 {refusal.http} {phrase}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body)])


def _limit_unread(transport: Any, seconds: float) -> None:
    """Let the kernel drop a peer that reads nothing, however much is buffered for it."""
    connection = transport.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


class Listener:
    """One address. Make it in the event loop; `start`, then `stop`."""

    def __init__(
        self,
        app: ASGIApp,
        listen: str,
        limits: Limits,
        *,
        reuse_port: bool = False,
        tls: tuple[str, str] | None = None,
    ) -> None:
        self._listen = listen
        self._reuse_port = reuse_port
        self._config = uvicorn.Config(
            app,
            http=bound_protocol(limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(limits.keep_alive_seconds),
            backlog=_BACKLOG,
        )
        self._tls = tls
        self._server = _Server(self._config)
        self._serving: asyncio.Task[None] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """Where clients reach it, with the port that was chosen for port 0."""
        return f"{self._listen.rpartition(':')[0]}:{self.port}"

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def start(self) -> None:
        """Listen. Raises StartupError."""
        self._config.load()
        if self._tls is not None:
            self._config.ssl = _tls_context(*self._tls)
        bound = _bind(self._listen, self._reuse_port)
        self.port = bound.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[bound]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(0)

    async def stop(self, seconds: float) -> None:
        """Take no connection any more; requests in flight have this long."""
        self._config.timeout_graceful_shutdown = max(1, round(seconds))
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process handles its signals itself."""
        yield


def _tls_context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot use {certificate} with {key}: {error}") from None
    return context


def _bind(listen: str, reuse_port: bool) -> socket.socket:
    host, _, port = listen.rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        message = f"cannot listen on {listen}: {error.strerror}; stop what uses it or set another --listen"
        raise StartupError(message) from None
    bound.setblocking(False)
    return bound
