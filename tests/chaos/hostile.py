"""`make hostile`: a tenant misuses all it has for a minute, on half a core; another tenant hardly notices.

Its processes are compared with the same processes doing cheap reads. The victim's p99 of CreateTask may be
three times as high at most, and the runner that holds the victim's FORBID leases keeps each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from taskyard import Client, Phase, command
from taskyard.v1 import api_key_pb2, lease_pb2
from taskyard_runner.warden.cgroup import Limits, find_hierarchy
from taskyard_taskdb.storage.migrate import upgrade
from tests.chaos.hostile_tenant import MISUSES
from tests.fuzz.rpc import service_of
from tests.fuzz.service import Service
from tests.fuzz.world import add_key, add_tenant
from tests.harness.control_plane import control_plane
from tests.harness.link_runner import LinkRunner, registration
from tests.harness.postgres import migrated_template, postgres_server

PROCESSES = 2
CPU_MILLIS = 500
LEASES = 20
FACTOR = 3.0
# Creates of the victim: one after the other, with a rest, so that it measures and does not load.
REST_SECONDS = 0.02


@dataclass
class Measured:
    """The victim's creates during one kind of load, in milliseconds."""

    kind: str
    times: list[float]

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.times, n=100)[98]

    def __str__(self) -> str:
        p50 = statistics.median(self.times)
        return f"{self.kind:8} {len(self.times):6} creates  p50 {p50:7.1f} ms  p99 {self.p99:7.1f} ms"


@contextlib.contextmanager
def half_a_core(processes: list[subprocess.Popen[str]]) -> Iterator[str]:
    """Hold the processes to CPU_MILLIS together: by a control group, else by stopping them in turns."""
    hierarchy, why = find_hierarchy(f"hostile-{os.getpid()}")
    if hierarchy is not None:
        group = hierarchy.make("tenant")
        for path in (*group.joins(), *group.limit(Limits(cpu_millis=CPU_MILLIS))):
            for process in processes:
                Path(path).write_text(str(process.pid))
        try:
            yield "a control group"
        finally:
            _end(processes)
            group.remove()
            hierarchy.close()
        return
    ended = threading.Event()
    thread = threading.Thread(target=_take_turns, args=(processes, ended))
    thread.start()
    try:
        yield f"turns ({why})"
    finally:
        ended.set()
        thread.join()


def _take_turns(processes: list[subprocess.Popen[str]], ended: threading.Event) -> None:
    share = CPU_MILLIS / 1000 / len(processes)
    while not ended.is_set():
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                ended.wait(0.02)
                process.send_signal(signal.SIGSTOP)
        ended.wait(0.02 * len(processes) * (1 / (share * len(processes)) - 1))
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)


def _end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _start(arguments: list[str]) -> list[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "tests.chaos.hostile_tenant", *arguments]
    count = PROCESSES if arguments[-1] != "quiet" else 0
    return [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(count)]


@contextlib.asynccontextmanager
async def load(service: Service, tenant: str, keys: tuple[str, str], kind: str) -> AsyncIterator[None]:
    """The tenant's processes at work; none for "quiet"."""
    started = _start([service.taskdb, service.scheduler, tenant, *keys, kind])
    try:
        for process in started:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "ready\n", "it did not start"
        with half_a_core(started) if started else contextlib.nullcontext("") as means:
            print(f"{kind}: held to half a core by {means}" if means else kind, flush=True)
            yield
    finally:
        _end(started)


async def measure(client: Client, kind: str, seconds: float) -> Measured:
    """Create tasks for so long."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        await client.create(command("true", runner_labels={"nobody": "has"}))
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(REST_SECONDS)
    return Measured(kind, times)


async def hold_leases(client: Client, runner: LinkRunner) -> list[lease_pb2.Assignment]:
    """Start tasks of which no two runs may overlap."""
    await runner.connect()
    for number in range(LEASES):
        await client.create(command("true", slot=f"slot-{number}", runner_labels={"mine": "yes"}))
    held = [await runner.next_assignment(30) for _ in range(LEASES)]
    for assignment in held:
        await runner.started(assignment)
    return held


async def attack(service: Service, seconds: float, misuses: Sequence[str]) -> int:
    """0 if the victim was not hurt."""
    for tenant in ("victim", "hostile"):
        await add_tenant(service, tenant)
    key = (await add_key(service, tenant="victim")).secret
    scope = api_key_pb2.RunnerScope(tenants=["victim"])
    made = await add_key(service, kind=api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_scope=scope)
    hostile = (
        (await add_key(service, tenant="hostile")).secret,
        (await add_key(service, tenant="hostile", read_only=True)).secret,
    )
    described = registration(LEASES, labels={"mine": "yes"})
    found = {}
    async with (
        Client(service.taskdb, key=key, tenant="victim") as client,
        LinkRunner(service.scheduler, made.secret, "healthy", described=described) as runner,
    ):
        held = await hold_leases(client, runner)
        for kind in ("quiet", "cheap", *misuses):
            async with load(service, "hostile", hostile, kind):
                found[kind] = await measure(client, kind, seconds)
            print(found[kind], flush=True)
        lost = [a.lease.task for a in held if (a.lease.task, a.lease.generation) not in runner.held]
        for assignment in held:
            task = await client.get(assignment.lease.task.rpartition("/")[2])
            if task.phase is not Phase.RUNNING:
                lost.append(f"{assignment.lease.task} is {task.phase}")
    await service.close()
    factors = {kind: found[kind].p99 / found["cheap"].p99 for kind in misuses}
    for kind, factor in factors.items():
        print(f"{kind}: p99 of the victim is {factor:.1f} times that beside cheap reads")
    print(f"{len(lost)} of {LEASES} leases lost")
    return 1 if lost or max(factors.values()) > FACTOR else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of each kind of load")
    parser.add_argument(
        "--only", nargs="*", default=["hostile"], choices=MISUSES, help="measure these misuses, each alone"
    )
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="taskyard-hostile-") as folder,
        postgres_server(Path(folder)) as server,
        migrated_template(server, upgrade) as template,
        control_plane(server, template) as plane,
    ):
        return asyncio.run(attack(service_of(plane), given.seconds, given.only))


if __name__ == "__main__":
    sys.exit(main())
