"""The link's rules: leases by send time, resent reports, capacity, windows, refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import Gate, RunnerProcess, command, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer, duration
from taskyard import errors
from taskyard.v1.lease_pb2 import RELEASE_REASON_NO_CAPACITY, RELEASE_REASON_UNSUPPORTED
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_ENDED,
    SERVER_GOODBYE_REASON_SHUTDOWN,
    FlowControl,
    HeartbeatAck,
    ServerGoodbye,
)
from taskyard.v1.runner_pb2 import EXECUTION_KIND_COMMAND, EXECUTION_KIND_SCRIPT
from taskyard.v1.task_pb2 import Execution, TaskSpec, WasmExecution


async def test_hello_describes_the_runner(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    await start_runner("--label", "zone=a", "--label", "gpu=1", "--task-type", "train*", "--memory-mb", "512")
    hello = peer.session.hello
    assert (hello.runner_id, hello.protocol_version, hello.takeover) == ("r1", 1, False)
    registration = hello.registration
    assert dict(registration.labels) == {"zone": "a", "gpu": "1"}
    assert list(registration.task_types) == ["train*"]
    assert list(registration.execution_kinds) == [EXECUTION_KIND_COMMAND, EXECUTION_KIND_SCRIPT]
    assert (registration.capacity, hello.free.tasks, hello.free.resources.memory_mb) == (10, 10, 512)


async def test_assignment_whose_lease_expired_is_released(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    await peer.until(lambda: peer.session.last_heartbeat_id >= 1)
    late = peer.task(command("touch", str(tmp_path / "late")))
    # It counts from hello, which was sent a heartbeat's interval ago.
    late.assignment.lease_ttl.CopyFrom(duration(peer.heartbeat_interval / 2))
    unknown = peer.task(command("touch", str(tmp_path / "late")))
    unknown.assignment.heartbeat_id = 999
    peer.session.send(assignments={"assignments": [late.assignment, unknown.assignment]})
    good = peer.assign(command("true"))
    await peer.outcome(good)
    for task in (late, unknown):
        assert (await peer.outcome(task)).released.reason == RELEASE_REASON_NO_CAPACITY
        assert len(peer.reports[task.key]) == 1
    assert not (tmp_path / "late").exists()


async def test_a_repeated_assignment_is_the_same_one(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.task(shell('echo once; flock -s "$GATE" true', env=variables(GATE=str(gate))))
    peer.send(task, task)
    await peer.line(task, "once")
    peer.send(task)
    gate.open()
    await peer.outcome(task)
    assert len(peer.logs[task.key]) == 1


async def test_assignments_above_the_capacity_are_released(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    await start_runner("--capacity", "1")
    gate = Gate(tmp_path)
    first = peer.task(shell('flock -s "$GATE" true', env=variables(GATE=str(gate))))
    second = peer.task(command("true"))
    peer.send(first, second)
    assert (await peer.outcome(second)).released.reason == RELEASE_REASON_NO_CAPACITY
    gate.open()
    await peer.outcome(first)


async def test_unknown_kind_is_released_as_unsupported(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(TaskSpec(execution=Execution(wasm=WasmExecution(inline=b"x"))))
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_UNSUPPORTED


async def test_unacknowledged_reports_are_sent_again_and_listed(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.ack_reports = False
    task = peer.assign(command("true"))
    await peer.outcome(task)
    peer.session.outbox.put_nowait(None)
    session = await peer.next_session(2)
    (held,) = session.hello.held
    assert (held.lease.task, held.state) == (task.key[0], HELD_STATE_ENDED)
    assert session.hello.free.tasks == 10
    peer.ack_reports = True
    await peer.until(lambda: len(peer.reports[task.key]) >= 4)
    kinds = [report.WhichOneof("report") for report in peer.reports[task.key]]
    assert kinds == ["started", "succeeded"] * 2


async def test_link_reconnects_after_three_unacknowledged_heartbeats(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    peer.heartbeat_interval = 0.2
    await start_runner()
    peer.ack_heartbeats = False
    await peer.next_session(2)


async def test_full_list_is_sent_on_request(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(shell('flock -s "$GATE" true', env=variables(GATE=str(gate))))
    await peer.until(lambda: any(hb.changed for hb in peer.session.heartbeats))
    peer.session.send(heartbeat_ack=HeartbeatAck(heartbeat_id=0, full_requested=True))
    full = await peer.until(lambda: next((hb for hb in peer.session.heartbeats if hb.full), None))
    assert [held.lease.task for held in full.changed] == [task.key[0]]
    assert full.held_count == 1
    gate.open()
    await peer.outcome(task)
    await peer.until(lambda: any(hb.dropped for hb in peer.session.heartbeats))


async def test_a_server_goodbye_loses_nothing(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(shell('flock -s "$GATE" true', env=variables(GATE=str(gate))))
    await peer.report(task, "started")
    peer.session.send(
        goodbye=ServerGoodbye(reason=SERVER_GOODBYE_REASON_SHUTDOWN, reconnect_after=duration(0.05))
    )
    session = await peer.next_session(2)
    assert [held.lease.task for held in session.hello.held] == [task.key[0]]
    gate.open()
    await peer.outcome(task)


async def test_the_window_of_reports_is_kept(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    peer.welcome["flow"] = FlowControl(max_unacked_reports=3, max_unacked_bytes=1 << 20)
    await start_runner()
    peer.ack_reports = False
    tasks = [peer.assign(command("true")) for _ in range(5)]
    await peer.until(lambda: len(peer.session.seqs) == 3)
    await peer.until(lambda: peer.session.heartbeats and peer.session.heartbeats[-1].spool_depth == 10)
    assert len(peer.session.seqs) == 3
    peer.ack_reports = True
    peer.session.send(report_ack={"through_seq": peer.session.seqs[-1]})
    for task in tasks:
        await peer.outcome(task)


@pytest.mark.parametrize(
    "refusal",
    [
        errors.RunnerIdInUse.named("r1"),
        errors.ProtocolVersionUnsupported("runner", "1", "2"),
    ],
    ids=lambda error: error.reason,
)
async def test_refused_runner_prints_the_reason_and_exits(
    peer: SchedulerPeer, start_runner: StartRunner, refusal: errors.TaskyardError
) -> None:
    peer.refuse = refusal
    runner = await start_runner(welcomed=False)
    assert await runner.wait() == 1
    printed = [line for line in runner.output().splitlines() if not line.startswith("{")]
    assert printed == [f"taskyard-runner: {refusal.message}"]


async def test_a_runner_with_a_bad_key_prints_how_to_get_one(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    peer.refuse = errors.Unauthenticated("the key is unknown, expired or revoked")
    runner = await start_runner(welcomed=False)
    assert await runner.wait() == 1
    (printed,) = [line for line in runner.output().splitlines() if not line.startswith("{")]
    assert printed == (
        "taskyard-runner: the scheduler rejects the key: the key is unknown, expired or revoked;"
        " set TASKYARD_KEY or --key to a key of kind runner (`taskyard keys create --kind runner`)"
    )


async def test_a_busy_runner_that_is_refused_later_keeps_its_work(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    task = peer.assign(shell('echo $$; flock -s "$GATE" true', env=variables(GATE=str(gate))))
    (line,) = await peer.lines(task, 1)
    peer.refuse = errors.Unauthenticated()
    await peer.stop()
    await peer.start()
    await peer.until(lambda: len(peer.keys) > 1)
    assert psutil.pid_exists(int(line.message))
    gate.open()


async def test_superseded_runner_does_not_reclaim_its_id(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    peer.session.outbox.put_nowait(None)
    session = await peer.next_session(2)
    assert not session.hello.takeover
    assert session.hello.instance_id == peer.sessions[0].hello.instance_id


async def test_the_key_is_hidden_from_tasks(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    assert "ty_test_secret" not in runner.output()
    environ = await asyncio.to_thread(Path(f"/proc/{runner.agent_pid}/environ").read_bytes)
    assert b"ty_test_secret" not in environ
