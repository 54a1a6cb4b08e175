"""Crashes of agent and warden at every step: nothing is lost, nothing runs twice, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import (
    Gate,
    Pause,
    RunnerProcess,
    command,
    shell,
    variables,
    wait_gone,
)
from services.runner.tests.scheduler_peer import SchedulerPeer, Task
from taskyard.v1.lease_pb2 import RELEASE_REASON_LOST
from taskyard.v1.log_pb2 import LOG_SOURCE_RUNNER
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_RUNNING,
    RUNNER_GOODBYE_REASON_RESTART,
)

ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
"""


def kinds(peer: SchedulerPeer, task: Task) -> Counter[str]:
    return Counter(str(report.WhichOneof("report")) for report in peer.reports[task.key])


async def start_all(peer: SchedulerPeer, tasks: list[Task]) -> None:
    peer.send(*tasks)
    for task in tasks:
        await peer.report(task, "started")


async def test_fifty_tasks_survive_a_killed_agent_and_end_once(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    runner = await start_runner("--capacity", "50")
    gate, effects = Gate(tmp_path), tmp_path / "effects"
    body = 'echo "$TASKYARD_TASK" >> "$EFFECTS"; echo before; flock -s "$GATE" true; echo after'
    tasks = [peer.task(shell(body, env=variables(GATE=str(gate), EFFECTS=str(effects)))) for _ in range(50)]
    await start_all(peer, tasks)
    for task in tasks:
        await peer.line(task, "before")
    os.kill(runner.agent_pid, signal.SIGKILL)
    session = await peer.next_session(2)
    assert session.hello.takeover
    assert {(held.lease.task, held.state) for held in session.hello.held} == {
        (task.key[0], HELD_STATE_RUNNING) for task in tasks
    }
    assert session.hello.free.tasks == 0
    gate.open()
    for task in tasks:
        await peer.outcome(task)
        await peer.line(task, "after")
        assert [entry.message for _, entry in sorted(peer.logs[task.key].items())] == ["before", "after"]
        assert kinds(peer, task)["succeeded"] == 1
    assert len(effects.read_text().splitlines()) == 50


@pytest.mark.parametrize("step", ["agent.run_ended", "agent.outcome_saved", "agent.report_sent"])
async def test_a_result_survives_an_agent_killed_before_it_was_acknowledged(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path, step: str
) -> None:
    pause = Pause(tmp_path, step)
    runner = await start_runner(TASKYARD_FAILPOINTS=pause.setting)
    peer.ack_reports = False
    task = peer.assign(shell("echo 42 > $TASKYARD_RESULT_FILE"))
    await pause.reached()
    peer.ack_reports = True
    os.kill(runner.agent_pid, signal.SIGKILL)
    if step != "agent.outcome_saved":
        # The next agent comes to the same step.
        await pause.reached()
        await pause.proceed()
    assert (await peer.outcome(task)).succeeded.result.output.raw == b"42\n"
    session = await peer.next_session(2)
    assert task.key[0] in [held.lease.task for held in session.hello.held]


async def test_an_assignment_of_a_killed_agent_is_not_held(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    pause = Pause(tmp_path, "agent.assignment_received")
    runner = await start_runner(TASKYARD_FAILPOINTS=pause.setting)
    peer.assign(command("true"))
    await pause.reached()
    os.kill(runner.agent_pid, signal.SIGKILL)
    session = await peer.next_session(2)
    assert not session.hello.held
    assert session.hello.free.tasks == 10


async def test_an_upgrade_of_the_agent_leaves_tasks_running(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.task(shell('flock -s "$GATE" true; echo done', env=variables(GATE=str(gate))))
    await start_all(peer, [task])
    before = runner.agent_pid
    runner.send(signal.SIGHUP)
    session = await peer.next_session(2)
    goodbye = peer.sessions[0].goodbye
    assert goodbye is not None and goodbye.reason == RUNNER_GOODBYE_REASON_RESTART and goodbye.keep_leases
    assert runner.agent_pid not in (0, before)
    assert [held.lease.task for held in session.hello.held] == [task.key[0]]
    gate.open()
    await peer.outcome(task)
    assert kinds(peer, task) == {"started": 1, "succeeded": 1}


async def test_killed_runner_ends_its_tasks_and_the_next_one_releases_them(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    task = peer.task(shell("echo $$; exec sleep 600"))
    await start_all(peer, [task])
    (line,) = await peer.lines(task, 1)
    await runner.kill()
    await wait_gone(int(line.message))
    again = await start_runner()
    assert again.data_dir == runner.data_dir
    assert peer.session.hello.takeover
    released = (await peer.outcome(task)).released
    assert released.reason == RELEASE_REASON_LOST
    await peer.until(lambda: not again.kept_runs())


@pytest.mark.parametrize("flags", [(), ("--no-cgroups",)], ids=["cgroups", "no cgroups"])
async def test_the_next_runner_kills_escaped_grandchildren_before_hello(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    pid_file = tmp_path / "pid"
    os.mkfifo(pid_file)
    runner = await start_runner(*flags)
    body = f"setsid bash -c 'echo $$ > {pid_file}; exec sleep 600' & cat"
    task = peer.task(shell(f"mkfifo hold; {body} hold"))
    await start_all(peer, [task])
    escaped = int(await asyncio.wait_for(asyncio.to_thread(pid_file.read_text), 30))
    await runner.kill()
    assert psutil.pid_exists(escaped)
    await start_runner(*flags)
    # The session is welcomed, so hello was sent; by then the process is gone.
    assert not psutil.pid_exists(escaped) or psutil.Process(escaped).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("flags", [(), ("--no-cgroups",)], ids=["cgroups", "no cgroups"])
async def test_leftover_processes_are_killed_when_the_task_ends(
    peer: SchedulerPeer, start_runner: StartRunner, flags: tuple[str, ...]
) -> None:
    await start_runner(*flags)
    body = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '600'], start_new_session=True); print(p.pid)"
    )
    task = peer.assign(command("python3", "-c", body))
    await peer.outcome(task)
    (line,) = await peer.lines(task, 1)
    assert not psutil.pid_exists(int(line.message))


async def test_a_second_runner_on_the_same_directory_is_refused(
    runner: RunnerProcess, start_runner: StartRunner
) -> None:
    second = await start_runner(welcomed=False)
    assert await second.wait() == 1
    assert "is in use by another runner" in second.output()


@pytest.mark.parametrize("victim", ["agent", "warden"])
async def test_several_outcomes_in_the_spool_survive_a_kill_and_are_acknowledged_without_a_crash(
    peer: SchedulerPeer, start_runner: StartRunner, victim: str
) -> None:
    runner = await start_runner()
    peer.ack_reports = False
    tasks = [peer.task(shell(f"seq {n} {n + 7}")) for n in range(5)]
    await start_all(peer, tasks)
    for task in tasks:
        await peer.outcome(task)
        await peer.lines(task, 8)
    if victim == "agent":
        os.kill(runner.agent_pid, signal.SIGKILL)
        await peer.next_session(2)
    else:
        await runner.kill()
        runner = await start_runner()
    agent = runner.agent_pid
    peer.ack_reports = True
    # Repeats every report, which is acknowledged this time.
    peer.session.outbox.put_nowait(None)
    await peer.next_session(3)
    await peer.until(lambda: not runner.kept_runs())
    assert runner.agent_pid == agent
    assert "KeyError" not in runner.output()
    assert all(kinds(peer, task)["released"] == 0 for task in tasks)


@pytest.mark.parametrize("acknowledged", [False, True], ids=["outcome spooled", "outcome acknowledged"])
async def test_output_of_ended_runs_survives_a_killed_warden(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner, acknowledged: bool
) -> None:
    peer.ack_logs = False
    peer.ack_reports = acknowledged
    tasks = [peer.task(shell(f"seq {n} {n + 7}")) for n in range(5)]
    await start_all(peer, tasks)
    for task in tasks:
        await peer.outcome(task)
    # A heartbeat without held leases proves that the acknowledgement of the reports has arrived.
    if acknowledged:
        await peer.until(lambda: [b for b in peer.session.heartbeats[-1:] if not b.held_count])
    await runner.kill()
    # No log was acknowledged, so none counts as stored.
    peer.logs.clear()
    peer.ack_logs = peer.ack_reports = True
    again = await start_runner()
    for n, task in enumerate(tasks):
        lines = await peer.lines(task, 8)
        assert [entry.message for entry in lines] == [str(number) for number in range(n, n + 8)]
        assert kinds(peer, task)["released"] == 0
    await peer.until(lambda: not again.kept_runs())


async def test_log_of_a_run_that_lost_its_warden_notes_that_output_may_be_missing(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    task = peer.task(shell("echo before; exec sleep 600"))
    await start_all(peer, [task])
    await peer.line(task, "before")
    await runner.kill()
    await start_runner()
    lines = await peer.lines(task, 2)
    assert lines[0].message == "before"
    assert lines[1].source == LOG_SOURCE_RUNNER and "is missing" in lines[1].message
