"""A task that needs a whole runner, on real services with many small ones: capacity is reserved."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Phase, command
from taskyard.v1 import common_pb2, lease_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, RunKey, registration, run_key

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PARTS, PART_MB = 4, 1024
SMALL_TASKS = 3000


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    flags = ("--reservation-delay", "1s")
    with control_plane(postgres_server, migrated_template, scheduler_flags=flags) as running:
        yield running


class AccountingRunner(LinkRunner):
    """Reports its free memory with every heartbeat."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._costs: dict[RunKey, int] = {}

    def room(self) -> link.Capacity:
        live = [key for key, held in self.held.items() if held.state != link.HELD_STATE_ENDED]
        used = sum(self._costs[key] for key in live)
        free = common_pb2.Resources(memory_mb=PARTS * PART_MB - used)
        return link.Capacity(tasks=self.free(), resources=free)

    def hello(self, **fields: Any) -> link.Hello:
        made = super().hello(**fields)
        made.free.CopyFrom(self.room())
        return made

    async def heartbeat(self, **fields: Any) -> int:
        return await super().heartbeat(free=self.room(), **fields)

    def _take_on(self, assignment: lease_pb2.Assignment) -> None:
        self._costs[run_key(assignment.lease)] = assignment.spec.resources.memory_mb
        super()._take_on(assignment)
        assert self.room().resources.memory_mb >= 0, "more was given than is free"


@pytest.fixture
async def runner(plane: ControlPlane) -> AsyncIterator[AccountingRunner]:
    described = registration(2 * PARTS, resources=common_pb2.Resources(memory_mb=PARTS * PART_MB))
    address, key = plane.schedulers[0].address, plane.keys["runner"]
    async with AccountingRunner(address, key, "whole", described=described) as made:
        yield made


@pytest.mark.timeout(120)
async def test_a_task_for_a_whole_runner_starts_under_a_steady_flow_of_small_ones(
    plane: ControlPlane, runner: AccountingRunner
) -> None:
    async with plane.client() as client:
        await runner.connect()
        for _ in range(PARTS):
            await client.create(command("true", memory_mb=PART_MB))
        running = deque([await runner.next_assignment() for _ in range(PARTS)])
        large = await client.create(command("true", memory_mb=PARTS * PART_MB))
        async for _ in client.create_many(command("true", memory_mb=PART_MB) for _ in range(SMALL_TASKS)):
            pass
        done = 0
        while True:
            # The oldest ends; the next one comes, unless its place is held back.
            await runner.complete(running.popleft())
            done += 1
            assert done < SMALL_TASKS, "the large task waited for the end of the stream"
            with contextlib.suppress(TimeoutError):
                running.append(await runner.next_assignment(timeout=2.0 if not running else 0.05))
            if running and running[-1].lease.task.endswith(f"/{large.id}"):
                break
        assert len(running) == 1, "the runner was emptied for it"
        await runner.complete(running.popleft())
        assert (await client.wait(large, timeout=20)).phase is Phase.SUCCEEDED
        assert (await runner.next_assignment()).spec.resources.memory_mb == PART_MB, "the stream goes on"
