"""The disk of PostgreSQL fills up under load: creates are refused, acknowledged ones are kept (FAULTS 30)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from taskyard import Client, command, errors
from taskyard_standalone.errors import PostgresError
from taskyard_standalone.postgres import EmbeddedPostgres
from tests.harness.control_plane import ControlPlane
from tests.integration.test_health import SERVING as SERVING
from tests.integration.test_health import fill, health, own_plane, small_disk, until  # noqa: F401

USERS = 4
REFUSALS = 8
PAYLOAD = bytes(16_000)
CLEAN = (errors.Code.UNAVAILABLE, errors.Code.DEADLINE_EXCEEDED, errors.Code.RESOURCE_EXHAUSTED)


class Users:
    """Users that create tasks, each once, until they are stopped."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.acknowledged: list[str] = []
        self.refusals: list[errors.TaskyardError] = []
        self.stopped = False

    async def run(self, number: int) -> None:
        count = 0
        address, key = self._plane.taskdbs[0].address, self._plane.keys["tenant"]
        async with Client(address, key=key, tenant="default", patience=0.0) as client:
            while not self.stopped:
                count += 1
                try:
                    task = command("true", id=f"{number}-{count}", payload=PAYLOAD)
                    self.acknowledged.append((await client.create(task)).id)
                except errors.TaskyardError as error:
                    self.refusals.append(error)
                    await asyncio.sleep(0.1)

    async def created(self, more: int) -> None:
        """Returns once so many more tasks were acknowledged."""
        wanted = len(self.acknowledged) + more
        await until(lambda: len(self.acknowledged) >= wanted)


async def restarted(postgres: EmbeddedPostgres) -> None:
    """As a supervisor does: a server that had no room for its log ends, and is started until it can."""
    while True:
        await postgres.ended()
        with suppress(PostgresError):
            await postgres.start()
        await asyncio.sleep(0.5)


@pytest.mark.timeout(240)
async def test_fault_30_creates_over_a_full_disk_are_refused_cleanly_or_kept(
    tmp_path: Path,
    small_disk: Path,  # noqa: F811
) -> None:
    async with own_plane(tmp_path, small_disk / "data") as (plane, postgres):
        users = Users(plane)
        supervisor = asyncio.create_task(restarted(postgres))
        tasks = [asyncio.create_task(users.run(number)) for number in range(USERS)]
        try:
            await users.created(20)
            filler = await asyncio.to_thread(fill, small_disk)
            await until(lambda: len(users.refusals) >= REFUSALS)
            filler.unlink()
            await users.created(20)
            await until(lambda: health(plane.taskdbs[0]) == SERVING)
        finally:
            users.stopped = True
            supervisor.cancel()
            await asyncio.gather(*tasks)
        assert {error.code for error in users.refusals} <= set(CLEAN), users.refusals
        async with plane.client() as client:
            for task in users.acknowledged:
                assert (await client.get(task)).id == task
