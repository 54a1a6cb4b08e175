"""Whether a service serves yet: checked by the gRPC health protocol or by HTTP, or read from its log."""

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


async def until_answered(address: str) -> None:
    """Returns once the HTTP server at `address` reports that it serves."""
    host, _, port = address.rpartition(":")
    while True:
        if await _answers(host.strip("[]"), int(port), address):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _answers(host: str, port: int, address: str) -> bool:
    try:
        async with asyncio.timeout(_CALL_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(
                    f"GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
                )
                return (await reader.readline()).split()[1:2] == [b"200"]
            finally:
                writer.close()
    except OSError:
        return False


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
