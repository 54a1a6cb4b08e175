"""What a suite costs that has nothing to do: 100 connected runners, statements and CPU per second."""

import asyncio
import re
import time
from pathlib import Path

import psycopg
from psycopg import sql

from taskyard_taskdb.storage.migrate import upgrade
from tests.bench import cpu
from tests.bench.measure import Figure, Report
from tests.harness.control_plane import control_plane
from tests.harness.honest_agent import HonestAgent, working
from tests.harness.postgres import PostgresServer, migrated_template

# What the server writes for each statement of the extended and of the simple protocol.
_STATEMENT = re.compile(r"LOG:\s+(execute|statement)")
RUNNERS = 100


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Count for a while after everybody has connected."""
    runners, seconds = (10, 10.0) if quick else (RUNNERS, 60.0)
    with migrated_template(server, upgrade) as template, control_plane(server, template) as plane:
        agents = [HonestAgent(plane.runner(f"idle-{n}")) for n in range(runners)]
        async with working(*agents):
            for agent in agents:
                await agent.connected(1, 60.0)
            # Everyone has sent a heartbeat, and what a start leaves to do is done.
            await asyncio.sleep(15)
            await asyncio.to_thread(_log_statements, server, "all")
            before, spent, start = (
                _logged(directory),
                _spent(plane.taskdbs[0].pid, plane.schedulers[0].pid),
                time.monotonic(),
            )
            await asyncio.sleep(seconds)
            elapsed = time.monotonic() - start
            statements = (_logged(directory) - before) / elapsed
            used = [
                now - then
                for now, then in zip(
                    _spent(plane.taskdbs[0].pid, plane.schedulers[0].pid), spent, strict=True
                )
            ]
            # The benchmarks that follow are not to pay for it.
            await asyncio.to_thread(_log_statements, server, "none")
    name = f"idle with {runners} runners"
    report.add(Figure(f"{name}, statements", statements, "1/s", goal="5", met=statements <= 5))
    for part, value, goal in (("taskdb", used[0], None), ("scheduler", used[1], 3.0)):
        share = 100 * value / elapsed
        met = None if goal is None else share < goal
        report.add(
            Figure(f"{name}, {part}", share, "% CPU", goal="" if goal is None else f"{goal:g}", met=met)
        )


def _spent(*pids: int) -> list[float]:
    return [cpu.of_process(pid) for pid in pids]


def _log_statements(server: PostgresServer, which: str) -> None:
    """Have the server log statements, also of the sessions that are open."""
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER SYSTEM SET log_statement = {}").format(which))
        connection.execute("SELECT pg_reload_conf()")
    time.sleep(1)


def _logged(directory: Path) -> int:
    return sum(len(_STATEMENT.findall(path.read_text(errors="replace"))) for path in directory.rglob("*.log"))
