"""Tasks that misbehave on a real runner under real services: only they fail, with the reason."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from services.runner.tests.runner_process import Gate, Pause, wait_gone
from services.runner.tests.test_logs import FLOOD_MB, peak_memory
from taskyard import Client, Created, NewTask, Phase, RunState, Task, command, script
from tests.harness.control_plane import ControlPlane, control_plane
from tests.integration.conftest import StartRunner, needs_cgroups

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PATIENCE = 120


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


class Notes:
    """A pipe into which tasks write, read as it fills."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notes"
        os.mkfifo(self.path)
        # Also for writing, so that it does not end between two tasks.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    async def lines(self, count: int) -> list[str]:
        """The next lines."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.to_thread(self._read, count)

    def _read(self, count: int) -> list[str]:
        found = b""
        while found.count(b"\n") < count:
            found += os.read(self._fd, 4096)
        return found.decode().splitlines()


async def beside(client: Client, own: dict[str, str], hostile: NewTask) -> Task:
    """The hostile task's end, after a neighbour and a later task have ended well."""
    created = await client.create(hostile)
    neighbour = await client.create(command("sleep", "0.5", runner_labels=own))
    assert (await client.wait(neighbour, timeout=PATIENCE)).phase is Phase.SUCCEEDED
    ended = await client.wait(created, timeout=PATIENCE)
    later = await client.create(command("true", runner_labels=own))
    assert (await client.wait(later, timeout=PATIENCE)).phase is Phase.SUCCEEDED
    return ended


def code(task: Task) -> str:
    assert task.error is not None, task.proto
    return task.error.code


@needs_cgroups
async def test_a_fork_bomb(client: Client, start_runner: StartRunner, own: dict[str, str]) -> None:
    runner = await start_runner("--pids-limit", "40")
    agent = runner.agent_pid
    bomb = script.bash("bomb() { bomb | bomb & }; bomb; sleep 1; exit 1", runner_labels=own, retry=0)
    assert code(await beside(client, own, bomb)) == "OUT_OF_PROCESSES"
    assert runner.agent_pid == agent


@needs_cgroups
async def test_a_memory_hog(client: Client, start_runner: StartRunner, own: dict[str, str]) -> None:
    await start_runner()
    hog = script.python("x = bytearray(400_000_000)", runner_labels=own, memory_mb=64, retry=0)
    assert code(await beside(client, own, hog)) == "OUT_OF_MEMORY"


async def test_a_disk_filler(client: Client, start_runner: StartRunner, own: dict[str, str]) -> None:
    await start_runner()
    body = "for i in $(seq 100); do head -c 1000000 /dev/zero > f$i; done; exec sleep 600"
    filler = script.bash(body, runner_labels=own, disk_mb=20, retry=0)
    assert code(await beside(client, own, filler)) == "DISK_LIMIT_REACHED"


async def test_a_task_that_ignores_sigterm(
    client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    await start_runner()
    body = "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$; sleep 600' & sleep 600; sleep 600"
    task = script.bash(body, runner_labels=own, timeout=1, stop_grace_period=0.5, retry=0)
    ended = await beside(client, own, task)
    assert (ended.phase, code(ended)) == (Phase.TIMED_OUT, "ATTEMPT_TIMEOUT")
    (pid,) = [int(entry.message) async for entry in client.logs(ended)]
    assert not psutil.pid_exists(pid)


async def test_a_flood_without_a_newline(
    client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    runner = await start_runner("--log-limit-mb", "1")
    pids = (runner.pid, runner.agent_pid)
    before = [peak_memory(pid) for pid in pids]
    flood = script.bash(f"head -c {FLOOD_MB}000000 /dev/zero; echo; echo last", runner_labels=own)
    ended = await beside(client, own, flood)
    assert ended.phase is Phase.SUCCEEDED
    messages = [entry.message async for entry in client.logs(ended, follow=True)]
    assert any("bytes after this were dropped" in message for message in messages)
    grown = [peak_memory(pid) - then for pid, then in zip(pids, before, strict=True)]
    assert max(grown) < 24 << 20, f"warden and agent have grown by {grown} bytes"


async def test_two_hundred_commands_at_once(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    await start_runner("--capacity", "200")
    gate, notes = Gate(tmp_path), Notes(tmp_path)
    body = 'echo "$TASKYARD_TASK_ID" > "$NOTES"; exec flock -s "$GATE" true'
    env = {"GATE": str(gate), "NOTES": str(notes.path)}
    new = command("bash", "-c", body, runner_labels=own, env=env, retry=0)
    tasks = [made async for made in client.create_many([new] * 200)]
    started = await notes.lines(200)
    gate.open()
    ids = set()
    for task in tasks:
        assert isinstance(task, Created)
        ids.add(task.id)
        assert (await client.wait(task, timeout=PATIENCE)).phase is Phase.SUCCEEDED
    assert len(started) == 200 and set(started) == ids


async def test_the_result_of_a_child_that_ended_before_its_agent_was_killed_arrives(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    pause = Pause(tmp_path, "agent.run_ended")
    runner = await start_runner(TASKYARD_FAILPOINTS=pause.setting)
    task = await client.create(script.bash('echo 42 > "$TASKYARD_RESULT_FILE"', runner_labels=own))
    await pause.reached()
    os.kill(runner.agent_pid, signal.SIGKILL)
    # The next agent reaches the same step.
    await pause.reached()
    await pause.proceed()
    done = await client.wait(task, timeout=PATIENCE)
    assert (done.phase, done.output) == (Phase.SUCCEEDED, 42)
    assert [run.state async for run in client.runs(task)] == [RunState.SUCCEEDED]


async def test_children_end_with_their_killed_runner_and_its_tasks_run_elsewhere(
    client: Client, start_runner: StartRunner, own: dict[str, str], tmp_path: Path
) -> None:
    first = await start_runner()
    notes, mark = Notes(tmp_path), tmp_path / "mark"
    body = """
    [ -e "$MARK" ] && exit 0
    touch "$MARK"; setsid bash -c 'echo $$ $PPID > "$NOTES"; exec sleep 600' & exec sleep 600
    """
    env = {"NOTES": str(notes.path), "MARK": str(mark)}
    task = await client.create(script.bash(body, runner_labels=own, env=env))
    (line,) = await notes.lines(1)
    escaped, child = (int(word) for word in line.split())
    await first.kill()
    await wait_gone(child)
    assert psutil.pid_exists(escaped)
    second = await start_runner()
    await start_runner(id=first.id)
    # It has sent hello; the process is gone before that.
    assert not psutil.pid_exists(escaped) or psutil.Process(escaped).status() == psutil.STATUS_ZOMBIE
    done = await client.wait(task, timeout=PATIENCE)
    assert done.phase is Phase.SUCCEEDED
    states = {(run.runner, run.state) async for run in client.runs(task)}
    assert (first.id, RunState.LOST) in states
    assert {runner for runner, state in states if state is RunState.SUCCEEDED} <= {first.id, second.id}
