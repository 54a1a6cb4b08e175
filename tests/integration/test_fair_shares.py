"""Capacity between tenants with full queues, on real services: by weight, whatever else cannot run."""

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
from taskyard_taskdb.storage import keys
from taskyard_taskdb.storage.pool import Tx
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

SECONDS = 12.0
PLACES = 40
TASK_SECONDS = 0.4


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


async def add_tenant(plane: ControlPlane, tenant: str, weight: int) -> Client:
    """An unlimited tenant of this weight."""
    key = ApiKey.make()
    async with await psycopg.AsyncConnection.connect(plane.url) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, weight, max_concurrent_tasks, "
            "max_queue_depth, rate_limit_per_sec, rate_burst) VALUES (%s, %s, 1, %s, 0, 0, 0, 0)",
            (tenant, tenant, weight),
        )
        stored = keys.StoredKey(key.id, keys.TENANT, key.digest, tenant_id=tenant)
        await keys.insert_key(Tx(connection), stored)
    return Client(plane.taskdbs[0].address, key=key.text, tenant=tenant)


class Meter:
    """A runner that works through what it gets and adds up whose capacity-seconds those were."""

    def __init__(self, runner: LinkRunner, end: float) -> None:
        self.runner = runner
        self.end = end
        self.seconds: dict[str, float] = {}
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
        began = time.monotonic()
        await self.runner.started(assignment)
        await asyncio.sleep(TASK_SECONDS)
        await self.runner.succeeded(assignment)
        tenant = assignment.lease.task.split("/")[1]
        held = min(time.monotonic(), self.end) - began
        self.longest = max(self.longest, held)
        self.seconds[tenant] = self.seconds.get(tenant, 0.0) + max(0.0, held)


@pytest.mark.timeout(120)
async def test_tenants_with_full_queues_get_capacity_in_the_order_of_weights(
    plane: ControlPlane,
) -> None:
    weights = {"small": 1, "medium": 10, "large": 100}
    for tenant, weight in weights.items():
        async with await add_tenant(plane, tenant, weight) as client:
            count = 3000 if weight == 100 else 800
            async for _ in client.create_many(command("true") for _ in range(count)):
                pass
    async with await add_tenant(plane, "stuck", 100) as client:
        # Work that nobody can take, and much of it.
        unmatched = (command("true", runner_labels={"zone": "nowhere"}) for _ in range(2000))
        async for _ in client.create_many(unmatched):
            pass
    async with plane.runner("meter", capacity=PLACES) as runner:
        await runner.connect()
        meter = Meter(runner, time.monotonic() + SECONDS)
        await meter.run()
    total = sum(meter.seconds.values())
    assert "stuck" not in meter.seconds
    assert total > 0.5 * PLACES * SECONDS, "the runner was busy"
    parts = {tenant: total * weight / 111 for tenant, weight in weights.items()}
    # A place cannot be divided, and taskdb samples what is used every two seconds: within so short a time the
    # small ones come off too well, never the other way round.
    assert abs(meter.seconds["large"] - parts["large"]) <= 0.15 * parts["large"], meter.seconds
    for tenant in ("small", "medium"):
        assert meter.seconds[tenant] >= 0.8 * parts[tenant] - 2 * meter.longest, meter.seconds
    assert meter.seconds["small"] < meter.seconds["medium"] < meter.seconds["large"], meter.seconds
