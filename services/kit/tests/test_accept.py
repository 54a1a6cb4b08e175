"""Calls that arrive together are accepted together, however long a pass of the event loop takes."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import grpc
import grpc.aio
from grpc._cython import cygrpc

from taskyard_kit import accept

_cygrpc: Any = cygrpc

CALLS = 64
METHOD = "/test.Echo/Call"


def test_the_locked_release_of_grpc_is_known() -> None:
    assert grpc.__version__.rpartition(".")[0] in accept.KNOWN_RELEASES, (
        "compare AioServer of this release with accept.py, then add it to KNOWN_RELEASES"
    )


async def start(handler: Any, *pace: Any) -> tuple[grpc.aio.Server, int]:
    server = accept.make_server((), *pace)
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(handler) for name in ("Call", "Other")
    }
    server.add_registered_method_handlers("test.Echo", handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def test_calls_that_arrive_together_wait_for_few_passes_of_a_busy_loop() -> None:
    passes, arrivals = 0, list[int]()
    all_arrived = asyncio.Event()

    async def handler(request: bytes, context: Any) -> bytes:
        arrivals.append(passes)
        if len(arrivals) == CALLS:
            all_arrived.set()
        return request

    server, port = await start(handler)
    loop = asyncio.get_running_loop()

    def work() -> None:
        nonlocal passes
        passes += 1
        time.sleep(0.005)
        if not all_arrived.is_set():
            loop.call_soon(work)

    # Its threads go on while the loop is busy.
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary(METHOD)
        assert await asyncio.to_thread(call, b"first", timeout=30) == b"first"
        answers = [call.future(b"%d" % number, timeout=60) for number in range(1, CALLS)]
        # All of them are with gRPC's core before the loop runs again.
        loop.call_soon(time.sleep, 0.3)
        loop.call_soon(work)
        async with asyncio.timeout(60):
            await all_arrived.wait()
            assert await asyncio.to_thread(lambda: [answer.result() for answer in answers])
    await server.stop(None)
    # One by one they take more than two passes each.
    assert arrivals[-1] < CALLS


async def test_a_method_that_is_held_back_stays_in_grpcs_core_and_others_are_accepted() -> None:
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    accepted: list[bytes] = []

    async def handler(request: bytes, context: Any) -> bytes:
        accepted.append(request)
        return request

    server, port = await start(handler, lambda method: turn if method == METHOD else None)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, asyncio.timeout(30):
        call: Any = channel.unary_unary(METHOD)
        calls = [asyncio.ensure_future(call(b"held", timeout=30)) for _ in range(CALLS)]
        other: Any = channel.unary_unary("/test.Echo/Other")
        await asyncio.gather(*(other(b"other", timeout=30) for _ in range(CALLS)))
        assert accepted.count(b"held") <= accept.ACCEPTED_AT_ONCE
        turn.set_result(None)
        await asyncio.gather(*calls)
    assert accepted.count(b"held") == accepted.count(b"other") == CALLS
    await server.stop(None)


async def test_a_call_that_has_ended_is_not_kept_until_the_next_one() -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        return request

    def states() -> int:
        return sum(type(found) is _cygrpc.RPCState for found in gc.get_objects())

    gc.collect()
    others = states()
    server, port = await start(handler)
    # At most so many wait for the next calls of two methods, and one for those of other methods.
    waiting = 2 * accept.ACCEPTED_AT_ONCE + 1
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary(METHOD)
        for _ in range(accept.ACCEPTED_AT_ONCE + 1):
            await call(b"short", timeout=30)
        for _ in range(50):
            if (left := states() - others) <= waiting:
                break
            await asyncio.sleep(0.01)
    await server.stop(None)
    assert left <= waiting


async def test_a_stop_lets_accepted_calls_end_and_refuses_others() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def handler(request: bytes, context: Any) -> bytes:
        entered.set()
        await leave.wait()
        return request

    server, port = await start(handler)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary(METHOD)
        accepted = asyncio.ensure_future(call(b"kept", timeout=30))
        await entered.wait()
        stopping = asyncio.create_task(server.stop(30))
        await asyncio.sleep(0)
        leave.set()
        assert await accepted == b"kept"
        async with asyncio.timeout(30):
            await stopping
        try:
            await call(b"late", timeout=5)
            raise AssertionError("the server has stopped")
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE
