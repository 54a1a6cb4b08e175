"""A request as it came in: headers that may occur once, and a body that is bounded in size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from typing import Any

from starlette.types import Receive, Scope

from taskyard.errors import Code, FieldInvalid
from taskyard_gateway.answers import JSON, Refusal, refuse
from taskyard_kit.values import format_duration

FORM = "application/x-www-form-urlencoded"
# Two values of one of these would let two readers of the request see different ones.
_ONCE = frozenset(
    {
        b"authorization",
        b"connect-timeout-ms",
        b"content-length",
        b"content-type",
        b"cookie",
        b"host",
        b"last-event-id",
        b"origin",
        b"traceparent",
        b"x-tenant",
    }
)
CLOSE = {"connection": "close"}


class ClientGone(Exception):
    """The client has closed its connection; there is nobody to answer."""


class Incoming:
    """One request; its headers are checked when it is made. Raises Refusal."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path = scope["raw_path"].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self._receive = receive
        self._headers = dict(_checked(scope["headers"]))

    def header(self, name: bytes) -> str:
        """A header by its name in lower case; empty if there is none."""
        return self._headers.get(name, b"").decode("latin-1")

    def metadata_value(self, name: bytes) -> str:
        """A header that is passed on, for which gRPC wants printable ASCII. Raises Refusal."""
        value = self.header(name)
        if value and not (value.isascii() and value.isprintable()):
            raise Refusal.of(FieldInvalid.of(name.decode(), "must be printable ASCII"))
        return value

    async def body(self, limit: int, seconds: float) -> bytes:
        """The whole body. Raises Refusal if it is too large or too slow, ClientGone."""
        declared = self.header(b"content-length")
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        if declared in ("", "0") and b"transfer-encoding" not in self._headers:
            return b""
        try:
            async with asyncio.timeout(seconds):
                return await self._read(limit)
        except TimeoutError:
            message = f"the body did not arrive within {format_duration(timedelta(seconds=seconds))}"
            raise refuse(408, Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", message, CLOSE) from None

    async def _read(self, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message: MutableMapping[str, Any] = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message["body"])
            size += len(message["body"])
            if size > limit:
                raise _too_large(limit)
            if not message["more_body"]:
                return b"".join(parts)

    async def until_gone(self) -> None:
        """Returns once the client has closed its connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def check_body_type(self, *, lenient: bool) -> None:
        """Raises Refusal unless the body is JSON.

        A web page can send a form, but no JSON, to another origin without being asked; so `lenient`, which
        takes what `curl -d` sends as JSON, is for requests that carry a key in a header.
        """
        kind, _, parameters = self.header(b"content-type").partition(";")
        kind, charset = kind.strip().lower(), parameters.strip().lower().replace('"', "")
        if self.header(b"content-encoding") not in ("", "identity"):
            raise _unsupported("content-encoding", self.header(b"content-encoding"), "send it as it is")
        if kind == JSON and charset in ("", "charset=utf-8"):
            return
        if not (lenient and kind in ("", FORM)):
            raise _unsupported("content-type", self.header(b"content-type"), f"use {JSON}")


def _checked(headers: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    seen: set[bytes] = set()
    for name, value in headers:
        if name in _ONCE and name in seen:
            raise Refusal.of(FieldInvalid.of(name.decode(), "the header occurs more than once"))
        seen.add(name)
        yield name, value


def _too_large(limit: int) -> Refusal:
    message = f"the body is larger than {limit} bytes"
    return refuse(413, Code.INVALID_ARGUMENT, "TOO_LARGE", message, CLOSE)


def _unsupported(header: str, value: str, remedy: str) -> Refusal:
    message = f"{header} {value[:64]!r} is not supported; {remedy}"
    return refuse(415, Code.INVALID_ARGUMENT, "FIELD_INVALID", message, CLOSE)
