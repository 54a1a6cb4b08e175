"""When sweeps run: as often as they ask for while something happens, less often while nothing does."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest

from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.sweep import sweeper
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.sweeper import Sweeper


class Look:
    """A sweep that counts its runs and says what it knows."""

    name = "look"

    def __init__(self, poll: float, known: float = math.inf) -> None:
        self.poll = poll
        self.known = known
        self.runs = 0
        self._ran = asyncio.Condition()

    async def run(self, leadership: Leadership) -> float:
        async with self._ran:
            self.runs += 1
            self._ran.notify_all()
        return self.known

    async def reach(self, runs: int) -> None:
        """Return once it has run so often."""
        async with asyncio.timeout(10), self._ran:
            await self._ran.wait_for(lambda: self.runs >= runs)


class _Held(Leadership):
    held = True


@pytest.fixture
def leadership() -> Leadership:
    return _Held(Pool("postgresql://nobody"), timedelta(0))


async def test_a_sweep_rests_while_nothing_is_committed_and_comes_back_at_once(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "ACTIVE_SECONDS", 0.0)
    resting, exact = Look(0.05), Look(0.05, known=0.2)
    loop = Sweeper(leadership, [resting, exact])
    task = asyncio.create_task(loop.run())
    # What is known to be due is done in time, what is only looked for is not looked for.
    await exact.reach(3)
    assert resting.runs == 1
    loop.notify_commit()
    await resting.reach(2)
    task.cancel()


async def test_a_sweep_polls_while_something_happens(leadership: Leadership) -> None:
    look = Look(0.02)
    task = asyncio.create_task(Sweeper(leadership, [look]).run())
    await look.reach(5)
    task.cancel()
