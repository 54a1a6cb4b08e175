"""A runner of an ordinary user: everything works but the limits, and tasks cannot look into the runner."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runner.tests.ordinary_user import USER, ordinary_runner
from services.runner.tests.runner_process import RunnerProcess, shell
from services.runner.tests.scheduler_peer import SchedulerPeer


@pytest.fixture
async def runner(peer: SchedulerPeer) -> AsyncIterator[RunnerProcess]:
    with ordinary_runner(peer.address) as started:
        await started.start("--capacity", "4")
        await peer.next_session(1)
        yield started
        await started.kill()
        print(started.output())


async def test_tasks_run_and_cannot_read_the_runners_secrets(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = f"""
    id -u
    cat /proc/{runner.pid}/environ /proc/{runner.agent_pid}/environ /proc/{runner.agent_pid}/maps
    ls /proc/{runner.agent_pid}/fd
    echo end
    """
    task = peer.assign(shell(body))
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    await peer.line(task, "end")
    messages = [entry.message for _, entry in sorted(peer.logs[task.key].items())]
    assert messages[0] == str(os.getuid() or USER)
    assert sum("Permission denied" in line for line in messages) == 4
    assert not any("ty_test_secret" in line for line in messages)


async def test_everything_a_task_started_is_killed_without_control_groups(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("(env -i setsid sleep 600 & echo $!); echo end"))
    await peer.line(task, "end")
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    pid = next(int(entry.message) for entry in peer.logs[task.key].values() if entry.message.isdigit())
    assert not Path(f"/proc/{pid}").exists()
