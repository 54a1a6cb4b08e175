"""One call of any RPC, unary or streaming: its code, reason, message, and the bytes of its responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from taskyard.status import from_rpc_error
from tests.harness.rpc_requests import method_of

# A followed stream has no end: the call is over once nothing arrives for so long.
IDLE_SECONDS = 0.3
LIMIT_SECONDS = 30.0
# The outcome of a stream that was served until the caller left.
OPEN = "OPEN"


@dataclass(frozen=True)
class Answer:
    """`code` is a gRPC code, or OPEN; `responses` are undecoded."""

    code: str
    reason: str = ""
    message: str = ""
    responses: tuple[bytes, ...] = ()

    @property
    def served(self) -> bool:
        return self.code in ("OK", OPEN)

    def contains(self, text: str) -> bool:
        """Whether any part of it shows this text."""
        return text in self.message or any(text.encode() in one for one in self.responses)


async def call(
    channel: grpc.aio.Channel, path: str, messages: Sequence[Message], metadata: Any = ()
) -> Answer:
    """Make the call; a stream of the server is read until it rests."""
    while True:
        answer = await _call(channel, path, messages, metadata)
        # The client's library gives this to a write that meets the end of its stream, instead of the status.
        if answer.message != "Internal error from Core":
            return answer


async def _call(channel: grpc.aio.Channel, path: str, messages: Sequence[Message], metadata: Any) -> Answer:
    method, sent = method_of(path), [message.SerializeToString() for message in messages]
    options = {"metadata": metadata, "timeout": LIMIT_SECONDS}
    received: list[bytes] = []
    try:
        if method.server_streaming:
            call = await _open_stream(channel, path, sent, options, both=method.client_streaming)
            return await _read(call, received)
        multi: Any = channel.stream_unary(path) if method.client_streaming else channel.unary_unary(path)
        received.append(await multi(iter(sent) if method.client_streaming else sent[0], **options))
    except grpc.aio.AioRpcError as error:
        known = from_rpc_error(error)
        return Answer(error.code().name, known.reason, error.details() or "", tuple(received))
    return Answer("OK", responses=tuple(received))


async def _open_stream(
    channel: grpc.aio.Channel, path: str, sent: list[bytes], options: dict[str, Any], *, both: bool
) -> Any:
    if not both:
        one: Any = channel.unary_stream(path)
        return one(sent[0], **options)
    multi: Any = channel.stream_stream(path)
    call = multi(**options)
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        for data in sent:
            await call.write(data)
    return call


async def _read(call: Any, received: list[bytes]) -> Answer:
    try:
        while True:
            # The first message may wait for a slow server; what follows is there or not.
            async with asyncio.timeout(IDLE_SECONDS if received else LIMIT_SECONDS / 10):
                message = await call.read()
            if message is grpc.aio.EOF:
                return Answer((await call.code()).name, responses=tuple(received))
            received.append(message)
    except TimeoutError:
        return Answer(OPEN, responses=tuple(received))
    finally:
        call.cancel()
