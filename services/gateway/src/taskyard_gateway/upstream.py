"""The gRPC servers behind the gateway: one channel each, and a callable for every RPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from taskyard.channel import client_channel_options, open_channel
from taskyard_gateway.contract import SCHEDULER, TASKDB, Rpc, rpcs
from taskyard_gateway.settings import GatewaySettings
from taskyard_kit.startup import StartupError

# A page of tasks with payloads may be large; it was bounded where it was made.
MAX_RECEIVE_BYTES = 256 * 1024 * 1024
_HEALTH_SECONDS = 2.0

Metadata = Sequence[tuple[str, str]]


class Upstream:
    """The channels. Keys travel with each call; the gateway has none of its own."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._channels = {name: _open(settings, name) for name in (TASKDB, SCHEDULER)}
        self._calls = {rpc.path: self._callable(rpc) for rpc in rpcs()}
        self._check = self._channels[TASKDB].unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )

    def call(self, rpc: Rpc, request: Message, metadata: Metadata, timeout: float | None) -> Any:
        """Begin a call; a timeout of None leaves the one of the service config in force."""
        if timeout is None:
            return self._calls[rpc.path](request, metadata=metadata)
        return self._calls[rpc.path](request, metadata=metadata, timeout=timeout)

    async def serves(self) -> bool:
        """Whether taskdb serves, without which nothing works."""
        try:
            answer = await self._check(health_pb2.HealthCheckRequest(), timeout=_HEALTH_SECONDS)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    def _callable(self, rpc: Rpc) -> Any:
        channel = self._channels[rpc.upstream]
        make = channel.unary_stream if rpc.streams else channel.unary_unary
        return make(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )


def _open(settings: GatewaySettings, name: str) -> grpc.aio.Channel:
    try:
        return open_channel(
            settings.target(name),
            tls=getattr(settings, f"{name}_tls"),
            tls_ca=getattr(settings, f"{name}_ca"),
            # The settings have refused plaintext to other machines unless it was allowed.
            allow_plaintext=True,
            options=client_channel_options(MAX_RECEIVE_BYTES),
        )
    except (ValueError, OSError) as error:
        raise StartupError(f"{name}: {error}") from None
