"""Any sequence of hellos, heartbeats and reports keeps the promises about leases."""

from __future__ import annotations

import os

import pytest

from services.taskdb.tests.conftest import run_taskdb
from tests.chaos.hello_fuzzer import HelloFuzzer
from tests.harness.invariants import assert_invariants

SEEDS = int(os.environ.get("TASKYARD_HELLO_SEEDS", "4"))
STEPS = int(os.environ.get("TASKYARD_HELLO_STEPS", "400"))


async def fuzz(url: str, seed: int, steps: int = STEPS) -> HelloFuzzer:
    async for taskdb in run_taskdb(url, housekeeping=False):
        fuzzer = HelloFuzzer(taskdb, seed)
        await fuzzer.run(steps)
    return fuzzer


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_sequence_of_hellos_and_reports_breaks_a_promise(database_url: str, seed: int) -> None:
    fuzzer = await fuzz(database_url, seed)
    assert not fuzzer.violations, "\n".join([*fuzzer.steps[-40:], *fuzzer.violations])
    # The sequence met what it is for.
    assert min(fuzzer.counts[what] for what in ("rejected", "duplicate", "accepted", "claim")) >= 5
    assert_invariants(database_url)
