"""The schedule of sweeps: their own interval while there are commits, a longer one otherwise."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest

from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.sweep import sweeper
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.sweeper import Sweeper


class CountingSweep:
    """A sweep that counts its runs and returns a fixed wait."""

    name = "counting"

    def __init__(self, poll: float, wait: float = math.inf) -> None:
        self.poll = poll
        self.wait = wait
        self.runs = 0
        self._ran = asyncio.Condition()

    async def run(self, leadership: Leadership) -> float:
        async with self._ran:
            self.runs += 1
            self._ran.notify_all()
        return self.wait

    async def reach(self, runs: int) -> None:
        """Return once it has run `runs` times."""
        async with asyncio.timeout(10), self._ran:
            await self._ran.wait_for(lambda: self.runs >= runs)


class _Held(Leadership):
    held = True


@pytest.fixture
def leadership() -> Leadership:
    return _Held(Pool("postgresql://nobody"), timedelta(0))


async def test_a_sweep_polls_less_while_nothing_is_committed_and_runs_after_a_commit(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "ACTIVE_SECONDS", 0.0)
    resting, exact = CountingSweep(0.05), CountingSweep(0.05, wait=0.2)
    loop = Sweeper(leadership, [resting, exact])
    task = asyncio.create_task(loop.run())
    # A sweep with a due time runs on time; one that only polls does not poll.
    await exact.reach(3)
    assert resting.runs == 1
    loop.notify_commit()
    await resting.reach(2)
    task.cancel()


async def test_a_sweep_polls_at_its_own_interval_while_there_are_commits(leadership: Leadership) -> None:
    sweep = CountingSweep(0.02)
    task = asyncio.create_task(Sweeper(leadership, [sweep]).run())
    await sweep.reach(5)
    task.cancel()


async def test_a_sweep_that_is_due_at_a_time_does_not_wait_like_one_that_is_always_due(
    leadership: Leadership,
) -> None:
    exact, always = CountingSweep(1.0, wait=0.001), CountingSweep(1.0, wait=0.0)
    task = asyncio.create_task(Sweeper(leadership, [exact, always]).run())
    await exact.reach(200)
    assert always.runs < 100
    task.cancel()
