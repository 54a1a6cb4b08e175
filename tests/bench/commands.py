"""Commands on a real runner: how many a second, what a start adds to the process, and memory at rest.

The rate is end to end, with the real services. The start is measured on a link that costs next to nothing,
from sending the assignment to the arrival of the success, less what the bare process takes until its exit.
"""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg

from services.runner.tests.runner_process import RunnerProcess, command
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard_taskdb.storage.migrate import upgrade
from tests.bench import cpu
from tests.bench.measure import Figure, Report, median
from tests.bench.taskdb import Load
from tests.harness.control_plane import control_plane
from tests.harness.postgres import PostgresServer, migrated_template

CAPACITY = 50
PATIENCE = 300.0
MIB = 1 << 20
# With the sandbox that a runner has by default.
SANDBOX = {"TASKYARD_RUNNER_SANDBOX": "auto"}
DONE = "SELECT count(*) FROM tasks WHERE phase = 10"
SPAN = "SELECT extract(epoch FROM max(end_time) - min(schedule_time))::float8 FROM tasks WHERE phase = 10"


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Rates of some runs, then starts one by one, then a runner that has nothing to do."""
    runs, count, starts = (1, 1000, 20) if quick else (3, 5000, 200)
    rates = []
    with migrated_template(server, upgrade) as template:
        for number in range(runs):
            rates.append(await _rate(server, template, directory / f"commands-{number}", count))
            print(f"  {rates[-1]:,.0f} commands/s", flush=True)
    report.add(Figure(f"commands, {CAPACITY} at once", median(rates), "tasks/s", tuple(rates)))
    bare = [_bare() for _ in range(starts)]
    added, memory = await _alone(directory / "commands-alone", starts)
    # In turn, because the machine's speed swings.
    bare += [_bare() for _ in range(starts)]
    process = report.add(Figure("bare process", 1000 * median(bare), "ms", tuple(bare)))
    cost = 1000 * median(added) - process.value
    report.add(Figure("start of a command over it", cost, "ms", tuple(added), goal="15", met=cost <= 15))
    report.add(Figure("idle warden + agent", memory, "MiB", goal="70", met=memory < 70))


async def _rate(server: PostgresServer, template: str, folder: Path, count: int) -> float:
    """Commands per second from the first claim to the last exit."""
    with control_plane(server, template) as plane:
        load = Load(plane.taskdbs[0].address, plane.url)
        async with _runner(folder, plane.schedulers[0].address, plane.keys["runner"]) as runner:
            await runner.connected()
            await load.batch_creates(count)
            await load.channel.close()
            with psycopg.connect(plane.url, autocommit=True) as connection:
                end = time.monotonic() + PATIENCE
                while _value(connection, DONE) < count:
                    assert time.monotonic() < end, runner.output()[-4000:]
                    await asyncio.sleep(0.2)
                return count / _value(connection, SPAN)


async def _alone(folder: Path, count: int) -> tuple[list[float], float]:
    """Seconds of commands one after the other, and the mebibytes of a runner before it had any."""
    async with SchedulerPeer() as peer, _runner(folder, peer.address, "ty_bench_secret") as runner:
        await peer.next_session()
        await peer.until(lambda: peer.session.last_heartbeat_id >= 2)
        memory = sum(cpu.resident_bytes(pid) for pid in (runner.pid, runner.agent_pid)) / MIB
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            outcome = await peer.outcome(peer.assign(command("true")))
            taken.append(time.perf_counter() - start)
            assert outcome.HasField("succeeded"), outcome
    # The first ones find nothing that was made ahead.
    return taken[5:], memory


@contextlib.asynccontextmanager
async def _runner(folder: Path, address: str, key: str) -> AsyncIterator[RunnerProcess]:
    folder.mkdir()
    runner = RunnerProcess(folder / "data", address, id="commands", key=key, **SANDBOX)
    try:
        yield await runner.start("--capacity", str(CAPACITY))
    finally:
        await runner.kill()
        runner.clean()


def _bare() -> float:
    start = time.perf_counter()
    subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def _value(connection: psycopg.Connection, query: str) -> float:
    row = connection.execute(query).fetchone()
    assert row is not None
    return float(row[0])
