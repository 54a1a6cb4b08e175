"""The HTTP client of webhooks: resolves a name once, checks the addresses, and connects to a checked one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any

import httpcore

from taskyard_taskdb.domain.egress import Address, Egress
from taskyard_taskdb.sweep.webhook_sender import Unreachable, WebhookRequest

CONNECTIONS = 32

Resolve = Callable[[str, int], Awaitable[list[Address]]]


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host name from the system resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


class WebhookClient:
    """Sends POST requests. It follows no redirect, uses no proxy, and reads only the head of a response."""

    def __init__(self, egress: Egress, timeout: float, resolve: Resolve = resolve) -> None:
        self._timeout = timeout
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=_CheckedBackend(egress, resolve),
            max_connections=CONNECTIONS,
            max_keepalive_connections=0,
        )

    async def __call__(self, request: WebhookRequest) -> int:
        """Return the HTTP status of the response. Raises Unreachable."""
        headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._pool.stream("POST", request.url, headers=headers, content=request.body) as response,
            ):
                return response.status
        except TimeoutError:
            raise Unreachable(f"no response within {self._timeout:g} s") from None
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from None
        except (ValueError, httpcore.UnsupportedProtocol) as error:
            raise Unreachable(f"not a URL: {error}") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that the egress rule permits."""

    def __init__(self, egress: Egress, resolve: Resolve) -> None:
        self._egress = egress
        self._resolve = resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from None
        chosen = self._egress.choose(found)
        if not chosen:
            addresses = ", ".join(map(str, found)) or "no address"
            raise httpcore.ConnectError(f"{host} resolves to {addresses}, which webhooks may not reach")
        refusal: Exception = httpcore.ConnectError("no address")
        for address in chosen:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                refusal = refused
        raise refusal

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("webhooks may not reach Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
