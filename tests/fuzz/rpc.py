"""The fuzzer of RPCs as a program: real servers, many calls, then a look at what they left behind.

It fails for INTERNAL, UNKNOWN, UNIMPLEMENTED or UNAVAILABLE, a call that hangs, an answer that is no JSON, an
error in a server's log, memory that grows, and for another tenant whose task, webhook or watch does not work.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.taskdb.tests.sweep.receiver import Receiver, receiving
from tests.fuzz.attack import Attack, Outcome
from tests.fuzz.canary import broken_promises
from tests.fuzz.service import Service
from tests.fuzz.world import World
from tests.harness.control_plane import ControlPlane

MIB = 1024 * 1024
# Memory is read after each quarter of a run. Caches fill in the first half; a server that gains this much in
# both of the last two leaks, 600 bytes a call in 100,000 calls, and so does one that gains four times as much
# in one of them.
PARTS = 4
GROWTH_BYTES = 16 * MIB
LOOPBACK = ("--webhook-networks", "127.0.0.0/8")


@dataclass
class Verdict:
    """What a run found; it passes if `problems` is empty."""

    seed: int
    outcome: Outcome
    memory: list[dict[str, int]]
    problems: list[str] = field(default_factory=list)

    def show(self) -> None:
        """Print it."""
        for line in self.outcome.table():
            print(line)
        for name in self.memory[0]:
            print(f"memory of {name}: " + " → ".join(f"{one[name] // MIB} MiB" for one in self.memory))
        print(f"seed {self.seed}: {self.outcome.calls} calls, {100 * self.outcome.passed:.0f} % served")
        for problem in self.problems:
            print(f"PROBLEM {problem}")


async def fuzz(service: Service, seed: int, calls: int, seconds: float) -> Verdict:
    """Attack a suite, and judge it."""
    async with receiving(Receiver()) as receiver:
        world = World(service, receiver.url())
        await world.prepare()
        memory = [service.resident_bytes()]
        outcome = Outcome()
        for part in range(PARTS):
            attack = Attack(world, seed * PARTS + part, calls // PARTS, seconds / PARTS)
            attack.outcome = outcome
            await attack.run()
            memory.append(service.resident_bytes())
    verdict = Verdict(seed, outcome, memory)
    verdict.problems += [str(finding) for finding in outcome.findings.values()]
    verdict.problems += await broken_promises(service)
    verdict.problems += sorted(set(_logged_errors(service)))
    verdict.problems += leaks(memory)
    await service.close()
    return verdict


def leaks(memory: Sequence[Mapping[str, int]]) -> list[str]:
    """What the readings say about each server's memory at the end; empty if none leaks."""
    found = []
    for name in memory[0]:
        *_, middle, later, last = (reading[name] for reading in memory)
        gained = (later - middle, last - later)
        if min(gained) > GROWTH_BYTES or sum(gained) > 4 * GROWTH_BYTES:
            found.append(f"{name} grew by {sum(gained) // MIB} MiB in the second half")
    return found


def _logged_errors(service: Service) -> Iterator[str]:
    for path in service.logs:
        for line in Path(path).read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                # A caller that leaves while its stream is written to is no defect.
                left = "ExecuteBatchError" in entry.get("exception", "")
                if entry["level"] in ("error", "critical") and not left:
                    lines = [
                        line.strip() for line in entry.get("exception", "").splitlines() if line.strip("^ ")
                    ]
                    place = next((line for line in reversed(lines) if line.startswith("File ")), "")
                    what = re.sub(r"[0-9a-f]{8,}", "…", " | ".join([*lines[-1:], place]))
                    yield f"in the log: {entry['event']:.200} {entry.get('method', '')} {what}"


def service_of(plane: ControlPlane) -> Service:
    """The suite of a test."""
    logs = tuple(str(one.log) for one in (*plane.taskdbs, *plane.schedulers))
    return Service(plane.taskdbs[0].address, plane.schedulers[0].address, plane.keys["admin"], logs)


@contextlib.contextmanager
def _own_suite() -> Iterator[Service]:
    from taskyard_taskdb.storage.migrate import upgrade
    from tests.harness.control_plane import control_plane
    from tests.harness.postgres import migrated_template, postgres_server

    with (
        tempfile.TemporaryDirectory(prefix="taskyard-fuzz-") as folder,
        postgres_server(Path(folder)) as server,
        migrated_template(server, upgrade) as template,
        control_plane(server, template, taskdb_flags=LOOPBACK) as plane,
    ):
        yield service_of(plane)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000, help="calls at most")
    parser.add_argument("--seconds", type=float, default=7200, help="time at most")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="what is generated")
    parser.add_argument(
        "--suite", nargs=3, metavar=("TASKDB", "SCHEDULER", "ADMIN_KEY"), help="a running suite"
    )
    parser.add_argument("--log", action="append", default=[], help="a JSON log of that suite")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    if given.suite:
        taskdb, scheduler, key = given.suite
        running = Service(taskdb, scheduler, key, tuple(given.log))
        suite: contextlib.AbstractContextManager[Service] = contextlib.nullcontext(running)
    else:
        suite = _own_suite()
    with suite as service:
        verdict = asyncio.run(fuzz(service, given.seed, given.calls, given.seconds))
    verdict.show()
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
