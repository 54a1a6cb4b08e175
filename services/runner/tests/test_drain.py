"""Drain: SIGTERM once and twice, an administrator's drain, and the goodbye of the runner."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import Gate, RunnerProcess, command, shell, variables, wait_gone
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.lease_pb2 import RELEASE_REASON_DRAINED
from taskyard.v1.runner_link_service_pb2 import (
    RUNNER_GOODBYE_REASON_DRAINED,
    RUNNER_GOODBYE_REASON_SHUTDOWN,
    Command,
    RunnerGoodbyeReason,
    UndrainCommand,
)
from taskyard.v1.runner_pb2 import DRAIN_MODE_FINISH, DRAIN_MODE_RELEASE, DrainMode, DrainRequest

HOLD = 'echo ready; flock -s "$GATE" true; echo done'


def goodbye_reason(peer: SchedulerPeer) -> RunnerGoodbyeReason.ValueType:
    goodbye = peer.session.goodbye
    assert goodbye is not None and not goodbye.keep_leases
    return goodbye.reason


async def test_sigterm_lets_tasks_finish_and_rejects_new_ones(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(shell(HOLD, env=variables(GATE=str(gate))))
    await peer.line(task, "ready")
    runner.send(signal.SIGTERM)
    await peer.until(lambda: peer.session.heartbeats and peer.session.heartbeats[-1].draining)
    assert peer.session.heartbeats[-1].free.tasks == 0
    late = peer.assign(command("true"))
    assert (await peer.outcome(late)).released.reason == RELEASE_REASON_DRAINED
    gate.open()
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    assert await runner.wait() == 0
    assert goodbye_reason(peer) == RUNNER_GOODBYE_REASON_SHUTDOWN
    await peer.line(task, "done")


async def test_tasks_that_outlast_the_drain_are_released(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    runner = await start_runner("--drain-timeout", "300ms")
    task = peer.assign(shell("echo ready; exec sleep 600"))
    await peer.line(task, "ready")
    runner.send(signal.SIGTERM)
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_DRAINED
    assert await runner.wait() == 0


async def test_second_sigterm_releases_tasks_at_once(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell("echo ready; exec sleep 600"))
    await peer.line(task, "ready")
    runner.send(signal.SIGTERM)
    await peer.until(lambda: peer.session.heartbeats and peer.session.heartbeats[-1].draining)
    runner.send(signal.SIGTERM)
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_DRAINED
    assert await runner.wait() == 0


async def test_an_idle_runner_ends_at_once(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    before = time.monotonic()
    runner.send(signal.SIGINT)
    assert await runner.wait() == 0
    assert time.monotonic() - before < 3
    assert goodbye_reason(peer) == RUNNER_GOODBYE_REASON_SHUTDOWN


async def test_a_third_sigterm_ends_everything_though_the_agent_is_frozen(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("echo $$; exec sleep 600"))
    pid = int((await peer.lines(task, 1))[0].message)
    psutil.Process(runner.agent_pid).suspend()
    for _ in range(3):
        # A signal that is still pending would swallow the next one.
        await _terminate(runner)
    assert await runner.wait() == 1
    await wait_gone(pid)


async def _terminate(runner: RunnerProcess) -> None:
    """Send SIGTERM and wait until it was taken."""
    seen = runner.output().count("signal_received")
    runner.send(signal.SIGTERM)
    await runner.printed(lambda printed: printed.count("signal_received") > seen)


@pytest.mark.parametrize("mode", [DRAIN_MODE_FINISH, DRAIN_MODE_RELEASE], ids=["deadline", "release"])
async def test_administrators_drain_releases_tasks_and_can_be_cancelled(
    peer: SchedulerPeer, runner: RunnerProcess, mode: DrainMode.ValueType
) -> None:
    task = peer.assign(shell("echo ready; exec sleep 600"))
    await peer.line(task, "ready")
    drain = DrainRequest(mode=mode)
    if mode == DRAIN_MODE_FINISH:
        drain.deadline.CopyFrom(Timestamp(seconds=int(time.time())))
    peer.session.send(command=Command(drain=drain))
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_DRAINED
    peer.session.send(command=Command(undrain=UndrainCommand()))
    again = peer.assign(command("true"))
    assert (await peer.outcome(again)).WhichOneof("report") == "succeeded"


async def test_exit_when_drained(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    peer.welcome["drain"] = DrainRequest(mode=DRAIN_MODE_FINISH, exit_when_drained=True)
    runner = await start_runner()
    assert await runner.wait() == 0
    assert goodbye_reason(peer) == RUNNER_GOODBYE_REASON_DRAINED


async def test_without_a_scheduler_the_outcome_waits_in_the_spool_for_the_next_start(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(shell(HOLD, env=variables(GATE=str(gate))))
    await peer.line(task, "ready")
    await peer.stop()
    runner.send(signal.SIGTERM)
    gate.open()
    assert await runner.wait() == 0
    await peer.start()
    await start_runner()
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
