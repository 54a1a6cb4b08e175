"""`make graphs`: dependencies at size, with figures: random graphs with kill -9, a chain, fans in and out.

A random graph of 2,000 tasks runs while taskdb is killed again and again; every task has to end, in an order
that respects the edges. A chain, fans in (a tree of joins of 1,000; a group) and a fan-out run without kills,
at two sizes each: the time per task has to stay the same, so no statement grows with the square.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from random import Random

from services.taskdb.tests.dependency_graphs import Graph, Play, draw, judge
from taskyard_taskdb.domain.dependency import Condition
from taskyard_taskdb.storage.migrate import upgrade
from tests.harness.postgres import PostgresServer, migrated_template, postgres_server
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb

JOIN = 1000
Named = dict[str, list[tuple[str, Condition]]]


def chain(size: int) -> Graph:
    """Each task waits for the one before."""
    named: Named = {"c0": []}
    for n in range(1, size):
        named[f"c{n}"] = [(f"c{n - 1}", Condition.SUCCEEDED)]
    return Graph(named)


def failing_chain(size: int) -> Graph:
    """The first task of a chain fails."""
    return Graph(chain(size).after, fails=frozenset({"c0"}))


def fan_in(size: int) -> Graph:
    """Many tasks, joined by one task per thousand, and these by the last one."""
    named: Named = {f"i{n}": [] for n in range(size)}
    joins = []
    for start in range(0, size, JOIN):
        joins.append(f"join{start}")
        named[joins[-1]] = [(f"i{n}", Condition.SUCCEEDED) for n in range(start, min(size, start + JOIN))]
    named["last"] = [(one, Condition.SUCCEEDED) for one in joins]
    return Graph(named)


def fan_out(size: int) -> Graph:
    """Many tasks wait for one."""
    return Graph({"first": [], **{f"o{n}": [("first", Condition.SUCCEEDED)] for n in range(size)}})


def group_fan_in(size: int) -> Graph:
    """Many tasks of one group, joined by a task that waits for the group."""
    named: Named = {f"m{n}": [] for n in range(size)}
    return Graph(
        {**named, "last": [("groups/parts", Condition.SUCCEEDED)]}, groups=dict.fromkeys(named, "parts")
    )


SHAPES = {
    "chain": chain,
    "failing chain": failing_chain,
    "fan-in": fan_in,
    "fan-in by group": group_fan_in,
    "fan-out": fan_out,
}


async def nothing() -> None:
    """The leader sweeps by itself."""


async def run(taskdb: CrashingTaskDb, graph: Graph, rng: Random, kill_seconds: float) -> tuple[float, int]:
    """Run a graph; returns the seconds it took and how often taskdb was killed."""
    await taskdb.start()
    began = time.monotonic()
    play = Play(taskdb.yard, graph, rng, taskdb.rows, nothing)
    running = asyncio.create_task(play.run())
    kills = 0
    while kill_seconds and not running.done():
        await asyncio.wait([running], timeout=rng.uniform(0.3, 2 * kill_seconds))
        if running.done():
            break
        await asyncio.to_thread(taskdb.service.kill)
        await taskdb.expire_leadership()
        await taskdb.start()
        kills += 1
    await running
    await taskdb.until("SELECT count(*) = 0 FROM dependency_backlog")
    return time.monotonic() - began, kills


async def run_and_judge(
    url: str, graph: Graph, seed: int, kill_seconds: float
) -> tuple[float, int, dict[str, int]]:
    """Run a graph on an empty database and judge it: seconds, kills, and how many tasks ended how."""
    with tempfile.TemporaryDirectory() as folder:
        async with crashing_taskdb(url, Path(folder), "--reap-grace", "0s") as taskdb:
            seconds, kills = await run(taskdb, graph, Random(seed), kill_seconds)
            return seconds, kills, await judge(graph, taskdb.rows)


class Graphs:
    """Runs graphs, each on a database of its own, and prints the figures."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template

    def play(self, name: str, graph: Graph, seed: int, kill_seconds: float = 0) -> float:
        """Run one graph; returns the seconds per task."""
        with self._server.database(self._template) as url:
            seconds, kills, counts = asyncio.run(run_and_judge(url, graph, seed, kill_seconds))
        size = len(graph.after)
        words = ", ".join(f"{count} {phase}" for phase, count in sorted(counts.items()))
        figures = f"{size:6} tasks  {seconds:7.1f} s  {1000 * seconds / size:6.2f} ms a task  {kills} kills"
        print(f"{name:22} {figures}  {words}", flush=True)
        return seconds / size


def main() -> None:
    """Parse the arguments and run everything."""
    parser = argparse.ArgumentParser(prog="make graphs", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000, help="of each random graph")
    parser.add_argument("--graphs", type=int, default=3, help="random graphs")
    parser.add_argument(
        "--size", type=int, default=10_000, help="of chain and fans; each also runs at a quarter"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-seconds", type=float, default=3.0, help="mean time between kills")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as server,
        migrated_template(server, upgrade) as template,
    ):
        graphs = Graphs(server, template)
        for seed in range(given.seed, given.seed + given.graphs):
            graph = draw(Random(seed), given.nodes, "g", most=20)
            graphs.play(f"random graph, seed {seed}", graph, seed, given.kill_seconds)
        for name in given.shapes:
            quarter = graphs.play(name, SHAPES[name](given.size // 4), given.seed)
            whole = graphs.play(name, SHAPES[name](given.size), given.seed)
            # Four times as many tasks would take four times as long each if a statement grew with the square.
            assert whole < 2.5 * quarter, f"{name}: {whole / quarter:.1f} times as long per task"


if __name__ == "__main__":
    main()
