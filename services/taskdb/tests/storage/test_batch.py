"""Natural batching: what arrives during a flush is the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from taskyard.errors import Overloaded, ServerDraining
from taskyard_taskdb.storage.batch import Batcher


class Gate:
    """A flush that lasts until it is let through, and records what it was given."""

    def __init__(self) -> None:
        self.flushes: list[list[int]] = []
        self.started = asyncio.Semaphore(0)
        self.passes = asyncio.Semaphore(0)

    async def flush(self, items: list[int]) -> Sequence[int | Exception]:
        self.flushes.append(items)
        self.started.release()
        await self.passes.acquire()
        return [item * 10 for item in items]


async def submitted(batcher: Batcher[int, int], *items: int) -> list[asyncio.Task[int]]:
    """Calls that are waiting for their results."""
    tasks = [asyncio.create_task(batcher.submit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_calls_during_a_flush_form_the_next_one() -> None:
    gate = Gate()
    batcher = Batcher(gate.flush)
    first = await submitted(batcher, 1)
    await gate.started.acquire()
    rest = await submitted(batcher, 2, 3, 4)
    gate.passes.release()
    await gate.started.acquire()
    gate.passes.release()
    assert [await task for task in (*first, *rest)] == [10, 20, 30, 40]
    assert gate.flushes == [[1], [2, 3, 4]]


async def test_calls_of_one_round_share_a_flush() -> None:
    gate = Gate()
    batcher = Batcher(gate.flush)
    gate.passes.release()
    assert await batcher.submit_all([1, 2, 3]) == [10, 20, 30]
    assert gate.flushes == [[1, 2, 3]]


async def test_flushes_are_limited_by_count_and_weight() -> None:
    gate = Gate()
    for _ in range(10):
        gate.passes.release()
    counted = Batcher(gate.flush, max_items=2)
    await counted.submit_all([1, 2, 3, 4, 5])
    weighed = Batcher(gate.flush, max_weight=10, weigh=lambda item: item)
    await weighed.submit_all([4, 4, 4, 50, 1])
    assert gate.flushes == [[1, 2], [3, 4], [5], [4, 4], [4], [50], [1]]


async def test_exception_of_one_item_does_not_fail_the_others() -> None:
    async def flush(items: list[int]) -> Sequence[int | Exception]:
        return [ValueError("odd") if item % 2 else item for item in items]

    results = await Batcher(flush).submit_all([1, 2, 3])
    assert [type(result) for result in results] == [ValueError, int, ValueError]


async def test_failed_flush_fails_its_items_and_not_the_next() -> None:
    failures = [RuntimeError("away")]

    async def flush(items: list[int]) -> Sequence[int | Exception]:
        if failures:
            raise failures.pop()
        return items

    batcher = Batcher(flush)
    assert [type(result) for result in await batcher.submit_all([1, 2])] == [RuntimeError, RuntimeError]
    assert await batcher.submit(3) == 3


async def test_cancelled_caller_does_not_stop_the_flush() -> None:
    gate = Gate()
    batcher = Batcher(gate.flush)
    one, other = await submitted(batcher, 1, 2)
    await gate.started.acquire()
    one.cancel()
    gate.passes.release()
    assert await other == 20
    assert one.cancelled()


async def test_item_cancelled_before_its_flush_is_left_out() -> None:
    gate = Gate()
    batcher = Batcher(gate.flush)
    first = await submitted(batcher, 1)
    await gate.started.acquire()
    two, three = await submitted(batcher, 2, 3)
    two.cancel()
    await asyncio.sleep(0)
    for _ in range(2):
        gate.passes.release()
    assert await three == 30 and await first[0] == 10
    assert gate.flushes == [[1], [3]]


async def test_full_and_closed_batchers_refuse() -> None:
    gate = Gate()
    batcher = Batcher(gate.flush, max_waiting=1)
    waiting = await submitted(batcher, 1)
    await gate.started.acquire()
    waiting += await submitted(batcher, 2)
    with pytest.raises(Overloaded):
        await batcher.submit(3)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    with pytest.raises(ServerDraining):
        await batcher.submit(4)
    for _ in range(2):
        gate.passes.release()
    await closing
    assert [await task for task in waiting] == [10, 20]
