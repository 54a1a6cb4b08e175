"""A call that has ended is freed at once, not by the garbage collector: not even its error keeps it."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import grpc
import pytest
from grpc._cython import cygrpc

from services.kit.tests.conftest import Running, StartServer
from services.kit.tests.echo_service import KEYS, SERVICE, pb
from taskyard import errors
from taskyard_kit.auth import Kind

_cygrpc: Any = cygrpc


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def kept_calls() -> int:
    """The calls that the server has not freed."""
    return sum(type(found) is _cygrpc._ServicerContext for found in gc.get_objects())


async def all_freed() -> bool:
    """Whether no call is left, once the callbacks of the last one have run."""
    for _ in range(50):
        if not kept_calls():
            return True
        await asyncio.sleep(0.01)
    return False


async def refused(call: Any) -> None:
    """Make a call that fails."""
    with pytest.raises(grpc.RpcError):
        if hasattr(call, "read"):
            _ = [answer async for answer in call]
        else:
            await call


async def test_answered_calls_are_freed(echo: Running) -> None:
    stub = echo.stub()
    for _ in range(3):
        await stub.Echo(pb.EchoRequest(text="a"))
        assert [answer.text async for answer in stub.Count(pb.EchoRequest())] == ["0", "1", "2"]
        await stub.Join(iter([pb.EchoRequest(text="a")]))
        _ = [answer async for answer in stub.Chat(iter([pb.EchoRequest(text="a")]))]
    assert await all_freed()


@pytest.mark.parametrize("text", ["raise", "crash", "x" * 101])
async def test_failed_calls_are_freed(echo: Running, text: str, caplog: pytest.LogCaptureFixture) -> None:
    stub = echo.stub()
    request = pb.EchoRequest(text=text)
    # Pytest keeps records, which have the traceback of a crash.
    caplog.set_level(logging.CRITICAL)
    echo.servicer.error = errors.ServerDraining()
    for _ in range(3):
        await refused(stub.Echo(request))
        await refused(stub.Count(request))
        if text != "crash":
            await refused(stub.Chat(iter([request])))
    del echo.servicer.error
    assert await all_freed()


async def test_refused_calls_are_freed(echo: Running) -> None:
    undecodable: Any = echo.channel().unary_unary(f"/{SERVICE}/Echo")
    await refused(undecodable(b"\xff\xff\xff"))
    await refused(echo.stub("").Echo(pb.EchoRequest()))
    await refused(echo.stub(KEYS[Kind.RUNNER].text).Count(pb.EchoRequest()))
    await refused(echo.stub().Missing(pb.EchoRequest()))
    unknown: Any = echo.channel().unary_unary("/taskyard.v1.WorkService/ClaimTasks")
    await refused(unknown(b""))
    assert await all_freed()


async def test_cancelled_and_late_calls_are_freed(start_server: StartServer) -> None:
    echo = await start_server(call_timeout=timedelta(milliseconds=50))
    stub = echo.stub()
    await refused(stub.Echo(pb.EchoRequest(text="hold")))
    await refused(stub.Echo(pb.EchoRequest(text="hold"), timeout=0.02))
    stream = stub.Count(pb.EchoRequest(text="forever"))
    await stream.read()
    stream.cancel()
    assert await all_freed()


async def test_streams_of_a_revoked_key_are_freed(start_server: StartServer) -> None:
    interval = timedelta(milliseconds=50)
    echo = await start_server(key_cache_ttl=timedelta(0), key_check_interval=interval)
    stub = echo.stub()
    calls = [stub.Count(pb.EchoRequest(text="forever")), stub.Chat()]
    await echo.servicer.entered.wait()
    del echo.keys.principals[KEYS[Kind.TENANT].id]
    for call in calls:
        await refused(call)
    assert await all_freed()
