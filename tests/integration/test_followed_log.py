"""A log that is followed while taskdb is killed: nothing is lost, and it goes on within three seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, script
from tests.harness.control_plane import ControlPlane, control_plane
from tests.integration.conftest import StartRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# With a second replica, and no time for the start of a process.
SILENCE_SECONDS = 3.0
LINES = 400
# A line every 50 ms; the kills come after these lines.
KILLS = (60, 160, 260)


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, taskdbs=2, schedulers=0) as running:
        running.add_scheduler(",".join(taskdb.address for taskdb in running.taskdbs))
        yield running


async def test_followed_log_goes_on_after_each_kill_of_a_taskdb(
    plane: ControlPlane, start_runner: StartRunner, own: dict[str, str]
) -> None:
    await start_runner()
    addresses = ",".join(taskdb.address for taskdb in plane.taskdbs)
    body = f"for i in $(seq {LINES}); do echo $i; sleep 0.05; done"
    seen: list[int] = []
    silences: list[float] = []
    async with Client(addresses, key=plane.keys["tenant"], tenant="default") as client:
        task = await client.create(script.bash(body, runner_labels=own))
        last = killed = 0.0
        kills = iter(KILLS)
        following = next(kills)
        victims: list[asyncio.Task[None]] = []
        async for entry in client.logs(task, follow=True):
            seen.append(int(entry.message))
            if killed and time.monotonic() - last > 0.3:
                silences.append(time.monotonic() - last)
                killed = 0.0
            last = time.monotonic()
            if len(seen) == following:
                following = next(kills, 0)
                killed = last
                victims.append(asyncio.create_task(_kill_and_restart(plane, len(victims))))
        await asyncio.gather(*victims)
    assert seen == list(range(1, LINES + 1))
    assert silences, "no kill interrupted the log"
    # The machine may be busy with other tests at one of the kills, not at all of them.
    assert min(silences) < SILENCE_SECONDS, silences


async def _kill_and_restart(plane: ControlPlane, number: int) -> None:
    service = plane.taskdbs[number % 2]
    service.kill()
    await asyncio.sleep(1.0)
    await asyncio.to_thread(service.start)


async def test_log_without_lines_is_followed_over_a_kill_of_taskdb(
    plane: ControlPlane, start_runner: StartRunner, own: dict[str, str]
) -> None:
    await start_runner()
    addresses = ",".join(taskdb.address for taskdb in plane.taskdbs)
    async with Client(addresses, key=plane.keys["tenant"], tenant="default") as client:
        task = await client.create(script.bash("sleep 4; echo done", runner_labels=own))
        lines: list[str] = []

        async def follow() -> None:
            lines.extend([entry.message async for entry in client.logs(task, follow=True)])

        following = asyncio.create_task(follow())
        await asyncio.sleep(1.0)
        await _kill_and_restart(plane, 0)
        await asyncio.wait_for(following, 60)
    assert lines == ["done"]
