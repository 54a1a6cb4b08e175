"""Turns: one tenant has a part of the places, those that wait take turns, and no place is lost."""

from __future__ import annotations

import asyncio

import pytest

from taskyard_taskdb.storage.turns import SHARED, NoTurn, Turns


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Work:
    """Holds places until it is released; `begun` has the owners in order."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.release = asyncio.Event()

    def start(self, *owners: str) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.hold(owner)) for owner in owners]

    async def hold(self, owner: str) -> None:
        await self.turns.enter(owner)
        self.begun.append(owner)
        try:
            await self.release.wait()
        finally:
            self.turns.leave(owner)


async def test_one_tenant_leaves_places_to_others() -> None:
    work = Work(Turns(4, 3, 60))
    tasks = work.start("a", "a", "a", "a", "a", "b")
    await settle()
    assert work.begun == ["a", "a", "a", "b"]
    work.release.set()
    await asyncio.gather(*tasks)
    assert len(work.begun) == 6


async def test_work_of_no_tenant_may_use_every_place() -> None:
    work = Work(Turns(4, 3, 60))
    tasks = work.start(*[SHARED] * 4)
    await settle()
    assert len(work.begun) == 4
    work.release.set()
    await asyncio.gather(*tasks)


async def test_tenants_that_wait_take_turns() -> None:
    turns = Turns(1, 1, 60)
    await turns.enter("x")
    begun: list[str] = []

    async def once(owner: str) -> None:
        await turns.enter(owner)
        begun.append(owner)
        turns.leave(owner)

    tasks = [asyncio.create_task(once(owner)) for owner in ("a", "a", "a", "b", "c")]
    await settle()
    turns.leave("x")
    await asyncio.gather(*tasks)
    assert begun == ["a", "b", "c", "a", "a"]


async def test_a_cancelled_turn_is_given_back() -> None:
    turns = Turns(1, 1, 60)
    await turns.enter("a")
    waiting = [asyncio.create_task(turns.enter("b")) for _ in range(2)]
    await settle()
    turns.leave("a")
    # The first has its turn and has not run yet.
    waiting[0].cancel()
    async with asyncio.timeout(10):
        await waiting[1]
    turns.leave("b")
    await turns.enter("c")


async def test_without_a_free_place_the_wait_ends_and_nothing_is_left_behind() -> None:
    turns = Turns(1, 1, 0.01)
    await turns.enter("a")
    with pytest.raises(NoTurn):
        await turns.enter("b")
    turns.leave("a")
    await turns.enter("c")


async def test_a_place_that_becomes_free_in_the_moment_of_a_cancellation_goes_to_the_next() -> None:
    turns = Turns(1, 1, 60)
    await turns.enter("a")
    waiting = [asyncio.create_task(turns.enter("b")) for _ in range(2)]
    await settle()
    waiting[0].cancel()
    # Before the cancelled task has run again.
    turns.leave("a")
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    await waiting[1]
    turns.leave("b")
    await turns.enter("c")
