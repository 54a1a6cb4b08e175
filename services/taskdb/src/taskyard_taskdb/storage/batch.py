"""Batches: calls that arrive during a flush form the next one, and an item that fails alone is isolated."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

import psycopg

from taskyard.errors import Overloaded, ServerDraining

Item = TypeVar("Item")
Result = TypeVar("Result")

# Rounds of the loop in which calls that have arrived at the process come as far as here. Where several came
# together they are waited for: a transaction of three costs nearly what one of eight does.
_ROUNDS = 60
# Rounds are long while other calls keep the loop busy; nobody waits longer than this for company.
_ARRIVAL_SECONDS = 0.003

Flush = Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]]


def _one(item: object) -> int:
    return 1


class Batcher(Generic[Item, Result]):
    """Hands the items of concurrent callers to `flush`, many at a time, and each caller its own result.

    At most `in_flight` flushes run at once, each in a task of its own, so that a caller that gives up never
    interrupts a transaction. A flush takes up to `max_items`, or as many as weigh `max_weight` together, and
    answers one result or exception per item; what it raises goes to all of them.
    """

    def __init__(
        self,
        flush: Flush[Item, Result],
        *,
        max_items: int = 1000,
        max_weight: int = 8 * 1024 * 1024,
        weigh: Callable[[Item], int] = _one,
        in_flight: int = 1,
        max_waiting: int = 50_000,
        shared: bool = True,
    ) -> None:
        """`shared`: the items belong to several tenants, so that no flush counts as the work of one."""
        self._flush = flush
        self._max_items = max_items
        self._max_weight = max_weight
        self._weigh = weigh
        self._in_flight = in_flight
        self._max_waiting = max_waiting
        self._shared = shared
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    async def submit(self, item: Item) -> Result:
        """The result of one item. Raises what the flush answered, Overloaded or ServerDraining."""
        return await self._enqueue(item)

    async def submit_all(self, items: Sequence[Item]) -> list[Result | BaseException]:
        """The results of several items, in order; an exception takes the place of a result."""
        futures = [self._enqueue(item) for item in items]
        return await asyncio.gather(*futures, return_exceptions=True)

    async def close(self) -> None:
        """Accept nothing more and wait for what was accepted."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)

    @property
    def idle(self) -> bool:
        """Whether nothing is being flushed and nothing waits."""
        return not self._running

    def _enqueue(self, item: Item) -> asyncio.Future[Result]:
        if self._closed:
            raise ServerDraining()
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded(
                "the server", f"{self._max_waiting} waiting items", retry_after=timedelta(seconds=1)
            )
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._running) < self._in_flight:
            # The task starts in the loop's next round, so that all calls of this round share its first flush.
            context = contextvars.Context() if self._shared else None
            task = asyncio.create_task(self._work(), context=context)
            self._running.add(task)
        return future

    async def _work(self) -> None:
        try:
            while batch := self._take():
                await self._flush_batch(batch)
                if len(batch) > 1:
                    await _let_arrive()
        finally:
            # In the step that found nothing more: a caller that was just answered runs before any callback
            # of this task, and its next item must not be left to a task that is over.
            task = asyncio.current_task()
            assert task is not None
            self._running.discard(task)

    async def _flush_batch(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._flush([item for item, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            _settle(future, result)

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        taken: list[tuple[Item, asyncio.Future[Result]]] = []
        weight = 0
        while self._waiting and len(taken) < self._max_items:
            item, future = self._waiting[0]
            if not future.cancelled():
                weight += self._weigh(item)
                if taken and weight > self._max_weight:
                    break
                taken.append((item, future))
            self._waiting.popleft()
        return taken


async def _let_arrive() -> None:
    loop = asyncio.get_running_loop()
    latest = loop.time() + _ARRIVAL_SECONDS
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
        if loop.time() >= latest:
            return


def _settle(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


# Values it cannot store, constraints that do not hold, and locks or statements that take too long.
POISON = (psycopg.DataError, psycopg.IntegrityError, Overloaded)


async def isolate(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Awaitable[None]],
    give_up: Callable[[Item, Exception], None],
) -> None:
    """Do `work` on all items or, where that fails, on ever smaller parts; `give_up` gets those at fault."""
    try:
        await work(items)
    except POISON as error:
        if len(items) == 1:
            give_up(items[0], error)
            return
        middle = len(items) // 2
        await isolate(items[:middle], work, give_up)
        await isolate(items[middle:], work, give_up)
