"""Faults of the database that take a minute each (`make chaos`): a long reader, and a brownout."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator
from statistics import quantiles

import psycopg
import pytest

from taskyard import command
from taskyard.client import Client
from taskyard.task import Task
from taskyard.v1 import lease_pb2
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner
from tests.harness.postgres import PostgresServer
from tests.harness.processes import free_port

BASELINE_SECONDS = 20.0
# A thirtieth of the half hour that the case names, beside a load of 200 tasks a second.
READER_SECONDS = 60.0
BATCH = 100
BROWNOUT_SECONDS = 20.0
OFFERED_PER_SECOND = 100

Arrivals = defaultdict[str, "asyncio.Future[float]"]
"""When the runner got each task."""


@contextlib.asynccontextmanager
async def work_off(plane: ControlPlane, arrived: Arrivals) -> AsyncIterator[None]:
    """Completes what is assigned to four runners, and notes when each task arrived."""

    async def complete(runner: LinkRunner) -> None:
        await runner.connect()
        while True:
            lease = (await runner.next_assignment(timeout=60)).lease
            arrived[lease.task.rpartition("/")[2]].set_result(time.monotonic())
            started = lease_pb2.RunReport(lease=lease, started=lease_pb2.RunStarted())
            succeeded = lease_pb2.RunReport(lease=lease, succeeded=lease_pb2.RunSucceeded(exit_code=0))
            await runner.report_all([started, succeeded])

    async with contextlib.AsyncExitStack() as runners, asyncio.TaskGroup() as group:
        names = [f"runner-{n}" for n in range(4)]
        made = [await runners.enter_async_context(plane.runner(name, capacity=100)) for name in names]
        working = [group.create_task(complete(runner)) for runner in made]
        yield
        for task in working:
            task.cancel()


async def churn(client: Client, stop: asyncio.Event) -> None:
    """Creates tasks at a steady rate, whose rows die soon after."""
    while not stop.is_set():
        begin = time.monotonic()
        await client.create_all([command("true") for _ in range(BATCH)])
        await asyncio.sleep(max(0.0, 0.5 - (time.monotonic() - begin)))


async def start_latencies(client: Client, arrived: Arrivals, seconds: float) -> list[float]:
    """Seconds from create to assignment of ten tasks a second."""
    sent: dict[str, float] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        sent[(await client.create(command("true"))).id] = begin
        await asyncio.sleep(max(0.0, 0.1 - (time.monotonic() - begin)))
    async with asyncio.timeout(30):
        return [await arrived[task] - at for task, at in sent.items()]


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


@pytest.mark.timeout(300)
async def test_fault_34_a_long_reader_does_not_slow_claims_down(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template) as plane:
        arrived: Arrivals = defaultdict(asyncio.Future)
        stop = asyncio.Event()
        async with plane.client() as client, work_off(plane, arrived), asyncio.TaskGroup() as load:
            load.create_task(churn(client, stop))
            await start_latencies(client, arrived, 5.0)
            before = p99(await start_latencies(client, arrived, BASELINE_SECONDS))
            with psycopg.connect(plane.url) as reader:
                reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                reader.execute("SELECT count(*) FROM tasks")
                await start_latencies(client, arrived, READER_SECONDS - BASELINE_SECONDS)
                beside = p99(await start_latencies(client, arrived, BASELINE_SECONDS))
            stop.set()
        print(f"\np99 of starts {before * 1e3:.0f} ms before, {beside * 1e3:.0f} ms beside a reader")
        assert beside < 3 * before


def attempts_at(metrics: str) -> int:
    """The GetTask calls that the server answered, however it answered them."""
    with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^taskyard_rpc_duration_seconds_count\{[^}]*GetTask[^}]*\} (\S+)$", text, re.M)
    return round(sum(map(float, found)))


async def kill_backends(url: str, stop: asyncio.Event) -> None:
    """Ends about half of the database's other connections, again and again."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        while not stop.is_set():
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5"
            )
            await asyncio.sleep(random.uniform(0.0, 0.05))


@pytest.mark.timeout(180)
async def test_fault_64_retries_add_at_most_a_fifth_to_the_load_of_a_brownout(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template, taskdbs=0, schedulers=0) as plane:
        metrics = f"127.0.0.1:{free_port()}"
        plane.add_taskdb("--metrics-listen", metrics)
        async with plane.client() as client:
            made = await client.create(command("true"))
            before = attempts_at(metrics)
            calls, succeeded = await offer_load(plane, client, made.id)
            attempts, begin = attempts_at(metrics) - before, time.monotonic()
            late = await asyncio.gather(*calls, return_exceptions=True)
            seconds = time.monotonic() - begin
        ratio = attempts / len(calls)
        waiting = len(calls) - succeeded
        print(f"\n{len(calls)} calls, {attempts} attempts, {waiting} answered {seconds:.1f} s after it")
        assert waiting > 0.2 * len(calls), "the brownout was none"
        assert ratio <= 1.2
        # Those that waited it out succeed soon after it.
        assert not [one for one in late if isinstance(one, BaseException)]
        assert seconds < 10.0


async def offer_load(plane: ControlPlane, client: Client, task: str) -> tuple[list[asyncio.Task[Task]], int]:
    """Calls at a fixed rate, whatever becomes of the earlier ones; and how many have succeeded."""
    stop, calls = asyncio.Event(), []
    async with asyncio.TaskGroup() as faults:
        faults.create_task(kill_backends(plane.url, stop))
        end = time.monotonic() + BROWNOUT_SECONDS
        while time.monotonic() < end:
            calls.append(asyncio.create_task(client.get(task)))
            await asyncio.sleep(1 / OFFERED_PER_SECOND)
        stop.set()
    return calls, sum(call.done() and not call.exception() for call in calls)
