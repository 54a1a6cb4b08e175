"""Server streams over HTTP: Server-Sent Events whose ids are resume tokens, or one JSON object per line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc.aio
from google.rpc.status_pb2 import Status
from starlette.types import Receive, Scope, Send

from taskyard.errors import Code, ServerDraining
from taskyard.status import to_status
from taskyard_gateway.answers import refusal_of, status_json
from taskyard_gateway.calls import encode
from taskyard_gateway.contract import RESUME_TOKEN, Rpc
from taskyard_gateway.incoming import Incoming

EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
# An error that comes this early becomes the HTTP status; a watch on which nothing happens begins after it.
_EARLY_SECONDS = 0.5
# How long a browser waits before it connects again.
_RETRY = b"retry: 1000\n\n"


class Stalled(Exception):
    """The client has read nothing for too long."""


@dataclass(frozen=True)
class Framing:
    """How messages, errors, the end and signs of life look on the wire."""

    media_type: str
    start: bytes
    message: Callable[[str, bytes], bytes]
    error: Callable[[Status], bytes]
    end: bytes
    heartbeat: bytes


def _event(token: str, data: bytes) -> bytes:
    return (b"id: " + token.encode() + b"\n" if token else b"") + b"data: " + data + b"\n\n"


def _compact(members: Any) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


EVENTS = Framing(
    media_type=EVENT_STREAM,
    start=_RETRY,
    message=_event,
    error=lambda status: b"event: status\ndata: " + _compact(status_json(status)) + b"\n\n",
    end=b"event: end\ndata: {}\n\n",
    heartbeat=b": heartbeat\n\n",
)
LINES = Framing(
    media_type=NDJSON,
    start=b"",
    message=lambda token, data: data + b"\n",
    error=lambda status: _compact({"error": status_json(status)}) + b"\n",
    end=b"",
    heartbeat=b"\n",
)


def framing_of(accept: str) -> Framing:
    """The framing that the Accept header asks for; events unless it names lines."""
    return LINES if NDJSON in accept.lower() and EVENT_STREAM not in accept.lower() else EVENTS


class EventStream:
    """One stream: an ASGI response that reads a message when the client has room for it, and not before."""

    def __init__(
        self,
        rpc: Rpc,
        call: Any,
        incoming: Incoming,
        draining: asyncio.Event,
        heartbeat: float,
        stall: float,
    ) -> None:
        self._rpc = rpc
        self._call = call
        self._incoming = incoming
        self._draining = draining
        self._heartbeat = heartbeat
        self._stall = stall
        self._framing = framing_of(incoming.header(b"accept"))
        self._reading: asyncio.Future[Any] = asyncio.ensure_future(call.read())
        self._closing = False
        self.status_code = 200

    async def begin(self) -> None:
        """Returns when the stream goes on; raises Refusal if it ends with an error at once.

        A browser's EventSource never comes back after a status other than 200. A passing error is
        an event, so that it tries again.
        """
        await asyncio.wait({self._reading}, timeout=_EARLY_SECONDS)
        if self._reading.done() and isinstance(error := self._reading.exception(), grpc.aio.AioRpcError):
            refusal = refusal_of(error)
            passing = refusal.status.code == Code.UNAVAILABLE
            if not (passing and EVENT_STREAM in self._incoming.header(b"accept")):
                raise refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", self._framing.media_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-accel-buffering", b"no"),
        ]
        gone = asyncio.ensure_future(self._incoming.until_gone())
        drained = asyncio.ensure_future(self._draining.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._write(send, self._framing.start)
            await self._run(send, gone, drained)
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            drained.cancel()
            self.close()

    def close(self) -> None:
        """End the RPC."""
        self._reading.cancel()
        self._call.cancel()

    async def _run(self, send: Send, gone: asyncio.Future[Any], drained: asyncio.Future[Any]) -> None:
        while True:
            waiting = {self._reading, gone, drained}
            await asyncio.wait(waiting, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return
            if self._reading.done():
                if not await self._step(send):
                    return
            elif drained.done():
                await self._write(send, self._framing.error(to_status(ServerDraining())))
                return
            else:
                await self._write(send, self._framing.heartbeat)

    async def _step(self, send: Send) -> bool:
        """Pass on what was read; whether the stream goes on."""
        try:
            message = self._reading.result()
        except grpc.aio.AioRpcError as error:
            await self._write(send, self._framing.error(refusal_of(error).status))
            return False
        if message is grpc.aio.EOF:
            # After `closing` the client connects again; otherwise everything has been sent.
            await self._write(send, b"" if self._closing else self._framing.end)
            return False
        self._closing = getattr(message, "closing", False)
        token = getattr(message, RESUME_TOKEN) if self._rpc.resumable else ""
        await self._write(send, self._framing.message(token, await encode(message, self._rpc.flat)))
        self._reading = asyncio.ensure_future(self._call.read())
        return True

    async def _write(self, send: Send, data: bytes) -> None:
        if not data:
            return
        try:
            async with asyncio.timeout(self._stall):
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            raise Stalled from None
