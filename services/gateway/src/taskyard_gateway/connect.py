"""The Connect protocol's unary calls: POST of JSON or of the binary message to /package.Service/Method."""

from __future__ import annotations

import asyncio

from google.protobuf.message import DecodeError, Message
from starlette.responses import Response

from taskyard.errors import Code, FieldInvalid
from taskyard_gateway.answers import JSON, PROTO, refuse
from taskyard_gateway.binding import read_json
from taskyard_gateway.calls import LARGE_BYTES, encode
from taskyard_gateway.contract import Rpc
from taskyard_gateway.incoming import CLOSE, Incoming

_VERSION = "1"


def check(incoming: Incoming, rpc: Rpc, limit: float) -> float:
    """The seconds that the call may take. Raises Refusal for what is no unary call."""
    if incoming.method != "POST":
        message = f"{rpc.path} takes POST, not {incoming.method}"
        raise refuse(405, Code.UNIMPLEMENTED, "METHOD_NOT_ALLOWED", message, {"allow": "POST"})
    if rpc.streams:
        message = f"{rpc.path} streams; GET the path of its http rule, which /docs names"
        raise refuse(415, Code.UNIMPLEMENTED, "UNIMPLEMENTED", message, CLOSE)
    if incoming.query:
        raise FieldInvalid.of("query", "a call by /package.Service/Method has none; members go into the body")
    version = incoming.header(b"connect-protocol-version")
    if version not in ("", _VERSION):
        raise FieldInvalid.of("connect-protocol-version", f"must be {_VERSION}, not {version[:64]!r}")
    if not _is_binary(incoming):
        incoming.check_body_type(lenient=bool(incoming.header(b"authorization")))
    return _timeout(incoming, limit)


async def read(incoming: Incoming, rpc: Rpc, body: bytes) -> Message:
    """The request. Raises FieldInvalid."""
    request = rpc.request()
    if _is_binary(incoming):
        try:
            request.ParseFromString(body)
        except DecodeError:
            raise FieldInvalid.of("body", f"is no {request.DESCRIPTOR.full_name}") from None
    elif len(body) > LARGE_BYTES:
        await asyncio.to_thread(read_json, body, request)
    else:
        read_json(body, request)
    return request


async def answer(incoming: Incoming, rpc: Rpc, message: Message) -> Response:
    """The answer in the encoding of the request."""
    if _is_binary(incoming):
        return Response(message.SerializeToString(), media_type=PROTO)
    return Response(await encode(message, rpc.flat), media_type=JSON)


def _is_binary(incoming: Incoming) -> bool:
    return incoming.header(b"content-type") == PROTO


def _timeout(incoming: Incoming, limit: float) -> float:
    text = incoming.header(b"connect-timeout-ms")
    if not text:
        return limit
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise FieldInvalid.of("connect-timeout-ms", f"must be up to 10 digits, not {text[:64]!r}")
    return min(limit, int(text) / 1000)
