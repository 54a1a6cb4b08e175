"""The suite that is fuzzed: where it serves, the key of its administrator, and raw calls to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import psutil
from google.protobuf import message_factory
from google.protobuf.message import Message

from tests.harness.rpc_requests import method_of

# The answers of batches may be larger than the usual 4 MiB; each process of the suite has a bound of its own.
_OPTIONS = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)
_SCHEDULER = ("RunnerLinkService", "WorkService", "ExplainService")


@dataclass
class Service:
    """Addresses of a taskdb and a scheduler; `logs` are the files that they write."""

    taskdb: str
    scheduler: str
    admin_key: str
    logs: tuple[str, ...] = ()
    _channels: dict[str, grpc.aio.Channel] = field(default_factory=dict)

    def channel(self, path: str) -> grpc.aio.Channel:
        """The channel to the server of an RPC."""
        address = self.scheduler if path.split("/")[1].endswith(_SCHEDULER) else self.taskdb
        if address not in self._channels:
            self._channels[address] = grpc.aio.insecure_channel(address, options=_OPTIONS)
        return self._channels[address]

    async def call(self, path: str, request: Message, key: str, seconds: float = 30.0) -> Any:
        """The answer of a unary call; raises grpc.aio.AioRpcError."""
        decode = message_factory.GetMessageClass(method_of(path).output_type).FromString
        multi: Any = self.channel(path).unary_unary(path, response_deserializer=decode)
        return await multi(request.SerializeToString(), metadata=bearer(key), timeout=seconds)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    def processes(self) -> dict[str, psutil.Process]:
        """The two servers by name."""
        named = {"taskdb": self.taskdb, "scheduler": self.scheduler}
        return {name: psutil.Process(_listener(address)) for name, address in named.items()}

    def resident_bytes(self) -> dict[str, int]:
        """The memory of each server."""
        return {name: process.memory_info().rss for name, process in self.processes().items()}


def bearer(key: str, tenant: str = "") -> tuple[tuple[str, str], ...]:
    """The headers of a call; those of the flat task API name the tenant."""
    of_tenant = (("x-tenant", tenant),) if tenant else ()
    return ((("authorization", f"Bearer {key}"),) if key else ()) + of_tenant


def _listener(address: str) -> int:
    port = int(address.rpartition(":")[2])
    for one in psutil.net_connections("tcp"):
        if one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,) and one.pid:
            return one.pid
    raise AssertionError(f"nothing listens on {address}")
