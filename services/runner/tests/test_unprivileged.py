"""A runner of an ordinary user: everything works but the limits, and tasks cannot look into the runner."""

from __future__ import annotations

import os
import shutil
import site
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import taskyard
import taskyard_kit
import taskyard_runner
from services.runner.tests.runner_process import RunnerProcess, shell
from services.runner.tests.scheduler_peer import SchedulerPeer

USER = 54321
SOURCES = [
    str(Path(str(package.__file__)).parents[1]) for package in (taskyard, taskyard_kit, taskyard_runner)
]


def can_reach(folder: Path) -> bool:
    return all(os.stat(path).st_mode & 0o001 for path in (folder, *folder.parents))


def python() -> str:
    """A Python that an ordinary user can execute; skips the test if there is none."""
    if os.getuid() != 0:
        return sys.executable
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(name, path="/usr/bin:/usr/local/bin")):
        if candidate and can_reach(Path(candidate).resolve().parent) and can_reach(Path(SOURCES[0])):
            return candidate
    pytest.skip(f"no {name} and sources that an ordinary user can reach")


@pytest.fixture
async def runner(peer: SchedulerPeer) -> AsyncIterator[RunnerProcess]:
    found = python()
    with tempfile.TemporaryDirectory(prefix="taskyard-") as folder:
        os.chmod(folder, 0o777)
        path = os.pathsep.join((*SOURCES, *site.getsitepackages()))
        started = RunnerProcess(Path(folder) / "data", peer.address, PYTHONPATH=path)
        prefix = [] if os.getuid() else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        started.program = (*prefix, found)
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
    told = [entry.message for _, entry in sorted(peer.logs[task.key].items())]
    assert told[0] == str(os.getuid() or USER)
    assert sum("Permission denied" in line for line in told) == 4
    assert not any("ty_test_secret" in line for line in told)


async def test_everything_a_task_started_is_killed_without_control_groups(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("(env -i setsid sleep 600 & echo $!); echo end"))
    await peer.line(task, "end")
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    pid = next(int(entry.message) for entry in peer.logs[task.key].values() if entry.message.isdigit())
    assert not Path(f"/proc/{pid}").exists()
