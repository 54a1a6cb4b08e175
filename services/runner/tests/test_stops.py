"""Stopping: timeouts, cancel, pause and lost leases end everything a task has started, in time."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest
from google.protobuf.duration_pb2 import Duration

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import RunnerProcess, command, shell
from services.runner.tests.scheduler_peer import SchedulerPeer, duration, stale
from taskyard.v1.common_pb2 import Progress
from taskyard.v1.lease_pb2 import (
    LEASE_ACTION_ABORT,
    LEASE_ACTION_CANCEL,
    LEASE_ACTION_PAUSE,
    RELEASE_REASON_LOST,
    RELEASE_REASON_PAUSED,
    LeaseAction,
    LeaseRef,
    RunReport,
    RunSucceeded,
)
from taskyard.v1.task_pb2 import OVERLAP_POLICY_ALLOW, OVERLAP_POLICY_FORBID
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.ended import Ended, reports_of
from taskyard_runner.agent.leases import Held
from taskyard_runner.agent.run import AgentRun

STUBBORN = "trap '' TERM; echo ready; while true; do sleep 600 & wait; done"
POLITE = "trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 600 & wait; done"


@pytest.mark.parametrize(
    ("field", "code"),
    [("attempt_timeout", "ATTEMPT_TIMEOUT"), ("silence_timeout", "SILENCE_TIMEOUT")],
)
async def test_a_timeout_stops_the_task(
    peer: SchedulerPeer, runner: RunnerProcess, field: str, code: str
) -> None:
    spec = shell("sleep 600", **{field: duration(0.2)})
    task = peer.assign(spec)
    timed_out = (await peer.outcome(task)).timed_out
    assert (timed_out.code, timed_out.exit_code) == (code, 143)


async def test_the_total_timeout_counts_from_the_assignment(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("sleep 600"), total_timeout=duration(2.0))
    assert (await peer.outcome(task)).timed_out.code == "TOTAL_TIMEOUT"


async def test_output_is_a_sign_of_life(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    body = "for i in 1 2 3 4 5 6; do sleep 0.15; echo $i; done"
    task = peer.assign(shell(body, silence_timeout=duration(0.6)))
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"


@pytest.mark.parametrize(
    ("action", "kind"), [(LEASE_ACTION_CANCEL, "cancelled"), (LEASE_ACTION_PAUSE, "released")]
)
async def test_run_whose_stop_overtook_its_assignment_does_not_start(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path, action: LeaseAction.ValueType, kind: str
) -> None:
    effect = tmp_path / "effect"
    task = peer.task(shell(f"echo ran > {effect}; sleep 600"))
    peer.send_verdict(task, action)
    peer.send(task)
    assert (await peer.outcome(task)).WhichOneof("report") == kind
    assert [report.WhichOneof("report") for report in peer.reports[task.key]] == [kind]
    assert not effect.exists()


async def test_assignment_of_a_lease_that_was_lost_before_is_dropped(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.task(shell("sleep 600"))
    peer.send_verdict(task, LEASE_ACTION_ABORT)
    peer.send(task)
    # The next assignment of the stream runs, so the first was handled.
    await peer.outcome(peer.assign(shell("true")))
    assert not peer.reports[task.key]


@pytest.mark.parametrize("kind", ["cancelled", "released", "failed"])
def test_start_is_reported_with_the_outcome_only_if_the_run_started(kind: str, tmp_path: Path) -> None:
    lease = LeaseRef(task="tenants/default/tasks/t1", generation=1, lease_id=1)
    run = AgentRun(Held(lease, "r", 0.0), RunDirectory(str(tmp_path), "r"), 0.0)
    outcome = RunReport()
    getattr(outcome, kind).SetInParent()
    (report,) = reports_of(Ended(run, outcome, 1.0, 2.0, "", wrote=False))
    assert report.HasField("start") == (kind == "failed")


@pytest.mark.parametrize("apart", ["progress", "later"])
def test_start_is_a_report_of_its_own_where_something_comes_before_the_outcome(
    apart: str, tmp_path: Path
) -> None:
    lease = LeaseRef(task="tenants/default/tasks/t1", generation=1, lease_id=1)
    held = Held(lease, "r", 0.0)
    if apart == "progress":
        held.change(progress=Progress(percent=5))
    run = AgentRun(held, RunDirectory(str(tmp_path), "r"), 0.0)
    outcome = RunReport(succeeded=RunSucceeded())
    end = Ended(run, outcome, 1.0, 2.0, "", wrote=False)
    reports = reports_of(end, together=apart != "later")
    between = ["progress"] if apart == "progress" else []
    assert [report.WhichOneof("report") for report in reports] == ["started", *between, "succeeded"]
    assert not any(report.HasField("start") for report in reports)


async def test_cancel_sends_sigterm_first(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell(POLITE))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_CANCEL)
    assert (await peer.outcome(task)).cancelled.exit_code == 0
    await peer.line(task, "bye")


@pytest.mark.parametrize("flags", [(), ("--no-cgroups",)], ids=["cgroups", "no cgroups"])
async def test_run_that_ignores_sigterm_is_killed_with_its_children_after_the_grace_period(
    peer: SchedulerPeer, start_runner: StartRunner, flags: tuple[str, ...]
) -> None:
    await start_runner(*flags)
    double_fork = "(setsid bash -c \"trap '' TERM; echo $BASHPID; exec sleep 600\" &)"
    hidden = "(env -i setsid bash -c 'trap \"\" TERM; echo $$; while true; do sleep 600; done' &)"
    task = peer.assign(
        shell(f"{double_fork}\n{hidden}\n{STUBBORN}", stop_grace_period=Duration(nanos=300_000_000))
    )
    await peer.line(task, "ready")
    pids = [int(entry.message) for entry in await peer.lines(task, 3) if entry.message.isdigit()]
    assert len(pids) == 2
    before = time.monotonic()
    peer.send_verdict(task, LEASE_ACTION_CANCEL)
    assert (await peer.outcome(task)).cancelled.exit_code == 137
    assert 0.3 <= time.monotonic() - before < 5
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


async def test_a_success_that_comes_before_the_cancel_stays(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("echo done"))
    peer.send_verdict(task, LEASE_ACTION_CANCEL)
    outcome = await peer.outcome(task)
    assert outcome.WhichOneof("report") in ("succeeded", "cancelled")
    ended = peer.assign(shell("true"))
    await peer.outcome(ended)
    peer.send_verdict(ended, LEASE_ACTION_CANCEL)
    following = peer.assign(shell("true"))
    await peer.outcome(following)
    assert [r.WhichOneof("report") for r in peer.reports[ended.key]] == ["started", "succeeded"]


async def test_pause_releases_the_task(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell(POLITE))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_PAUSE)
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_PAUSED


async def test_abort_kills_at_once_and_reports_nothing(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell(STUBBORN))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_ABORT)

    def dropped() -> bool:
        return any(lease.task == task.key[0] for hb in peer.session.heartbeats for lease in hb.dropped)

    await peer.until(dropped)
    assert [r.WhichOneof("report") for r in peer.reports[task.key]] == ["started"]
    assert peer.session.heartbeats[-1].held_count == 0


async def test_output_of_an_aborted_run_is_shipped_to_its_end(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    go, written, count = tmp_path / "go", tmp_path / "written", 20_000
    os.mkfifo(written)
    body = f"echo 0; until [ -e {go} ]; do sleep 0.02; done; seq -w {count} | sed 's/$/{'x' * 80}/'"
    task = peer.assign(shell(f"{body}; echo all > {written}; sleep 1000"))
    await peer.line(task, "0")
    agent = psutil.Process(runner.agent_pid)
    agent.suspend()
    go.touch()
    assert await asyncio.to_thread(written.read_text) == "all\n"
    peer.send_verdict(task, LEASE_ACTION_ABORT)
    agent.resume()
    lines = await peer.lines(task, count + 1)
    assert [int(line.message.rstrip("x")) for line in lines] == list(range(count + 1))
    assert [r.WhichOneof("report") for r in peer.reports[task.key]] == ["started"]


async def test_a_rejected_start_aborts_the_run(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    peer.reject = lambda report: stale(report) if report.WhichOneof("report") == "started" else None
    task = peer.assign(shell(STUBBORN))
    await peer.until(lambda: peer.session.heartbeats and not peer.session.heartbeats[-1].held_count)
    assert [r.WhichOneof("report") for r in peer.reports[task.key]] == ["started"]
    assert "report_rejected" in runner.output()


async def test_forbid_work_is_killed_when_its_lease_ends_though_the_agent_is_frozen(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    peer.lease_duration = peer.first_lease = 2.0
    peer.heartbeat_interval = 0.5
    runner = await start_runner()
    task = peer.assign(shell(f"echo $$; {STUBBORN}", overlap=OVERLAP_POLICY_FORBID))
    pid = int((await peer.lines(task, 1))[0].message)
    await peer.until(lambda: peer.session.last_heartbeat_id >= 2)
    agent = psutil.Process(runner.agent_pid)
    agent.suspend()
    frozen = time.monotonic()
    await _gone(pid)
    assert time.monotonic() - frozen < 2.5
    agent.resume()
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_LOST


async def test_run_that_a_frozen_warden_did_not_start_in_time_is_given_back(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    """Its lease was renewed meanwhile, because the agent lists it: nobody else would end it."""
    peer.first_lease = 2.0
    runner = await start_runner()
    warden = psutil.Process(runner.pid)
    warden.suspend()
    task = peer.assign(command("true"))
    key = task.assignment.lease.task

    def listed_past_its_first_lease() -> bool | None:
        lists = [beat for beat in peer.session.heartbeats if any(h.lease.task == key for h in beat.changed)]
        return (lists and len(peer.session.heartbeats) > peer.session.heartbeats.index(lists[0]) + 4) or None

    await peer.until(listed_past_its_first_lease)
    warden.resume()
    assert (await peer.outcome(task)).WhichOneof("report") == "released"


async def test_without_a_scheduler_forbid_work_and_orphans_are_stopped(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    peer.lease_duration = peer.first_lease = 1.0
    peer.heartbeat_interval = 0.3
    await start_runner()
    allowed = peer.task(shell("echo ready; sleep 4; echo 7 > $TASKYARD_RESULT_FILE"))
    forbidden = peer.task(shell("echo $$; exec sleep 600", overlap=OVERLAP_POLICY_FORBID))
    orphan = peer.task(
        shell("echo $$; exec sleep 600", overlap=OVERLAP_POLICY_ALLOW, orphan_timeout=duration(1.0))
    )
    peer.send(allowed, forbidden, orphan)
    pid = int((await peer.lines(forbidden, 1))[0].message)
    orphan_pid = int((await peer.lines(orphan, 1))[0].message)
    await peer.line(allowed, "ready")
    await peer.stop()
    await _gone(pid)
    assert psutil.pid_exists(orphan_pid)
    await _gone(orphan_pid)
    await peer.start()
    assert (await peer.outcome(allowed)).succeeded.result.output.raw == b"7\n"
    for lost in (forbidden, orphan):
        assert (await peer.outcome(lost)).released.reason == RELEASE_REASON_LOST


async def _gone(pid: int) -> None:
    from services.runner.tests.runner_process import wait_gone

    await wait_gone(pid)
