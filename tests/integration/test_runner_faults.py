"""Faults of runners and control plane under real services: no outcome is lost, none is counted twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from services.runner.tests.runner_process import Gate, wait_gone
from taskyard import Client, Created, Phase, RunState, command, script
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import registration
from tests.integration.conftest import StartRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PATIENCE = 60
LEASE = 3.0
# As in production, a tenth as long.
SCHEDULER = (
    f"--lease-duration={LEASE:g}s",
    "--heartbeat-interval=1s",
    "--first-lease=2s",
    "--heartbeat-gather=50ms",
)
TASKDB = (f"--reap-grace={LEASE + 1:g}s",)


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    made = control_plane(postgres_server, migrated_template, taskdb_flags=TASKDB, scheduler_flags=SCHEDULER)
    with made as running:
        yield running


@pytest.fixture
def runner_flags() -> tuple[str, ...]:
    return ("--capacity", "50")


class Effects:
    """What tasks did, written by themselves."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "effects"
        self.path.touch()

    def count(self) -> Counter[str]:
        return Counter(self.path.read_text().splitlines())

    async def has(self, number: int) -> None:
        """Returns once there are that many."""
        await until(lambda: len(self.path.read_text().splitlines()) >= number)


async def until(true: Callable[[], bool]) -> None:
    """Returns once the files of other processes show it."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def ended(client: Client, tasks: list[Created]) -> None:
    for task in tasks:
        done = await client.wait(task, timeout=PATIENCE)
        assert done.phase is Phase.SUCCEEDED, done.proto


async def reached(client: Client, task: Created, phase: Phase) -> None:
    """Returns once the task is in this phase."""
    async for event in client.watch(task, snapshot=True):
        if event.phase is phase:
            return


BODY = """
echo "$TASKYARD_TASK_ID start" >> "$EFFECTS"
flock -s "$GATE" true
echo "$TASKYARD_TASK_ID end" >> "$EFFECTS"
"""


async def create(
    client: Client, own: dict[str, str], count: int, gate: Gate, effects: Effects
) -> list[Created]:
    env = {"GATE": str(gate), "EFFECTS": str(effects.path)}
    return [await client.create(script.bash(BODY, runner_labels=own, env=env)) for _ in range(count)]


def once(tasks: list[Created]) -> Counter[str]:
    return Counter(f"{task.id} {what}" for task in tasks for what in ("start", "end"))


async def test_fifty_tasks_survive_a_killed_agent_and_none_runs_again(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    runner = await start_runner()
    gate, effects = Gate(tmp_path), Effects(tmp_path)
    tasks = await create(client, own, 50, gate, effects)
    await effects.has(50)
    os.kill(runner.agent_pid, signal.SIGKILL)
    await runner.connected(2)
    gate.open()
    await ended(client, tasks)
    assert effects.count() == once(tasks)
    for task in tasks:
        assert [run.state async for run in client.runs(task)] == [RunState.SUCCEEDED]


async def test_an_upgrade_of_the_agent_under_load_loses_and_repeats_nothing(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    runner = await start_runner("--capacity", "8")
    effects = Effects(tmp_path)
    body = 'echo "$TASKYARD_TASK_ID" >> "$EFFECTS"'
    new = script.bash(body, runner_labels=own, env={"EFFECTS": str(effects.path)})
    tasks = [await client.create(new) for _ in range(60)]
    await effects.has(10)
    runner.send(signal.SIGHUP)
    await ended(client, tasks)
    await runner.connected(2)
    assert effects.count() == Counter(task.id for task in tasks)


async def test_the_tasks_of_a_killed_runner_run_again_after_its_restart(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    runner = await start_runner()
    effects, mark = Effects(tmp_path), tmp_path / "mark"
    body = 'echo $$ >> "$EFFECTS"; [ -e "$MARK" ] || exec sleep 600'
    new = script.bash(body, runner_labels=own, env={"EFFECTS": str(effects.path), "MARK": str(mark)})
    tasks = [await client.create(new) for _ in range(3)]
    await effects.has(3)
    await runner.kill()
    for pid in effects.count():
        await wait_gone(int(pid))
    mark.touch()
    await start_runner(id=runner.id)
    await ended(client, tasks)
    for task in tasks:
        states = {run.state async for run in client.runs(task)}
        assert states == {RunState.LOST, RunState.SUCCEEDED}


async def test_work_survives_a_control_plane_outage_of_four_leases(
    plane: ControlPlane, client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    await start_runner()
    gate, effects = Gate(tmp_path), Effects(tmp_path)
    allowed = await create(client, own, 5, gate, effects)
    env = {"EFFECTS": str(effects.path), "MARK": str(tmp_path / "mark")}
    body = 'echo $$ >> "$EFFECTS"; [ -e "$MARK" ] || exec sleep 600'
    forbidden = await client.create(script.bash(body, runner_labels=own, env=env, overlap="forbid"))
    await effects.has(6)
    # What has not been reported as started is assigned anew once its first lease has run out.
    for task in (*allowed, forbidden):
        await reached(client, task, Phase.RUNNING)
    (pid,) = [int(line) for line in effects.count() if line.isdigit()]
    (tmp_path / "mark").touch()
    scheduler, taskdb = plane.schedulers[0], plane.taskdbs[0]
    scheduler.kill()
    taskdb.kill()
    loop = asyncio.get_running_loop()
    away = loop.time()
    await wait_gone(pid, seconds=LEASE + 2)
    gate.open()
    await effects.has(11)
    await asyncio.sleep(max(0.0, away + 4 * LEASE - loop.time()))
    taskdb.start()
    scheduler.start()
    await ended(client, [*allowed, forbidden])
    for task in allowed:
        assert [run.state async for run in client.runs(task)] == [RunState.SUCCEEDED]
    done = effects.count()
    assert all(done[f"{task.id} {what}"] == 1 for task in allowed for what in ("start", "end"))


async def test_a_late_report_of_a_frozen_agent_is_rejected_and_counted(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    first = await start_runner()
    gate, effects = Gate(tmp_path), Effects(tmp_path)
    body = """
    echo "$TASKYARD_RUNNER" >> "$EFFECTS"
    flock -s "$GATE" true
    echo "\\"$TASKYARD_RUNNER\\"" > "$TASKYARD_RESULT_FILE"
    """
    env = {"GATE": str(gate), "EFFECTS": str(effects.path)}
    task = await client.create(script.bash(body, runner_labels=own, env=env, overlap="allow"))
    await effects.has(1)
    agent = psutil.Process(first.agent_pid)
    agent.suspend()
    second = await start_runner()
    await effects.has(2)
    gate.open()
    done = await client.wait(task, timeout=PATIENCE)
    assert (done.phase, done.output) == (Phase.SUCCEEDED, second.id)
    agent.resume()
    await until(lambda: "report_rejected" in first.output())
    assert (await client.get(task)).output == second.id
    assert effects.count() == {first.id: 1, second.id: 1}


async def test_forbid_work_of_a_frozen_agent_is_killed_before_another_runner_begins(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    first = await start_runner()
    effects = Effects(tmp_path)
    # Each run prints its id and the other runs of its task that are alive at that moment.
    body = """
    [ -e "$MARK" ] && kill -0 "$(cat "$MARK")" 2> /dev/null && echo overlap >> "$EFFECTS"
    echo $$ > "$MARK.part"; first=$([ -e "$MARK" ] && echo no || echo yes); mv "$MARK.part" "$MARK"
    echo "$TASKYARD_RUNNER" >> "$EFFECTS"; [ "$first" = no ] || exec sleep 600
    """
    env = {"EFFECTS": str(effects.path), "MARK": str(tmp_path / "mark")}
    task = await client.create(script.bash(body, runner_labels=own, env=env, overlap="forbid"))
    await effects.has(1)
    await reached(client, task, Phase.RUNNING)
    agent = psutil.Process(first.agent_pid)
    agent.suspend()
    second = await start_runner()
    await ended(client, [task])
    agent.resume()
    assert effects.count() == {first.id: 1, second.id: 1}


async def test_a_whole_runner_that_was_frozen_is_rejected_when_it_thaws(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    first = await start_runner()
    gate, effects = Gate(tmp_path), Effects(tmp_path)
    body = """
    echo "$TASKYARD_RUNNER" >> "$EFFECTS"; flock -s "$GATE" true
    echo "\\"$TASKYARD_RUNNER\\"" > "$TASKYARD_RESULT_FILE"
    """
    env = {"GATE": str(gate), "EFFECTS": str(effects.path)}
    task = await client.create(script.bash(body, runner_labels=own, env=env, overlap="allow"))
    await effects.has(1)
    await reached(client, task, Phase.RUNNING)
    warden = psutil.Process(first.pid)
    frozen = [warden, *warden.children(recursive=True)]
    for process in frozen:
        process.suspend()
    second = await start_runner()
    await effects.has(2)
    gate.open()
    done = await client.wait(task, timeout=PATIENCE)
    assert (done.phase, done.output) == (Phase.SUCCEEDED, second.id)
    for process in reversed(frozen):
        process.resume()
    # Its report comes too late, or the scheduler has already revoked the lease.
    await first.printed(lambda log: "report_rejected" in log or "run_aborted" in log)
    assert (await client.get(task)).output == second.id
    assert effects.count() == {first.id: 1, second.id: 1}


async def test_a_task_that_its_runner_listed_and_dropped_is_assigned_again(plane: ControlPlane) -> None:
    """An agent drops a run whose lease has ended by its own clock, while taskdb still renews the lease."""
    own = {"test": "dropped"}
    described = registration(labels=own)
    async with plane.client() as client, plane.runner("dropping", described=described) as runner:
        await runner.connect()
        await client.create(command("true", runner_labels=own))
        first = await runner.next_assignment()
        await runner.heartbeat_acked(await runner.heartbeat())
        runner._drop(first.lease)
        again = await runner.next_assignment(timeout=PATIENCE)
        assert (again.lease.task, again.lease.generation) == (first.lease.task, 2)
        await runner.complete(again)
