"""Faults against a fleet under mixed load: each fires, the fleet recovers, and no promise is broken.

The cases share one load; the last test lets everything end and checks the whole history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.cases import ALL, keeps_every_promise, recovers, running
from tests.chaos.faults import FAILPOINTS, LEADER_SECONDS, NETWORK
from tests.chaos.run import ChaosRun

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]

# Longer than a lease of five seconds where the holder has to lose it.
FLEET = (
    ("kill runner0.agent", 0.0),
    ("kill taskdb0", 1.0),
    ("kill scheduler0", 1.0),
    ("kill gateway", 0.0),
    ("kill runner1.warden", 1.0),
    ("kill worker.agent", 0.0),
    ("kill worker.host", 0.0),
    ("kill backend", 0.0),
    ("kill postmaster", 1.0),
    ("stop runner1.agent", 9.0),
    ("stop runner2.all", 9.0),
    ("stop taskdb0", 4.0),
    ("stop scheduler1", 4.0),
    ("blackhole runner0-scheduler0", 8.0),
    ("back taskdb1-postgres", 3.0),
    ("reset scheduler0-taskdb0", 0.0),
    ("failpoint taskdb0 report.after_commit", 0.0),
    ("failpoint taskdb1 checkpoint.before_commit", 0.0),
    ("disk runner0", 3.0),
)
HOPS = ("client-taskdb0", "scheduler0-taskdb0", "taskdb0-postgres", "runner0-scheduler0", "worker-scheduler0")
MORE = (
    *((f"{mode} {hop}", 4.0) for hop in HOPS for mode in NETWORK),
    *((f"failpoint taskdb{n % 2} {point}", 0.0) for n, point in enumerate(FAILPOINTS)),
    *((f"kill {name}", 0.0) for name in ("taskdb1", "scheduler1", "runner0.warden", "worker.warden")),
    # One of them leads housekeeping.
    *((f"stop taskdb{n}", LEADER_SECONDS) for n in range(2)),
    *(
        (f"stop {name}", 4.0)
        for name in ("gateway", "postmaster", "runner0.warden", "worker.host", "worker.all")
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[ChaosRun]:
    async for run in running("fleet"):
        yield run


@pytest.mark.parametrize(("name", "hold"), (*FLEET, *(MORE if ALL else ())))
async def test_fleet_recovers_from(fleet: ChaosRun, name: str, hold: float) -> None:
    await recovers(fleet, name, hold)


async def test_fleet_recovers_from_kills_of_runners_whose_reports_wait_in_spools(fleet: ChaosRun) -> None:
    """Without a scheduler, outcomes, output and checkpoints wait on disk while agents and a warden die."""
    fleet.load.burst(24)
    await asyncio.sleep(1.5)
    schedulers = [asyncio.create_task(fleet.injector.run(f"stop scheduler{n}", 7.0)) for n in range(2)]
    await asyncio.sleep(4.0)
    victims = ("runner0.agent", "runner1.warden", "runner2.agent", "worker.agent")
    await asyncio.gather(*(recovers(fleet, f"kill {victim}", 0.0) for victim in victims), *schedulers)


async def test_fleet_keeps_every_promise_over_all_faults(fleet: ChaosRun) -> None:
    outcome = await keeps_every_promise(fleet)
    assert outcome.leader_writes, "no leader was seen"
