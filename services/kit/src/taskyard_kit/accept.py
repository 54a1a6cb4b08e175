"""The gRPC server, which accepts several calls of each method at a time.

grpc.aio accepts the next call of a method several passes of the event loop after the one before. While the
loop is busy a pass takes milliseconds, and a caller waits behind all calls of the same method that arrived
earlier, also those of other tenants, before any code here can decide on their order. It also waits for all
methods of the server anew for each call. Here each method has ACCEPTED_AT_ONCE requests for calls with gRPC's
core.

A call that is accepted costs the loop a part of a millisecond, one that waits in gRPC's core costs nothing.
Streams, whose openings nobody counts in milliseconds, therefore wait there while the loop is late.

Nothing public of grpc.aio allows for this, so it is done for the releases whose internals are known; with any
other release the server is grpc.aio's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
from grpc._cython import cygrpc as _cygrpc
from grpc.aio import _server as _aio_server

from taskyard.channel import Options
from taskyard_kit.logs import get_log

log = get_log(__name__)

ACCEPTED_AT_ONCE = 16
KNOWN_RELEASES = ("1.85",)

Pace = Callable[[str], asyncio.Future[None] | None]
"""What has to be awaited before the next call of a method is accepted, if anything."""

_core: Any = _cygrpc
_Server: Any = _aio_server.Server


def _at_once(method: str) -> None:
    return None


def make_server(options: Options, pace: Pace = _at_once) -> grpc.aio.Server:
    """A server in the running event loop."""
    if grpc.__version__.rpartition(".")[0] not in KNOWN_RELEASES:
        log.warning("calls_accepted_one_by_one", grpc=grpc.__version__, known=KNOWN_RELEASES)
        return grpc.aio.server(options=options)
    server: grpc.aio.Server = _WideServer(options, pace)
    return server


class _WideServer(_Server):  # type: ignore[misc]
    def __init__(self, options: Options, pace: Pace) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _Acceptor(self._loop, None, (), (), options, None)
        self._server.pace = pace


class _Acceptor(_core.AioServer):  # type: ignore[misc]
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pace: Pace = _at_once
        self._handlers: dict[str, Any] = {}
        # The loop itself has only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    def add_registered_method_handlers(self, method_handlers: dict[str, Any]) -> None:
        self._handlers.update(method_handlers)
        super().add_registered_method_handlers(method_handlers)

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Future[Any]:
        """What grpc.aio awaits to get the next call of a method: done when none can follow.

        Calls of methods that are not registered come one by one, from grpc.aio itself.
        """
        if method is None:
            future: asyncio.Future[Any] = super()._make_request_call_future(method)
            return future
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        for _ in range(ACCEPTED_AT_ONCE):
            self._start(self._accept_calls(method, ended))
        return ended

    async def _accept_calls(self, method: bytes, ended: asyncio.Future[Any]) -> None:
        loop, name = asyncio.get_running_loop(), method.decode()
        found = _Found(self._handlers[name])
        try:
            while self.is_running():
                try:
                    state = await self._request_registered_call(method)
                except _core._RequestCallError:
                    continue
                behavior = _core._handle_rpc(name, found, (), state, loop, False)
                self._start(_core._schedule_rpc_coro(behavior, state, loop, name))
                # The next call may come much later; this one is freed when it ends.
                del state, behavior
                if (turn := self.pace(name)) is not None:
                    await turn
            raise _core._RequestCallError
        except Exception as error:
            if not ended.done():
                ended.set_exception(error)

    def _start(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Found:
    """The handler of one method, in the form in which grpc.aio looks for it."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def resolve_handler(self, details: object) -> Any:
        return self._handler
