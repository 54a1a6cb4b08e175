"""A channel to several replicas: calls go to one of them, and to another when it does not answer.

A replica that refuses connections is left at its first error. One that accepts and does not answer is
detected by a health check, made while a call waits; its calls move only if another replica reports SERVING.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Self

import grpc
import grpc.aio

from taskyard.service_config import repeatable, timeouts

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
# An empty HealthCheckRequest is answered by these two bytes: status SERVING.
SERVING = b"\x08\x01"

# A call that waits longer than this makes a health check.
PATIENCE_SECONDS = 1.0
CHECK_TIMEOUT = 1.5
# Between the checks of a call that waits, and of a stream that is open.
CHECK_SECONDS = 2.0
STREAM_CHECK_SECONDS = 5.0


def split_addresses(target: str) -> tuple[str, ...]:
    """The addresses of a list "host:port,host:port"; raises ValueError if one is empty.

    A target that names gRPC's own resolver, like "ipv4:1.2.3.4:5,1.2.3.4:6", is one address.
    """
    if target.startswith(("ipv4:", "ipv6:")):
        return (target,)
    addresses = tuple(address.strip() for address in target.split(","))
    if not all(addresses):
        raise ValueError(f"{target!r} contains an empty address; use host:port,host:port")
    return addresses


class FailoverChannel(grpc.aio.Channel):
    """Calls go to the current replica, at first the first of the list."""

    def __init__(self, addresses: Sequence[str], replicas: Sequence[grpc.aio.Channel]) -> None:
        self._addresses = tuple(addresses)
        self._replicas = tuple(replicas)
        self._checks: list[Any] = [replica.unary_unary(HEALTH_CHECK) for replica in replicas]
        self._current = 0
        # The event loop keeps only weak references to tasks.
        self._tasks: set[asyncio.Future[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        for replica in self._replicas:
            await replica.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._replicas[self._current].get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._replicas[self._current].wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._replicas[self._current].channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        callables = [replica.unary_unary(method, *args, **kwargs) for replica in self._replicas]
        may_repeat = method in repeatable() or method == HEALTH_CHECK
        default_timeout = timeouts().get(method)

        def call(request: Any, **options: Any) -> asyncio.Future[Any]:
            options.setdefault("timeout", default_timeout)
            return self._keep(self._call(callables, request, options, may_repeat))

        call.method = method  # type: ignore[attr-defined]
        return call

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        callables = [replica.unary_stream(method, *args, **kwargs) for replica in self._replicas]
        return lambda *args, **options: self._open(callables, args, options, STREAM_CHECK_SECONDS)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        callables = [replica.stream_unary(method, *args, **kwargs) for replica in self._replicas]

        def call(*args: Any, **options: Any) -> Any:
            index = self._current
            return self._noting_its_end(index, callables[index](*args, **options))

        return call

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        callables = [replica.stream_stream(method, *args, **kwargs) for replica in self._replicas]
        # Once the other side has responded, the heartbeats of its protocol detect its silence.
        return lambda *args, **options: self._open(callables, args, options, None)

    async def _call(
        self, callables: Sequence[Any], request: Any, options: dict[str, Any], may_repeat: bool
    ) -> Any:
        timeout = options.pop("timeout")
        deadline = None if timeout is None else time.monotonic() + timeout
        for attempts_left in reversed(range(len(self._replicas))):
            index = self._current
            remaining = None if deadline is None else max(0.001, deadline - time.monotonic())
            call = callables[index](request, timeout=remaining, **options)
            try:
                if await self._answered(index, call):
                    return await call
                error = unanswered(self._addresses[index])
            except grpc.aio.AioRpcError as failed:
                if failed.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                error = failed
                self._leave(index)
            finally:
                call.cancel()
            if not (may_repeat and attempts_left) or _expired(deadline):
                raise error
        raise AssertionError("the last attempt returns or raises")

    async def _answered(self, index: int, call: Any) -> bool:
        """Wait for the end of a call; false if its replica hangs and another one has become the current."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(call.code())
        try:
            wait = PATIENCE_SECONDS
            while True:
                await asyncio.wait((waiting,), timeout=wait)
                if waiting.done():
                    return True
                # A check that outlives the call still decides where the next one goes.
                check = self._keep(self._hangs(index))
                await asyncio.wait((waiting, check), return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done() and check.result():
                    return False
                wait = CHECK_SECONDS
        finally:
            waiting.cancel()

    def _open(
        self, callables: Sequence[Any], args: Any, options: Any, check_seconds: float | None
    ) -> _Stream:
        index = self._current
        call = self._noting_its_end(index, callables[index](*args, **options))
        stream = _Stream(call, self._addresses[index])
        self._keep(self._watch(index, stream, check_seconds))
        return stream

    async def _watch(self, index: int, stream: _Stream, check_seconds: float | None) -> None:
        wait = PATIENCE_SECONDS
        while not await stream.ended(wait):
            if stream.responded and check_seconds is None:
                return
            wait = check_seconds if stream.responded and check_seconds else CHECK_SECONDS
            if stream.is_silent(wait) and await self._hangs(index):
                stream.abandon()
                return

    async def _hangs(self, index: int) -> bool:
        """Whether a replica is not SERVING and another one is, which is then the current one."""
        if await self._serves(index):
            return False
        others = [(index + step) % len(self._replicas) for step in range(1, len(self._replicas))]
        serving = await asyncio.gather(*(self._serves(other) for other in others))
        for other, serves in zip(others, serving, strict=True):
            if serves:
                if self._current == index:
                    self._current = other
                return True
        return False

    async def _serves(self, index: int) -> bool:
        try:
            return bytes(await self._checks[index](b"", timeout=CHECK_TIMEOUT)) == SERVING
        except grpc.RpcError:
            return False

    def _leave(self, index: int) -> None:
        if self._current == index:
            self._current = (index + 1) % len(self._replicas)

    def _noting_its_end(self, index: int, call: Any) -> Any:
        call.add_done_callback(lambda done: self._keep(self._note_end(index, done)))
        return call

    async def _note_end(self, index: int, call: Any) -> None:
        if await call.code() is grpc.StatusCode.UNAVAILABLE:
            self._leave(index)

    def _keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Stream:
    """A stream that ends with UNAVAILABLE when it is abandoned; everything else is the call's."""

    def __init__(self, call: Any, address: str) -> None:
        self._call = call
        self._address = address
        self._abandoned = False
        self._last_response: float | None = None
        self._ended = asyncio.Event()
        call.add_done_callback(lambda _: self._ended.set())

    @property
    def responded(self) -> bool:
        """Whether a response has arrived."""
        return self._last_response is not None

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing has arrived for this long."""
        return self._last_response is None or time.monotonic() - self._last_response >= seconds

    async def ended(self, seconds: float) -> bool:
        """Wait for the end, at most this long; whether the call has ended."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def abandon(self) -> None:
        """End the call; its reader gets UNAVAILABLE."""
        self._abandoned = True
        self._call.cancel()

    async def read(self) -> Any:
        return await self._respond(self._call.read)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._responses()

    async def _responses(self) -> AsyncIterator[Any]:
        iterator = aiter(self._call)
        while True:
            try:
                response = await self._respond(iterator.__anext__)
            except StopAsyncIteration:
                return
            yield response

    async def _respond(self, read: Callable[[], Any]) -> Any:
        try:
            response = await read()
        except asyncio.CancelledError:
            if self._abandoned:
                raise unanswered(self._address) from None
            raise
        self._last_response = time.monotonic()
        return response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


def unanswered(address: str) -> grpc.aio.AioRpcError:
    """The error of a call whose replica hangs."""
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, nothing, nothing, details=f"{address} does not answer"
    )


def _expired(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
