"""A client with a list of addresses uses the first replica that answers."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from taskyard.channel import open_channel
from taskyard.channels import Channels
from taskyard.context import Context
from taskyard.failover import HEALTH_CHECK, SERVING, split_addresses

CREATE = "/taskyard.v1.TaskService/CreateTask"
CREATE_KEY = "/taskyard.v1.ApiKeyService/CreateApiKey"
WATCH = "/taskyard.v1.TaskService/WatchTasks"
CONNECT = "/taskyard.v1.RunnerLinkService/Connect"
# A pair made for these tests alone, valid for a hundred years, for localhost and 127.0.0.1.
CERTIFICATE, PRIVATE_KEY = Path(__file__).parent / "tls/cert.pem", Path(__file__).parent / "tls/key.pem"


class Replica(grpc.GenericRpcHandler):
    """Answers every call with its name, or nothing at all while it is stuck."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.port = 0
        self.calls = 0
        self.works = asyncio.Event()
        self.works.set()

    def service(self, details: Any) -> Any:
        if details.method == HEALTH_CHECK:
            return grpc.unary_unary_rpc_method_handler(self.check)
        if details.method == WATCH:
            return grpc.unary_stream_rpc_method_handler(self.stream)
        if details.method == CONNECT:
            return grpc.stream_stream_rpc_method_handler(self.stream)
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def check(self, request: bytes, context: Any) -> bytes:
        await self.works.wait()
        return SERVING

    async def answer(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        await self.works.wait()
        return self.name

    async def stream(self, request: Any, context: Any) -> AsyncIterator[bytes]:
        await self.works.wait()
        yield self.name
        await asyncio.Event().wait()


@asynccontextmanager
async def replicas(*names: bytes, tls: bool = False) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as stack:
        made = []
        for name in names:
            replica = Replica(name)
            server = grpc.aio.server(handlers=(replica,))
            if tls:
                pair = (PRIVATE_KEY.read_bytes(), CERTIFICATE.read_bytes())
                replica.port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
            else:
                replica.port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            stack.push_async_callback(server.stop, None)
            made.append(replica)
        yield made


def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def call(channel: grpc.aio.Channel, method: str = CREATE, **options: Any) -> bytes:
    unary: Any = channel.unary_unary(method)
    return bytes(await unary(b"", **options))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])
async def test_a_list_by_name_or_number_is_used_with_and_without_tls(host: str, tls: bool) -> None:
    async with replicas(b"a", b"b", tls=tls) as (a, b):
        authority = CERTIFICATE if tls else None
        async with open_channel(f"{host}:{a.port},{host}:{b.port}", tls_ca=authority) as channel:
            assert await call(channel) == b"a"
        async with open_channel(f"{host}:{closed_port()},{host}:{b.port}", tls_ca=authority) as channel:
            assert await call(channel) == b"b"


async def test_a_call_leaves_a_stuck_replica_within_three_seconds() -> None:
    async with replicas(b"a", b"b") as (a, b):
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            assert await call(channel) == b"a"
            a.works.clear()
            begin = time.monotonic()
            assert await call(channel) == b"b"
            assert time.monotonic() - begin < 3.5
            assert await call(channel) == b"b"
        a.works.set()


async def test_a_call_that_must_not_be_repeated_fails_and_the_next_goes_elsewhere() -> None:
    async with replicas(b"a", b"b") as (a, b):
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            a.works.clear()
            with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
                await call(channel, CREATE_KEY)
            assert (a.calls, b.calls) == (1, 0)
            assert await call(channel, CREATE_KEY) == b"b"
        a.works.set()


async def test_a_slow_call_of_a_healthy_replica_is_left_alone() -> None:
    async with replicas(b"a", b"b") as (a, b):
        a.works.clear()

        async def serving(request: bytes, context: Any) -> bytes:
            if a.calls:
                a.works.set()
            return SERVING

        a.check = serving  # type: ignore[method-assign]
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            assert await call(channel) == b"a"
    assert b.calls == 0


async def test_the_deadline_of_a_call_holds_when_every_replica_is_stuck() -> None:
    async with replicas(b"a", b"b") as (a, b):
        a.works.clear()
        b.works.clear()
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            begin = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call(channel, timeout=2.0)
            assert time.monotonic() - begin < 3.0
            assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        a.works.set()
        b.works.set()


async def test_a_watch_of_a_stuck_replica_ends_and_the_next_is_opened_elsewhere() -> None:
    async with replicas(b"a", b"b") as (a, b):
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            watch: Any = channel.unary_stream(WATCH)
            stream = watch(b"")
            assert await stream.read() == b"a"
            a.works.clear()
            with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
                async with asyncio.timeout(15):
                    await stream.read()
            async for response in watch(b""):
                assert response == b"b"
                break
        a.works.set()


async def test_a_runner_link_to_a_stuck_scheduler_is_opened_elsewhere() -> None:
    async with replicas(b"a", b"b") as (a, b):
        async with open_channel(f"127.0.0.1:{a.port},127.0.0.1:{b.port}") as channel:
            a.works.clear()
            connect: Any = channel.stream_stream(CONNECT)
            stream = connect()
            await stream.write(b"hello")
            with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
                async with asyncio.timeout(10):
                    await stream.read()
            stream = connect()
            await stream.write(b"hello")
            assert await stream.read() == b"b"
            stream.cancel()
        a.works.set()


async def test_the_client_takes_a_list_with_and_without_https() -> None:
    async with replicas(b"a", b"b") as (_, b):
        channels = Channels(Context(f"127.0.0.1:{closed_port()},http://localhost:{b.port}"), None)
        assert await channels.serves(channels.context.address)
        await channels.close()
    async with replicas(b"a", b"b", tls=True) as (_, b):
        address = f"https://127.0.0.1:{closed_port()},https://localhost:{b.port}"
        channels = Channels(Context(address, tls_ca=str(CERTIFICATE)), None)
        assert await channels.serves(address)
        await channels.close()


def test_a_list_with_an_empty_address_is_rejected() -> None:
    with pytest.raises(ValueError, match="contains an empty address"):
        split_addresses("a:1,,b:2")


def test_no_address_of_a_list_gets_the_key_in_plaintext_beyond_this_machine() -> None:
    with pytest.raises(ValueError, match=r"192\.0\.2\.1:7420 is not on this machine"):
        open_channel("127.0.0.1:7420,192.0.2.1:7420", key="x")
