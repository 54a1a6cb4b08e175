"""Seeded runs of the production code in virtual time: scheduler, sessions, plans, lease clock, lifecycle.

Only clock, network and tables are simulated. After a storm the network calms down; then every task must have
ended exactly once, and no two runs of a FORBID task may ever have overlapped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.rpc.link import RunnerLinkServicer
from taskyard_scheduler.scheduler import Scheduler
from taskyard_taskdb.domain.words import Overlap
from tests.simulation import virtual_time
from tests.simulation.agent import Interval, SimAgent
from tests.simulation.network import SimTaskdb, Weather
from tests.simulation.store import Store

SEEDS = int(os.environ.get("TASKYARD_SIMULATION_SEEDS", "1000"))
CHUNK = 100
STORM_SECONDS = 150.0
CALM_SECONDS = 600.0


async def simulate(seed: int, *, eager: bool = True) -> tuple[Store, list[Interval], bool]:
    """One run; the store and what really ran, and whether everything came to its end."""
    loop = asyncio.get_running_loop()
    rng = random.Random(seed)
    weather = Weather(random.Random(rng.random()))
    store = Store(loop.time, random.Random(rng.random()))
    history: list[Interval] = []
    tasks = []
    servicers = []
    for n in range(2):
        taskdb: Any = SimTaskdb(store, weather)
        config = LinkConfig(f"scheduler-{n}")
        scheduler = Scheduler(taskdb, config, eager=eager, clock=loop.time, rng=random.Random(rng.random()))
        tasks.append(asyncio.create_task(scheduler.run()))
        servicers.append(RunnerLinkServicer(scheduler))
    agents = [SimAgent(f"runner-{n}", servicers, weather, history) for n in range(3)]
    tasks += [asyncio.create_task(agent.run()) for agent in agents]
    tasks.append(asyncio.create_task(_sweep(store)))
    await _submit(store, rng)
    weather.calm()
    ended = await _wait_for_end(store, agents)
    for task in tasks:
        task.cancel()
    return store, history, ended


async def _sweep(store: Store) -> None:
    while True:
        await asyncio.sleep(0.5)
        store.sweep()


async def _submit(store: Store, rng: random.Random) -> None:
    for n in range(12):
        store.create(f"t{n}", overlap=rng.choice([Overlap.FORBID, Overlap.FORBID, Overlap.ALLOW]))
        await asyncio.sleep(rng.uniform(0, 2 * STORM_SECONDS / 12))


async def _wait_for_end(store: Store, agents: list[SimAgent]) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CALM_SECONDS
    while loop.time() < deadline:
        await asyncio.sleep(1.0)
        if all(task.phase.terminal for task in store.tasks.values()) and all(a.idle for a in agents):
            return True
    return False


def problems(store: Store, history: list[Interval], ended: bool) -> list[str]:
    """What must never happen, in words."""
    live = [task for task in store.tasks.values() if not task.phase.terminal]
    waiting = [f"lost: {task.name} is {task.phase.name}" for task in live]
    found = [] if ended else waiting or ["an agent never came to rest"]
    found += [f"ended twice: {key} as {phases}" for key, phases in store.ends.items() if len(phases) > 1]
    runs: dict[str, list[Interval]] = defaultdict(list)
    for interval in history:
        if interval.forbid:
            runs[interval.task].append(interval)
    for task, intervals in runs.items():
        ordered = sorted(intervals, key=lambda interval: interval.start)
        found += [
            f"overlap: {task} on {a.runner_id} until {a.end:.2f} and {b.runner_id} from {b.start:.2f}"
            for a, b in pairwise(ordered)
            if b.start < a.end
        ]
    return found


def outcome(seed: int, *, eager: bool = True) -> list[str]:
    return problems(*virtual_time.run(simulate(seed, eager=eager)))


@pytest.fixture(autouse=True)
def quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_loses_a_task_ends_one_twice_or_overlaps_runs(first: int) -> None:
    failed = {seed: found for seed in range(first, first + CHUNK) if (found := outcome(seed))}
    assert failed == {}


@pytest.mark.timeout(600)
def test_no_seed_does_so_without_credit() -> None:
    failed = {seed: found for seed in range(CHUNK) if (found := outcome(seed, eager=False))}
    assert failed == {}


def test_many_tasks_are_leased_when_they_are_created() -> None:
    stores = [virtual_time.run(simulate(seed))[0] for seed in range(10)]
    assert sum(len(store.eager) for store in stores) > 10


def test_it_fails_when_the_first_lease_counts_from_its_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimAgent, "count_from_receipt", True)
    found = [problem for seed in range(60) for problem in outcome(seed)]
    assert any(problem.startswith("overlap") for problem in found)


def test_it_fails_without_the_short_first_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "short_first_lease", False)
    found = [problem for seed in range(60) for problem in outcome(seed)]
    assert any(problem.startswith("lost") for problem in found)


def test_a_seed_always_gives_the_same_history() -> None:
    first, second = (virtual_time.run(simulate(7)) for _ in range(2))
    assert [(i.task, i.runner_id, i.start, i.end) for i in first[1]] == [
        (i.task, i.runner_id, i.start, i.end) for i in second[1]
    ]
    assert len(first[1]) >= 12


def test_storms_interrupt_running_work() -> None:
    """The faults fire: some seeds have runs that were lost and made again."""
    generations = [
        task.generation for seed in range(10) for task in virtual_time.run(simulate(seed))[0].tasks.values()
    ]
    assert max(generations) > 1
