"""Drains of a pre-filled queue through scheduler and stream: plain, and with what could make it dearer.

`make bench BENCH_ARGS=drain`. The variants alternate with the plain drain, and their ratio is what counts:
the runner of the tests takes part of the same cores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from taskyard import Client, NewTask, command
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.storage.migrate import upgrade
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys
from tests.bench.fast_runner import short_run
from tests.bench.measure import Figure, Report, median
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration
from tests.harness.postgres import PostgresServer, migrated_template

CLASSES, TENANTS = 50, 100
ALLOWED = 0.15
ZONES = {f"zone-{n}": "here" for n in range(CLASSES)}


def plain(n: int) -> NewTask:
    return command("true")


def selecting(n: int) -> NewTask:
    return command("true", runner_labels={f"zone-{n % CLASSES}": "here"})


def slotted(n: int) -> NewTask:
    return command("true", slot=f"slot-{n}")


# Name, the n-th task, and over how many tenants they are spread.
VARIANTS: dict[str, tuple[Callable[[int], NewTask], int]] = {
    f"{CLASSES} selector classes": (selecting, 1),
    "a slot on every task": (slotted, 1),
    f"{TENANTS} tenants": (plain, TENANTS),
}


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Measure every variant against the plain drains before and after it: the machine's speed swings."""
    del directory
    count, rounds = (2000, 1) if quick else (40_000, 5)
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    ratios: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with migrated_template(server, upgrade) as template:
        plains = [await drain(server, template, plain, 1, count)]
        for _ in range(rounds):
            for name, (task, tenants) in VARIANTS.items():
                rates[name].append(await drain(server, template, task, tenants, count))
                plains.append(await drain(server, template, plain, 1, count))
                ratios[name].append(2 * rates[name][-1] / sum(plains[-2:]))
            compared = ", ".join(f"{found[-1]:.2f} x with {name}" for name, found in ratios.items())
            print(f"  plain {plains[-1]:,.0f} tasks/s; {compared}", flush=True)
    report.add(Figure("drain, plain", median(plains), "tasks/s", tuple(plains)))
    for name, found in ratios.items():
        ratio = median(found)
        report.add(
            Figure(
                f"drain with {name}",
                median(rates[name]),
                "tasks/s",
                runs=tuple(rates[name]),
                ratio=ratio,
                reference="plain drains around it",
                goal=f"costs less than {ALLOWED:.0%}",
                met=ratio > 1 - ALLOWED,
            )
        )


async def drain(
    server: PostgresServer, template: str, task: Callable[[int], NewTask], tenants: int, count: int
) -> float:
    """Tasks per second from the runner's hello to the last acknowledged outcome."""
    with control_plane(server, template) as plane:
        for n in range(tenants):
            await fill(plane, f"bench-{n}", (task(m) for m in range(n, count, tenants)))
        await asyncio.to_thread(settle, plane.url)
        described = registration(1000, 1000, labels=ZONES)
        async with plane.runner("drainer", described=described) as runner:
            begin = time.perf_counter()
            await runner.connect()
            await work(runner, count)
            return count / (time.perf_counter() - begin)


def settle(url: str) -> None:
    """Return once the leader has counted and sealed what the filling wrote: that is not the drain's work."""
    with psycopg.connect(url, autocommit=True) as connection:
        (last,) = connection.execute("SELECT max(id) FROM changes").fetchone() or (0,)
        for place in ("SELECT last_id FROM task_stats_place", "SELECT max(last_id) FROM seals"):
            while ((connection.execute(place).fetchone() or (0,))[0] or 0) < last:
                time.sleep(0.05)


async def fill(plane: ControlPlane, tenant: str, tasks: Iterator[NewTask]) -> None:
    """Create the tasks of an unlimited tenant."""
    key = ApiKey.make()
    async with await psycopg.AsyncConnection.connect(plane.url) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, "
            "rate_limit_per_sec, rate_burst) VALUES (%s, 'bench', 1, 0, 0, 0, 0)",
            (tenant,),
        )
        stored = api_keys.StoredKey(key.id, api_keys.TENANT, key.digest, tenant_id=tenant)
        await api_keys.insert_key(Tx(connection), stored)
    async with Client(plane.taskdbs[0].address, key=key.text, tenant=tenant) as client:
        async for _ in client.create_many(tasks):
            pass


async def work(runner: LinkRunner, count: int) -> None:
    """Start and end every task, many reports in a message."""
    done = 0
    while done < count:
        taken = [await runner.next_assignment(60)]
        while runner.waiting_assignments and len(taken) < 400:
            taken.append(await runner.next_assignment())
        last = (await runner.report_all(short_run(assignment.lease) for assignment in taken))[-1]
        done += len(taken)
    await runner.acked(last, timeout=120)
    assert runner.rejections == []
