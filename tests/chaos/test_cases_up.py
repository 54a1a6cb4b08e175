"""Faults against `taskyard up` under mixed load: each fires, it recovers by itself, no promise is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.cases import ALL, keeps_every_promise, recovers, running
from tests.chaos.faults import NETWORK
from tests.chaos.run import ChaosRun

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]

UP = (("kill postmaster", 0.0), ("kill taskdb", 0.0), ("kill local.warden", 0.0), ("stop local.agent", 9.0))
MORE = (
    *((f"kill {name}", 0.0) for name in ("scheduler", "gateway", "local.agent", "backend")),
    *((f"stop {name}", 9.0) for name in ("taskdb", "scheduler", "local.warden", "postmaster")),
    *((f"{mode} client-taskdb", 3.0) for mode in NETWORK),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[ChaosRun]:
    async for run in running("up"):
        yield run


@pytest.mark.parametrize(("name", "hold"), (*UP, *(MORE if ALL else ())))
async def test_up_recovers_from(up: ChaosRun, name: str, hold: float) -> None:
    await recovers(up, name, hold)


async def test_up_keeps_every_promise_over_all_faults(up: ChaosRun) -> None:
    await keeps_every_promise(up)
