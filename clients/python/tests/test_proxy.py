"""Proxies: a key never passes one in plaintext, and calls on this machine pass none at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from clients.python.tests.task_server import KEY as SERVER_KEY
from taskyard import Client, errors
from taskyard.channel import open_channel

KEY = "ty_canary_never_to_be_seen"
VARIABLES = ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@dataclass
class Proxy:
    """Notes what it is asked and answers nothing."""

    address: str = ""
    asked: list[bytes] = field(default_factory=list)
    some: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.read(65536))
        self.some.set()
        writer.close()


@pytest.fixture
async def proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    found = Proxy()
    server = await asyncio.start_server(found.take, "127.0.0.1", 0)
    found.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in VARIABLES:
        monkeypatch.setenv(name, found.address)
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield found
    server.close()


async def call(channel: Any, timeout: float) -> None:
    with pytest.raises(grpc.RpcError):
        await channel.unary_unary("/x/Y")(b"", timeout=timeout)


async def test_a_call_on_this_machine_passes_no_proxy(proxy: Proxy, address: str) -> None:
    async with Client(address, key=SERVER_KEY, timeout=10, outage_timeout=1) as client:
        with pytest.raises(errors.NotFound):
            await client.get("missing")
    assert proxy.asked == []


async def test_plaintext_that_was_allowed_passes_no_proxy(proxy: Proxy) -> None:
    # An address for documentation: nothing answers there, and the proxy is not asked for it.
    async with open_channel("192.0.2.1:7420", key=KEY, allow_plaintext=True) as channel:
        await call(channel, 1.0)
    assert proxy.asked == []


async def test_tls_to_another_machine_uses_the_proxy_that_is_named_and_none_if_that_is_off(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TASKYARD_PROXY", "off")
    async with open_channel("tasks.example.org:443", key=KEY, tls=True) as channel:
        await call(channel, 1.0)
    assert proxy.asked == []
    monkeypatch.setenv("TASKYARD_PROXY", proxy.address)
    async with open_channel("tasks.example.org:443", key=KEY, tls=True) as channel:
        await call(channel, 5.0)
        await asyncio.wait_for(proxy.some.wait(), 10)
    assert proxy.asked[0].startswith(b"CONNECT tasks.example.org:443")
    assert not any(KEY.encode() in asked for asked in proxy.asked)
