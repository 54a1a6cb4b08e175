"""Capacity between tenants with full queues, on real services: by weight, despite work that cannot run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from taskyard import Client, command
from taskyard.v1 import lease_pb2
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.domain.quota import Quota
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys, counters
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

WEIGHTS = {"small": 1, "medium": 10, "large": 100}
# Of the tenant that is at its quota, and beside it one for each point of weight.
CAPPED_PLACES = 4
PLACES = CAPPED_PLACES + sum(WEIGHTS.values())
TASK_SECONDS = 0.5
# Until every tenant has what it is ahead, then so long that the smallest ends about thirty tasks: one of
# them is a third of what it may be off.
START_SECONDS = 3.0
SECONDS = 15.0
UNMATCHED = 100_000
# A tenant that comes later, with a few tasks; and how often schedulers receive usage and new tenants.
LATE_WEIGHT, LATE_TASKS, LATE_AFTER = 10, 5, 5.0
USAGE_SECONDS = 2.0


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


async def add_tenant(plane: ControlPlane, tenant: str, weight: int, *, concurrent: int = 0) -> Client:
    """A tenant of this weight, unlimited but for what it may run at a time."""
    key = ApiKey.make()
    async with await psycopg.AsyncConnection.connect(plane.url) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, weight, max_concurrent_tasks, "
            "max_queue_depth, rate_limit_per_sec, rate_burst) VALUES (%s, %s, 1, %s, %s, 0, 0, 0)",
            (tenant, tenant, weight, concurrent),
        )
        stored = api_keys.StoredKey(key.id, api_keys.TENANT, key.digest, tenant_id=tenant)
        await api_keys.insert_key(Tx(connection), stored)
        if concurrent:
            await counters.begin(Tx(connection), tenant, Quota(concurrent, 0, 0, 0, weight))
    return Client(plane.taskdbs[0].address, key=key.text, tenant=tenant)


async def multiply(url: str, tenant: str, count: int) -> None:
    """Multiply a tenant's one waiting task to `count`."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for table in ("tasks", "queue"):
            rows = await connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
                "AND NOT attisdropped AND attgenerated = '' AND attname <> 'task_id'",
                (table,),
            )
            columns = ", ".join(row[0] for row in await rows.fetchall())
            await connection.execute(
                f"INSERT INTO {table} (task_id, {columns}) SELECT task_id || n, {columns} "
                f"FROM {table}, generate_series(2, %s) n WHERE tenant_id = %s",
                (count, tenant),
            )


class Meter:
    """A runner that works through what it gets and adds up whose capacity-seconds those were, in a window."""

    def __init__(self, runner: LinkRunner, begin: float, end: float) -> None:
        self.runner = runner
        self.begin = begin
        self.end = end
        self.seconds: dict[str, float] = {}
        # When each task came, and how long the longest took.
        self.starts: dict[str, float] = {}
        self.longest = 0.0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while time.monotonic() < self.end:
                try:
                    assignment = await self.runner.next_assignment(self.end - time.monotonic())
                except TimeoutError:
                    return
                group.create_task(self._execute(assignment))

    async def _execute(self, assignment: lease_pb2.Assignment) -> None:
        began = self.starts[assignment.lease.task] = time.monotonic()
        await self.runner.started(assignment)
        await asyncio.sleep(TASK_SECONDS)
        await self.runner.succeeded(assignment)
        self.longest = max(self.longest, time.monotonic() - began)
        tenant = assignment.lease.task.split("/")[1]
        counted = min(time.monotonic(), self.end) - max(began, self.begin)
        self.seconds[tenant] = self.seconds.get(tenant, 0.0) + max(0.0, counted)


async def fill(plane: ControlPlane) -> None:
    """Tenants with more work than can run, one of them at its quota and one whose work matches no runner."""
    for tenant, weight in WEIGHTS.items():
        async with await add_tenant(plane, tenant, weight) as client:
            count = int(3 * weight * (START_SECONDS + SECONDS) / TASK_SECONDS) if weight < 100 else 6000
            async for _ in client.create_many(command("true") for _ in range(count)):
                pass
    async with await add_tenant(plane, "capped", 100, concurrent=CAPPED_PLACES) as client:
        async for _ in client.create_many(command("true") for _ in range(1000)):
            pass
    async with await add_tenant(plane, "stuck", 100) as client:
        await client.create(command("true", runner_labels={"zone": "nowhere"}))
    await multiply(plane.url, "stuck", UNMATCHED)


async def come_late(client: Client, at: float) -> tuple[float, list[str]]:
    """Submit a few tasks at this time; when that was, and their names."""
    await asyncio.sleep(at - time.monotonic())
    submitted = time.monotonic()
    created = [await client.create(command("true")) for _ in range(LATE_TASKS)]
    return submitted, [f"tenants/late/tasks/{task.id}" for task in created]


@pytest.mark.timeout(180)
async def test_tenants_with_full_queues_get_capacity_seconds_by_weight(plane: ControlPlane) -> None:
    await fill(plane)
    latecomer = await add_tenant(plane, "late", LATE_WEIGHT)
    async with latecomer, plane.runner("meter", capacity=PLACES) as runner:
        await runner.connect()
        begin = time.monotonic() + START_SECONDS
        meter = Meter(runner, begin, begin + SECONDS)
        (submitted, late), _ = await asyncio.gather(come_late(latecomer, begin + LATE_AFTER), meter.run())
    check_start_bound(meter, submitted, late)
    assert meter.seconds.pop("late") > 0
    assert "stuck" not in meter.seconds
    capped = meter.seconds.pop("capped")
    total = sum(meter.seconds.values())
    assert total + capped > 0.7 * PLACES * SECONDS, "the runner was busy"
    assert capped <= CAPPED_PLACES * SECONDS
    for tenant, weight in WEIGHTS.items():
        part = total * weight / sum(WEIGHTS.values())
        assert abs(meter.seconds[tenant] - part) <= 0.1 * part, (tenant, meter.seconds)


def check_start_bound(meter: Meter, submitted: float, tasks: list[str]) -> None:
    """Decision 0010, of a tenant that has nothing held against it: so many of its own tasks are ahead."""
    weights = sum(WEIGHTS.values()) + 100 + LATE_WEIGHT
    for ahead, task in enumerate(tasks):
        bound = USAGE_SECONDS + meter.longest * (2 + ahead * weights / (LATE_WEIGHT * PLACES))
        assert meter.starts[task] - submitted <= bound, (ahead, meter.longest)
