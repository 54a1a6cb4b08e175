"""Leases on credit over real processes: a task that comes while a runner idles is leased at its creation."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, Phase, command
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

TRIES = 200


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with plane.client() as made:
        yield made


def runner_for(plane: ControlPlane, capacity: int = 4) -> LinkRunner:
    return plane.runner(f"runner-{uuid.uuid4().hex[:8]}", described=registration(capacity))


async def run_one(client: Client, runner: LinkRunner) -> bool:
    """Create and complete a task; whether it was leased when it was created."""
    created = await client.create(command("true"))
    assignment = await runner.next_assignment()
    assert assignment.lease.task.endswith(created.id)
    await runner.complete(assignment)
    task = await client.wait(created, timeout=20)
    assert (task.phase, assignment.lease.generation) == (Phase.SUCCEEDED, 1)
    return created.phase is Phase.SCHEDULED


async def until_eager(client: Client, runner: LinkRunner) -> None:
    """Run tasks until one is leased when it is created."""
    for _ in range(TRIES):
        if await run_one(client, runner):
            return
    pytest.fail(f"none of {TRIES} tasks was leased when it was created")


@pytest.mark.parametrize("capacity", [1, 4])
async def test_tasks_that_come_alone_are_leased_when_they_are_created(
    plane: ControlPlane, client: Client, capacity: int
) -> None:
    async with runner_for(plane, capacity) as runner:
        await runner.connect()
        await until_eager(client, runner)
        assert sum([await run_one(client, runner) for _ in range(40)]) >= 20


async def test_a_backlog_runs_on_all_places_and_then_credit_is_given_again(
    plane: ControlPlane, client: Client
) -> None:
    async with runner_for(plane, 4) as runner:
        await runner.connect()
        await until_eager(client, runner)
        created = [await client.create(command("true")) for _ in range(12)]
        first = [await runner.next_assignment() for _ in range(4)]
        assert runner.waiting_assignments == 0
        order = []
        while first:
            assignment = first.pop(0)
            order.append(assignment.lease.task)
            await runner.complete(assignment)
            if len(order) + len(first) < len(created):
                first.append(await runner.next_assignment())
        assert [name.rsplit("/", 1)[1] for name in order] == [task.id for task in created]
        await until_eager(client, runner)


async def test_it_can_be_switched_off(plane: ControlPlane, client: Client) -> None:
    plane.schedulers[0].stop()
    scheduler = plane.add_scheduler("", "--no-eager-leases")
    async with plane.runner("runner-1", scheduler.address) as runner:
        await runner.connect()
        assert not any([await run_one(client, runner) for _ in range(10)])


async def test_tasks_go_on_when_the_scheduler_is_killed(plane: ControlPlane, client: Client) -> None:
    """Credit ends with the stream: what is created while nobody serves the runner waits, and then runs."""
    async with runner_for(plane) as runner:
        await runner.connect()
        await until_eager(client, runner)
        plane.schedulers[0].kill()
        created = await client.create(command("true"))
    scheduler = plane.add_scheduler()
    async with plane.runner("another", scheduler.address) as other:
        await other.connect()
        async with asyncio.timeout(60):
            assignment = await other.next_assignment(60)
        assert assignment.lease.task.endswith(created.id)
        await other.complete(assignment)
        assert (await client.wait(created, timeout=20)).phase is Phase.SUCCEEDED
