"""What the cases of every topology share. TASKYARD_CHAOS=all adds every kind of fault (`make chaos`)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from tests.chaos import topology
from tests.chaos.run import ChaosRun, Outcome, recovery_table

ALL = os.environ.get("TASKYARD_CHAOS") == "all"
SEED = int(os.environ.get("TASKYARD_CHAOS_SEED", "1"))
USERS = 10
# With what remains to do after it, on a machine with no processor to spare.
RECOVERY_SECONDS = 100.0


async def running(name: str) -> AsyncIterator[ChaosRun]:
    """A topology under load."""
    made = await topology.start(name)
    try:
        run = ChaosRun(made, SEED)
        await run.start(USERS)
        yield run
    finally:
        await made.close()


async def recovers(run: ChaosRun, name: str, hold: float) -> None:
    """Fails unless the fault fires and a task that is created then ends."""
    fault = await run.inject(name, hold)
    assert fault.fired, f"{name} did not fire"
    assert fault.canary < RECOVERY_SECONDS, f"{name}: a task ended after {fault.canary:.0f} s"


async def keeps_every_promise(run: ChaosRun) -> Outcome:
    """Fails with every violation in the history of the run; its figures."""
    outcome = await run.finish()
    figures = f"{outcome.tasks} tasks, {outcome.runs} runs, {outcome.lost_runs} lost"
    print(f"\n{figures}, {outcome.rejected_reports} stale reports rejected\n{recovery_table([outcome])}")
    assert not outcome.violations, "\n".join(outcome.violations)
    assert outcome.tasks >= USERS
    return outcome
