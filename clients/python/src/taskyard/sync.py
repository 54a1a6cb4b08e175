"""The client for code without asyncio: every method of Client, waiting for its answer."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from taskyard.client import Client
from taskyard.context import Context
from taskyard.stream import Stream

P = ParamSpec("P")
R = TypeVar("R")


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncClient, P], R]:
    @functools.wraps(method)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(method(self._client, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[Client, P], Stream[R]],
) -> Callable[Concatenate[SyncClient, P], Iterator[R]]:
    @functools.wraps(method)
    def iterate(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        stream = method(self._client, *args, **kwargs)
        return self._iterate(stream)

    return iterate


class SyncClient:
    """Client without await; safe to share between threads; a context manager.

    It runs the one implementation on an event loop in a thread of its own, so it also works where a loop is
    running already. Streams are plain iterators.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._client = Client(*args, **kwargs)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="taskyard-client", daemon=True)
        self._thread.start()

    create = _waiting(Client.create)
    create_many = _iterating(Client.create_many)
    get = _waiting(Client.get)
    list = _iterating(Client.list)
    runs = _iterating(Client.runs)
    wait = _waiting(Client.wait)
    watch = _iterating(Client.watch)
    logs = _iterating(Client.logs)
    cancel = _waiting(Client.cancel)
    pause = _waiting(Client.pause)
    resume = _waiting(Client.resume)
    retry = _waiting(Client.retry)
    delete = _waiting(Client.delete)
    health = _waiting(Client.health)

    @property
    def context(self) -> Context:
        """Which server it speaks to."""
        return self._client.context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and the thread; repeating it is safe."""
        if self._thread.is_alive():
            self._run(self._client.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C among others: the call must not go on behind the caller's back.
            future.cancel()
            raise

    def _iterate(self, stream: Stream[R]) -> Iterator[R]:
        # One hop between the threads per batch, not per item: a hop costs more than most items.
        try:
            while True:
                try:
                    batch = self._run(stream.batches.__anext__())
                except StopAsyncIteration:
                    return
                yield from batch
        finally:
            if self._thread.is_alive():
                self._run(stream.aclose())
