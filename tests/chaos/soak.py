"""`make soak`: a topology under mixed load and random faults for some minutes, by seed; then the checker."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.chaos import topology
from tests.chaos.run import ChaosRun, Outcome, recovery_table


async def soak(name: str, seed: int, minutes: float, users: int) -> Outcome:
    """One run on a topology of its own; the evidence of a failed one is kept."""
    made = await topology.start(name)
    try:
        run = ChaosRun(made, seed)
        await run.start(users)
        await run.inject_random(minutes * 60)
        return await run.finish()
    finally:
        await made.close()


def report(name: str, seed: int, seconds: float, outcome: Outcome) -> None:
    print(
        f"{name} seed {seed}: {len(outcome.violations)} violations; {outcome.tasks} tasks, "
        f"{outcome.runs} runs, {outcome.lost_runs} lost, {len(outcome.faults)} faults, "
        f"{outcome.rejected_reports} stale reports rejected, {outcome.leader_writes} writes of leaders, "
        f"{outcome.starved:.0f} s without processors to spare, {seconds:.0f} s in all"
    )
    print("faults by kind:", ", ".join(f"{kind} {n}" for kind, n in sorted(outcome.kinds.items())))
    for violation in outcome.violations:
        print("  ", violation)
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, action="append", help="repeatable")
    parser.add_argument("--topology", choices=["fleet", "up", "both"], default="both")
    parser.add_argument("--users", type=int, default=12, help="tasks at a time")
    arguments = parser.parse_args()
    names = ["fleet", "up"] if arguments.topology == "both" else [arguments.topology]
    outcomes = []
    for seed in arguments.seed or [1]:
        for name in names:
            begin = time.monotonic()
            outcome = asyncio.run(soak(name, seed, arguments.minutes, arguments.users))
            report(name, seed, time.monotonic() - begin, outcome)
            outcomes.append(outcome)
    print(recovery_table(outcomes))
    return 1 if any(outcome.violations for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
