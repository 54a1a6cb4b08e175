"""A server whose loop is busy: prints how many passes a call waits behind streams that end before it.

python busy_loop.py STREAMS
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from taskyard_kit import accept, wakeups

PASS_SECONDS = 0.002


async def passes_until_called(streams: int) -> int:
    passes, opened = 0, 0
    called, half_opened = asyncio.Event(), asyncio.Event()

    async def call(request: bytes, context: Any) -> bytes:
        called.set()
        return request

    async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
        nonlocal opened
        opened += 1
        if opened == streams // 2:
            half_opened.set()
        yield request
        await called.wait()

    server = accept.make_server(())
    handlers: dict[str, Any] = {
        "Call": grpc.unary_unary_rpc_method_handler(call),
        "Stream": grpc.unary_stream_rpc_method_handler(stream),
    }
    server.add_registered_method_handlers("test.Echo", handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    loop = asyncio.get_running_loop()

    def work() -> None:
        nonlocal passes
        passes += 1
        time.sleep(PASS_SECONDS)
        if not called.is_set():
            loop.call_soon(work)

    # The threads of these channels go on while the loop is busy.
    target = f"127.0.0.1:{port}"
    with grpc.insecure_channel(target) as one, grpc.insecure_channel(target) as other:
        for channel in (one, other):
            await asyncio.to_thread(grpc.channel_ready_future(channel).result, 30)
        opening: Any = one.unary_stream("/test.Echo/Stream")
        calling: Any = other.unary_unary("/test.Echo/Call")
        loop.call_soon(work)
        held = [opening(b"%d" % number, timeout=90) for number in range(streams)]
        await half_opened.wait()
        # All streams end at once, and the call follows.
        for one_stream in held:
            one_stream.cancel()
        before = passes
        answer = calling.future(b"", timeout=90)
        async with asyncio.timeout(90):
            await called.wait()
        waited = passes - before
        await asyncio.to_thread(answer.result)
    await server.stop(None)
    return waited


if __name__ == "__main__":
    wakeups.initialise()
    print(asyncio.run(passes_until_called(int(sys.argv[1]))))
