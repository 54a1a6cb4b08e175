"""The connections of a client: one channel per server and key, each opened when it is first used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import grpc
import grpc.aio

from taskyard import tracing
from taskyard.channel import MIB, client_channel_options, open_channel, refuse_plaintext
from taskyard.context import Context, ContextError
from taskyard.failover import HEALTH_CHECK, SERVING, split_addresses
from taskyard.status import translated

A = TypeVar("A")
S = TypeVar("S")
Server = Literal["taskdb", "admin", "scheduler"]
"""taskdb with the ordinary key, taskdb with the administrator's, or the scheduler."""

MAX_RECEIVE_BYTES = 64 * MIB


class Channels:
    """The channels to the servers of a context."""

    def __init__(self, context: Context, timeout: float | None) -> None:
        self.context = context
        self._timeout = timeout
        self._open: dict[tuple[str, str], grpc.aio.Channel] = {}
        self._stubs: dict[tuple[Server, Any], Any] = {}
        # Found before anything is sent, and not only by the first call.
        for address in filter(None, (context.address, context.scheduler)):
            if not context.tls_ca and "https://" not in address:
                refuse_plaintext(split_addresses(address.replace("http://", "")))

    def stub(self, server: Server, make: Callable[[grpc.aio.Channel], S]) -> S:
        """A stub of that server; raises ContextError if its address is not configured."""
        # Opened late because a channel belongs to the event loop that runs when it is opened.
        if (server, make) not in self._stubs:
            self._stubs[server, make] = make(self._channel(server))
        stub: S = self._stubs[server, make]
        return stub

    async def call(
        self, method: Callable[..., Awaitable[A]], request: Any, timeout: float | None = None
    ) -> A:
        """The response of one call; `timeout` overrides service_config.json. Raises taskyard.errors."""
        limit = timeout or self._timeout
        with translated():
            return await (method(request, timeout=limit) if limit else method(request))

    async def serves(self, address: str) -> bool:
        """Whether the health check of the server at an address reports SERVING."""
        async with self._open_to(address, self.context.key) as channel:
            # Two bytes do not justify another dependency.
            check: Any = channel.unary_unary(HEALTH_CHECK)
            try:
                return bytes(await check(b"", timeout=5.0)) == SERVING
            except grpc.RpcError:
                return False

    async def close(self) -> None:
        """Closes the connections and cancels the calls in flight."""
        channels, self._open, self._stubs = list(self._open.values()), {}, {}
        for channel in channels:
            await channel.close()

    def _channel(self, server: Server) -> grpc.aio.Channel:
        address = self.context.scheduler if server == "scheduler" else self.context.address
        if not address:
            raise ContextError(
                f"{self.context.source} names no scheduler; set TASKYARD_SCHEDULER to its host and port"
            )
        key = self.context.admin_key if server == "admin" and self.context.admin_key else self.context.key
        if (address, key) not in self._open:
            self._open[address, key] = self._open_to(address, key)
        return self._open[address, key]

    def _open_to(self, address: str, key: str) -> grpc.aio.Channel:
        tracing.enable_if_in_use()
        ca = self.context.tls_ca
        try:
            return open_channel(
                address.replace("https://", "").replace("http://", ""),
                key=key,
                tls="https://" in address,
                tls_ca=Path(ca) if ca else None,
                options=client_channel_options(MAX_RECEIVE_BYTES),
            )
        except ContextError:
            raise
        except (ValueError, OSError) as error:
            raise ContextError(str(error)) from error
