"""`make bench-peers`: other queues beside Taskyard in one run, on one durable PostgreSQL, in turns.

Each round plays every system on a fresh database, in another order than the round before.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import psycopg

from taskyard_taskdb.storage.migrate import upgrade
from tests.bench.database import durable_server
from tests.bench.peers.environments import HERE, PYTHON, Missing
from tests.bench.peers.results import Results, line
from tests.bench.peers.systems import PEERS, Counts, Figures, System, Taskyard
from tests.bench.taskdb import BATCH
from tests.harness.postgres import PostgresServer, migrated_template

SLOW_BACKLOG = 1000
QUICK = Counts(backlog=2000, slow_backlog=SLOW_BACKLOG, paced=50, single=200)
BACKLOGS = (2000, 10_000, 50_000)
PLOT = Path("docs/images/performance-peers.png")
NAMES = ("taskyard", *(peer.name for peer in PEERS))


def main() -> None:
    """Parse the arguments, run, print the tables, store the figures and draw them."""
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; 3")
    parser.add_argument("--minutes", type=float, help="begin no round that would last longer than that")
    parser.add_argument("--backlog", type=int, default=20_000, help="tasks a round creates and drains; 20000")
    parser.add_argument("--paced", type=int, default=400, help="tasks a round created at 100 a second; 400")
    parser.add_argument("--single", type=int, default=2000, help="tasks a round created one by one; 2000")
    parser.add_argument("--only", default="", help=f"names with commas, of {', '.join(NAMES)}; all")
    parser.add_argument("--quick", action="store_true", help="small counts, one round: to see that it works")
    parser.add_argument("--no-growth", action="store_true", help="without the drains of growing backlogs")
    parser.add_argument("--json", type=Path, default=Path("bench-peers.json"), help="where the figures go")
    parser.add_argument("--append", action="store_true", help="add the rounds to those that the file has")
    parser.add_argument("--draw", type=Path, metavar="FIGURES", help=f"measure nothing: tables, and {PLOT}")
    arguments = parser.parse_args()
    if arguments.draw:
        draw(arguments.draw, PLOT)
        return
    names = [name for name in arguments.only.split(",") if name] or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"--only: no system is named {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if arguments.rounds < 1:
        parser.error(f"--rounds is {arguments.rounds}, must be at least 1")
    if arguments.backlog < BATCH or arguments.backlog % BATCH:
        parser.error(f"--backlog is {arguments.backlog}, must be a multiple of {BATCH}")
    if min(arguments.paced, arguments.single) < 1:
        parser.error("--paced and --single must be at least 1")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="taskyard-bench-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with (
            durable_server(directory / "postgres") as server,
            migrated_template(server, upgrade) as template,
        ):
            every: list[System] = [Taskyard(template), *PEERS]
            systems, skipped = _prepare([system for system in every if system.name in names])
            results = Results({s.name: s.title for s in systems}, skipped, _version(server))
            if arguments.append and arguments.json.exists():
                results.add(arguments.json)
            asyncio.run(_run(server, systems, results, arguments, start))
    print(f"\n{results.tables()}\n")
    for name, reason in skipped.items():
        print(f"skipped: {name}, {reason}")
    for failure in results.failures:
        print(f"failed: {failure}")
    print(f"figures are in {arguments.json}; {time.monotonic() - start:.0f} s in all")


def _prepare(systems: list[System]) -> tuple[list[System], dict[str, str]]:
    ready, skipped = [], {}
    for system in systems:
        try:
            system.prepare()
            ready.append(system)
        except Missing as error:
            skipped[system.name] = str(error)
            print(f"{system.title}: skipped, {error}", flush=True)
    return ready, skipped


async def _run(
    server: PostgresServer,
    systems: list[System],
    results: Results,
    arguments: argparse.Namespace,
    start: float,
) -> None:
    counts = QUICK if arguments.quick else _counts(arguments)
    rounds = 1 if arguments.quick else arguments.rounds
    longest = 0.0
    for number in range(rounds):
        begun = time.monotonic()
        if arguments.minutes and begun + longest - start > 60 * arguments.minutes:
            print(f"-- no time for another round in {arguments.minutes:g} minutes", flush=True)
            break
        results.note_load()
        print(f"-- round {number + 1} of {rounds}, load {results.loads[-1]}", flush=True)
        found: dict[str, Figures] = {}
        results.rounds.append(found)
        for system in _rotated(systems, number):
            figures = await _attempt(server, system, results, lambda s: s.measure(server, counts))
            if figures is not None:
                found[system.name] = figures
            # Not only at the end: what follows may fail.
            results.write(arguments.json)
        longest = max(longest, time.monotonic() - begun)
    if not arguments.quick and not arguments.no_growth:
        await _grow(server, [system for system in systems if not system.slow], results, arguments.json)
    results.note_load()
    results.write(arguments.json)


async def _drain(server: PostgresServer, backlog: int, system: System) -> Figures:
    return await system.drain(server, backlog)


def _counts(arguments: argparse.Namespace) -> Counts:
    return Counts(arguments.backlog, SLOW_BACKLOG, arguments.paced, arguments.single)


async def _grow(server: PostgresServer, systems: list[System], results: Results, path: Path) -> None:
    for backlog in BACKLOGS:
        print(f"-- backlog of {backlog:,}", flush=True)
        for system in systems:
            found = await _attempt(server, system, results, partial(_drain, server, backlog))
            if found is not None:
                results.growth.append({"system": system.name, "backlog": float(backlog), **found})
            results.write(path)


async def _attempt(
    server: PostgresServer,
    system: System,
    results: Results,
    measure: Callable[[System], Awaitable[Figures]],
) -> Figures | None:
    """What a system does now; None if it fails, which loses no figure of the others."""
    _settle(server)
    begun = time.monotonic()
    try:
        found = await measure(system)
    except Exception as error:  # whatever it is, the others are measured
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        results.failures.append(f"{system.title} in round {len(results.rounds)}: {reason}")
        print(f"  {system.title:<26} failed: {reason}", flush=True)
        return None
    print(f"{line(system.title, found)}, {time.monotonic() - begun:.0f} s", flush=True)
    return found


def _rotated(systems: list[System], number: int) -> list[System]:
    start = number % len(systems)
    return [*systems[start:], *systems[:start]]


def _settle(server: PostgresServer) -> None:
    """Let nobody pay for the pages that the one before has left to write."""
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def _version(server: PostgresServer) -> str:
    with psycopg.connect(server.admin_url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
        return "" if row is None else str(row[0])


def draw(figures: Path, picture: Path) -> None:
    """Print the tables of stored figures and draw them, with the libraries of the peers' environment."""
    print(Results(**json.loads(figures.read_text())).tables())
    PYTHON.prepare()
    script = HERE / "plot.py"
    subprocess.run([PYTHON.folder / "bin" / "python", script, figures, picture], check=True)
    print(f"drawn to {picture}")


if __name__ == "__main__":
    main()
