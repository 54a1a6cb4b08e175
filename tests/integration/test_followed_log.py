"""A log that is followed while taskdb is killed: nothing is lost, and it goes on within three seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, script
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.processor import seconds_waited
from tests.integration.conftest import StartRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# With a second replica that serves, and beside the time in which this process had no processor.
SILENCE_SECONDS = 3.0
# Lines that have to arrive before each kill, and after it.
LINES = 20


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, taskdbs=2, schedulers=0) as running:
        running.add_scheduler(",".join(taskdb.address for taskdb in running.taskdbs))
        yield running


async def test_followed_log_goes_on_after_each_kill_of_a_taskdb(
    plane: ControlPlane, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    await start_runner()
    addresses = ",".join(taskdb.address for taskdb in plane.taskdbs)
    tmp_path.chmod(0o755)
    enough = tmp_path / "enough"
    body = f"i=0; until [ -e {enough} ]; do i=$((i + 1)); echo $i; sleep 0.05; done"
    times: list[tuple[float, float]] = []
    seen: list[int] = []
    silences: list[float] = []
    async with Client(addresses, key=plane.keys["tenant"], tenant="default") as client:
        task = await client.create(script.bash(body, runner_labels=own))
        arrived = asyncio.Condition()

        async def follow() -> None:
            async for entry in client.logs(task, follow=True):
                async with arrived:
                    seen.append(int(entry.message))
                    times.append((time.monotonic(), seconds_waited()))
                    arrived.notify_all()

        async def more_lines() -> None:
            wanted = len(seen) + LINES
            async with asyncio.timeout(60), arrived:
                await arrived.wait_for(lambda: len(seen) >= wanted)

        following = asyncio.create_task(follow())
        for number in range(len(plane.taskdbs)):
            await more_lines()
            killed = (time.monotonic(), seconds_waited())
            # One at a time: it serves again before the other one is killed.
            await _kill_and_restart(plane, number)
            await more_lines()
            after = [killed, *(arrival for arrival in times if arrival > killed)]
            silences.append(max((t - since) - (w - waited) for (since, waited), (t, w) in pairwise(after)))
        enough.touch()
        await asyncio.wait_for(following, 60)
    assert seen == list(range(1, len(seen) + 1))
    assert max(silences) < SILENCE_SECONDS, silences


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
