"""taskdb or the scheduler killed between the commit of short runs and their acknowledgement (FAULTS 25)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from taskyard import Client, Created, Phase, command
from taskyard.v1 import lease_pb2
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, short_runs
from tests.harness.pause import Pause

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

COUNT = 20
# Without those of the runner, whose session opens again.
CHANGES = "changes WHERE resource_id <> 'runner-1'"


@pytest.fixture
def pause(tmp_path: Path) -> Pause:
    return Pause(tmp_path / "reports", "report.after_commit")


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str, pause: Pause) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, taskdbs=0, schedulers=0) as running:
        running.add_taskdb(failpoints=pause.setting)
        running.add_scheduler()
        yield running


@pytest.fixture
async def runner(plane: ControlPlane) -> AsyncIterator[LinkRunner]:
    address, key = plane.schedulers[0].address, plane.keys["runner"]
    async with LinkRunner(address, key, capacity=COUNT) as made:
        await made.connect()
        yield made


async def assigned(client: Client, runner: LinkRunner) -> list[lease_pb2.Assignment]:
    made = [item async for item in client.create_many([command("true") for _ in range(COUNT)])]
    assert all(isinstance(item, Created) for item in made)
    return [await runner.next_assignment() for _ in range(COUNT)]


def stored(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("victim", ["taskdb", "scheduler"])
async def test_short_runs_interrupted_between_commit_and_ack_count_once(
    plane: ControlPlane, client: Client, runner: LinkRunner, pause: Pause, victim: str
) -> None:
    assignments = await assigned(client, runner)
    last = await runner.report_short(assignments, exit_codes=[0] * COUNT)
    await pause.reached()
    assert stored(plane.url, "ended_runs") == COUNT and runner.through_seq == 0
    changes = stored(plane.url, CHANGES)
    if victim == "taskdb":
        plane.taskdbs[0].kill()
        await asyncio.to_thread(plane.taskdbs[0].start)
    else:
        plane.schedulers[0].kill()
        await pause.release()
        await asyncio.to_thread(plane.schedulers[0].start)
        await runner.vanish()
        runner.spool.clear()
        await runner.connect()
        await runner.send(short_runs=short_runs([assignment.lease for assignment in assignments]))
    await runner.acked(last, timeout=30)
    assert runner.rejections == []
    assert (stored(plane.url, "ended_runs"), stored(plane.url, CHANGES)) == (COUNT, changes)
    task = await client.get(assignments[0].lease.task)
    assert (task.phase, task.attempt, task.exit_code) == (Phase.SUCCEEDED, 1, 0)
