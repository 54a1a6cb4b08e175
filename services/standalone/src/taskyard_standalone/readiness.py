"""Whether a service serves yet: checked by the standard gRPC health protocol, or read from its log."""

import asyncio

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from taskyard_standalone.logs import LogFile

_POLL_SECONDS = 0.05
_CALL_SECONDS = 2.0
# A connection that was refused is tried again at once; the default waits a second.
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
)


async def until_serving(address: str) -> None:
    """Returns once the server at `address` reports SERVING."""
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        while True:
            if await _serves(channel):
                return
            await asyncio.sleep(_POLL_SECONDS)


async def until_logged(event: str, log: LogFile, since: int) -> None:
    """Returns once `log` holds the event of that name after offset `since`."""
    while True:
        if any(f'"{event}"' in line for line in log.lines(since)):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _serves(channel: grpc.aio.Channel) -> bool:
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=HealthCheckRequest.SerializeToString,
        response_deserializer=HealthCheckResponse.FromString,
    )
    try:
        answer = await check(HealthCheckRequest(), timeout=_CALL_SECONDS)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == HealthCheckResponse.SERVING)
