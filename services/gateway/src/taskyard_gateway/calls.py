"""Unary calls: one request, one RPC, one answer; a client that goes away cancels the RPC."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
from google.protobuf.message import Message

from taskyard.service_config import timeouts
from taskyard_gateway.answers import refusal_of, to_json
from taskyard_gateway.contract import Rpc
from taskyard_gateway.incoming import ClientGone, Incoming
from taskyard_gateway.upstream import Metadata, Upstream

# Conversion of more than this takes so long that other requests get a turn meanwhile.
LARGE_BYTES = 64 * 1024


async def unary(
    upstream: Upstream, rpc: Rpc, request: Message, metadata: Metadata, incoming: Incoming, limit: float
) -> Any:
    """The answer of an RPC. Raises Refusal for its error, ClientGone if there is nobody to answer."""
    timeout = min(limit, timeouts().get(rpc.path, limit))
    call = upstream.call(rpc, request, metadata, timeout)
    watching = asyncio.create_task(_cancel_when_gone(incoming, call))
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise refusal_of(error) from None
    except asyncio.CancelledError:
        if watching.done() and not watching.cancelled():
            raise ClientGone from None
        raise
    finally:
        watching.cancel()


async def _cancel_when_gone(incoming: Incoming, call: Any) -> None:
    await incoming.until_gone()
    call.cancel()


async def encode(message: Message, flat: bool) -> bytes:
    """A message as JSON; a large one in a thread, so that others are served meanwhile."""
    if message.ByteSize() > LARGE_BYTES:
        return await asyncio.to_thread(to_json, message, flat)
    return to_json(message, flat)
