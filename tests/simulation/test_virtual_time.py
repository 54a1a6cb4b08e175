"""The loop in virtual time ends with its main task, even if others are left running."""

import asyncio

import pytest

from tests.simulation import virtual_time


async def work_for_ever() -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def lose_cancellations(count: int) -> None:
    while count >= 0:
        try:
            await work_for_ever()
        except asyncio.CancelledError:
            count -= 1


async def leave_running(left: list[asyncio.Task[None]], count: int) -> float:
    left.append(asyncio.create_task(lose_cancellations(count)))
    await asyncio.sleep(3600)
    return asyncio.get_running_loop().time()


def test_an_hour_passes_at_once_and_tasks_that_ignore_cancellation_end() -> None:
    left: list[asyncio.Task[None]] = []
    assert virtual_time.run(leave_running(left, 3)) == pytest.approx(1_003_600.0)
    assert left[0].done()


def test_a_loop_that_never_ends_is_reported() -> None:
    with pytest.raises(virtual_time.Deadlock, match="lose_cancellations"):
        virtual_time.run(leave_running([], 1000))
