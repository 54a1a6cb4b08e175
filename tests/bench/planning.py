"""Planning with very many tenants: time of a tick and memory of the scheduler's knowledge.

It runs in a process of its own, because it measures that process: `python -m tests.bench.planning`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from taskyard.v1 import lease_service_pb2, runner_pb2
from taskyard_scheduler.domain.placement import RunnerProfile
from taskyard_scheduler.domain.plan import RunnerPlan, Situation, make_plan
from taskyard_scheduler.domain.resources import Resources
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from tests.bench.measure import Figure, Report
from tests.harness.postgres import PostgresServer

RUNNERS, CAPACITY = 100, 10
WEIGHTS = (1, 10, 50, 100)
TICKS = 200
# Places that become free between two ticks.
FREED = 100
# What a runner has, and what a task of every fifth class needs of it: more than is free on a busy runner, so
# that such lanes are passed over and runners held back for them.
CPUS, LARGE = 10_000, 4_000
# The number of ticks between two messages of taskdb with the usage of tenants, which are then ranked anew.
TICKS_PER_USAGE, USAGE_TENANTS = 40, 1000


def resident_mb() -> float:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def fill(board: LaneBoard, tenants: int, classes: int) -> None:
    """Queue every class for every tenant, as WatchQueue does; a tenth of the classes match no runner."""
    rng = random.Random(1)
    step = lease_service_pb2.WatchQueueResponse(full=True)
    for class_id in range(classes):
        added = step.classes.add(
            tenant="t", class_id=(class_id + 1) << 40, kind=runner_pb2.EXECUTION_KIND_COMMAND
        )
        zone = "nowhere" if class_id % 10 == 0 else f"z{class_id % 3}"
        added.placement.required.selector.match_labels["zone"] = zone
        added.placement.required.selector.match_expressions.add(key=f"no-{class_id}", operator=4)
        added.resources.cpu_millis = LARGE if class_id % 5 == 1 else 1000
    for number in range(tenants):
        step.tenants.add(tenant=f"tenant-{number}", weight=WEIGHTS[number % 4], claimable_count=-1)
    board.apply(step)
    for number in range(tenants):
        step = lease_service_pb2.WatchQueueResponse()
        for class_id in range(classes):
            lane = step.lanes.add(tenant=f"tenant-{number}", backlog=rng.randint(1, 1000))
            lane.key.class_id = (class_id + 1) << 40
            lane.key.priority = 10
            lane.head_ready_time.seconds = 1_700_000_000 + rng.randint(0, 1000)
        board.apply(step)


def add_usage(board: LaneBoard, rng: random.Random, tenants: int) -> None:
    """The usage of tenants that hold leases, as taskdb publishes it."""
    step = lease_service_pb2.WatchQueueResponse()
    for number in rng.sample(range(tenants), min(USAGE_TENANTS, tenants)):
        added = step.tenants.add(tenant=f"tenant-{number}", weight=WEIGHTS[number % 4], claimable_count=-1)
        added.usage = 100 * rng.random()
    board.apply(step)


class Yard:
    """Runners that fill up and free places."""

    def __init__(self, board: LaneBoard) -> None:
        self.board = board
        self.matches = Fleet().matches
        self.used = {f"runner-{n}": 0 for n in range(RUNNERS)}
        self.cpus = dict.fromkeys(self.used, CPUS)
        for n, name in enumerate(self.used):
            self.matches.put(
                name,
                RunnerProfile(
                    name,
                    {"zone": f"z{n % 3}"},
                    frozenset({1}),
                    ("*",),
                    frozenset(),
                    CAPACITY,
                    register_time=n,
                ),
            )
        self._rng = random.Random(2)
        self._running: list[tuple[str, str, int]] = []

    def tick(self, now: float) -> float:
        """Seconds that one plan took; what it placed runs from then on."""
        offers = [
            Offer(name, name, CAPACITY - used, used, CAPACITY, Resources(self.cpus[name]))
            for name, used in self.used.items()
            if used < CAPACITY
        ]
        begin = time.perf_counter()
        plans = make_plan(offers, self.board.agenda, Situation(self.matches, RUNNERS * CAPACITY), now)
        taken = time.perf_counter() - begin
        for plan in plans:
            self._start(plan)
        return taken

    def _start(self, plan: RunnerPlan) -> None:
        key = plan.offer.key
        self.used[key] += plan.count
        for part in plan.tenants:
            # As if all came from the first of them.
            cost = part.lanes[0].cost.cpu_millis
            self.cpus[key] -= cost * part.count
            self.board.claimed(part.tenant, [listed.lane for listed in part.lanes], part.count)
            for listed in part.lanes:
                self.board.agenda.put(replace(listed.lane), 0.0)
            self._running += [(key, part.tenant, cost)] * part.count

    def free(self, count: int) -> None:
        """Some of what runs ends."""
        self._rng.shuffle(self._running)
        for name, tenant, cost in self._running[:count]:
            self.used[name] -= 1
            self.cpus[name] += cost
            self.board.released({tenant: 1})
        del self._running[:count]


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Measure in a process of its own."""
    del server, directory
    size = ("--tenants", "200", "--classes", "10") if quick else ()
    argv = (sys.executable, "-m", "tests.bench.planning", "--json", *size)
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, process.returncode
    for figure in json.loads(output):
        report.add(Figure(**figure))


def measure(tenants: int, classes: int) -> list[Figure]:
    """Ticks of a full yard, and what the process holds then."""
    board = LaneBoard(lambda: 0.0)
    fill(board, tenants, classes)
    yard = Yard(board)
    first = yard.tick(0.0)
    ticks = []
    for n in range(TICKS):
        yard.free(FREED)
        if n % TICKS_PER_USAGE == 0:
            add_usage(board, random.Random(n), tenants)
        # A tick a second: lanes that are passed over become due within this.
        ticks.append(yard.tick(1.0 * n))
    middle, late, memory = statistics.median(ticks), sorted(ticks)[int(0.99 * TICKS)], resident_mb()
    name = f"plan, {len(board):,} lanes of {tenants:,} tenants"
    return [
        Figure(f"{name}, all free", 1e3 * first, "ms"),
        Figure(f"{name}, median", 1e3 * middle, "ms", goal="20", met=middle <= 0.02),
        Figure(f"{name}, p99", 1e3 * late, "ms"),
        Figure(f"{name}, memory", memory, "MB", goal="300", met=memory <= 300),
    ]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    arguments = parser.parse_args()
    figures = measure(arguments.tenants, arguments.classes)
    if arguments.json:
        print(json.dumps([asdict(figure) for figure in figures]))
        return
    for figure in figures:
        Report().add(figure)


if __name__ == "__main__":
    main()
