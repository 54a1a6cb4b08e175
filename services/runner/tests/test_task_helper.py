"""taskyard-task and the TASKYARD_* protocol, from inside real tasks."""

from __future__ import annotations

import os
import signal

import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.function_calls import kinds, reported
from services.runner.tests.runner_process import RunnerProcess, shell
from services.runner.tests.scheduler_peer import SchedulerPeer, checkpoint_of
from taskyard import errors
from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT
from taskyard.v1.lease_pb2 import LEASE_ACTION_PAUSE, RELEASE_REASON_LOST, RELEASE_REASON_PAUSED
from taskyard.v1.log_pb2 import LOG_LEVEL_WARNING, LOG_SOURCE_WORKLOAD
from taskyard_runner import task_helper


async def test_progress_log_result_and_fence(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    body = """
    set -e
    echo begin
    taskyard-task progress 40 "frames 4/10" --step 2
    taskyard-task log --level warning "disk is" slow
    echo '"done"' | taskyard-task result -
    taskyard-task fence --check
    """
    task = peer.assign(shell(body))
    outcome = await peer.outcome(task)
    assert outcome.succeeded.result.output.raw == b'"done"\n'
    progress = (await peer.report(task, "progress")).progress
    assert (progress.percent, progress.message, progress.step) == (40, "frames 4/10", 2)
    entries = await peer.lines(task, 3)
    lease = task.assignment.lease
    assert [entry.message for entry in entries] == ["begin", "disk is slow", f"1.{lease.lease_id}"]
    assert (entries[1].level, entries[1].source) == (LOG_LEVEL_WARNING, LOG_SOURCE_WORKLOAD)


@pytest.mark.parametrize("end", ["", "; exit 1"])
async def test_the_last_progress_is_reported_before_the_outcome(
    peer: SchedulerPeer, runner: RunnerProcess, end: str
) -> None:
    """Reports of progress are at least a second apart; the end of the run does not wait for that."""
    task = peer.assign(shell(f"taskyard-task progress 50; taskyard-task progress 100 ready{end}"))
    await peer.outcome(task)
    assert reported(peer, task)[-1] == 100
    assert kinds(peer, task)[-1] in ("succeeded", "failed")


@pytest.mark.seed("S0.15")
async def test_a_program_reports_metrics_beside_those_of_its_process(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = "taskyard-task metrics accuracy=0.5 steps=3; taskyard-task metrics accuracy=0.93"
    result = (await peer.outcome(peer.assign(shell(body)))).succeeded.result
    assert (result.metrics["accuracy"], result.metrics["steps"]) == (0.93, 3)
    seconds = result.metrics["cpu_seconds"]
    assert isinstance(seconds, float) and seconds > 0
    bad = peer.assign(shell("taskyard-task metrics accuracy=none"))
    assert "'accuracy=none' is not NAME=NUMBER" in (await peer.outcome(bad)).failed.error.message


@pytest.mark.seed("S1.4-5")
async def test_the_environment_names_entity_and_scheduled_time(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    spec = shell('echo "$TASKYARD_ENTITY_TYPE $TASKYARD_ENTITY_ID $TASKYARD_SCHEDULED_TIME"')
    spec.entity.type, spec.entity.id = "planner", "p-1"
    spec.not_before.FromJsonString("2026-01-02T03:04:05Z")
    await peer.line(peer.assign(spec), "planner p-1 2026-01-02T03:04:05Z")


async def test_a_workload_classes_its_own_failure(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    body = "taskyard-task fail --permanent --code BAD_INPUT --retry-after 2.5 'no such table'; exit 1"
    failed = (await peer.outcome(peer.assign(shell(body)))).failed
    assert (failed.error.code, failed.error.message) == ("BAD_INPUT", "no such table")
    assert failed.error.error_class == ERROR_CLASS_PERMANENT
    assert failed.retry_after.ToTimedelta().total_seconds() == 2.5


async def test_paused_task_resumes_from_its_checkpoint(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    body = """
    trap 'echo 7 > state; taskyard-task checkpoint state; exit 0' TERM
    [ -n "$TASKYARD_CHECKPOINT_FILE" ] && exec cat "$TASKYARD_CHECKPOINT_FILE"
    echo ready; while true; do sleep 600 & wait; done
    """
    task = peer.assign(shell(body))
    await peer.line(task, "ready")
    peer.send_verdict(task, LEASE_ACTION_PAUSE)
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_PAUSED
    header, content = peer.checkpoints[task.key[0]]
    assert (header.sequence, content) == (1, b"7\n")

    again = peer.assign(shell(body), name=task.key[0], generation=2, checkpoint=checkpoint_of(header))
    await peer.line(again, "7")
    assert (await peer.report(again, "started")).started.checkpoint_sequence == 1


async def test_a_large_checkpoint_waits_until_it_is_stored(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = """
    head -c 10485760 /dev/urandom > big
    taskyard-task checkpoint big --wait 20 --content-type application/x-test
    head -c 10485761 /dev/zero > bigger
    taskyard-task checkpoint bigger; echo code $?
    taskyard-task checkpoint missing; echo code $?
    """
    task = peer.assign(shell(body))
    await peer.outcome(task)
    header, content = peer.checkpoints[task.key[0]]
    assert len(content) == 10485760 and header.content_type == "application/x-test"
    assert [entry.message for entry in await peer.lines(task, 5) if entry.source == 1] == [
        "1",
        "code 1",
        "code 1",
    ]


async def test_a_checkpoint_survives_the_agent(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    peer.ack_checkpoints = False
    task = peer.assign(shell("echo 1 > s; taskyard-task checkpoint s; mkfifo hold; cat hold"))
    await peer.line(task, "1")
    os.kill(runner.agent_pid, signal.SIGKILL)
    peer.ack_checkpoints = True
    await peer.next_session(2)
    header, content = await peer.until(lambda: peer.checkpoints.get(task.key[0]))
    assert (header.sequence, content) == (1, b"1\n")


@pytest.mark.parametrize("retries", [True, False], ids=["retry", "ack of an older scheduler"])
async def test_checkpoint_that_could_not_be_stored_is_uploaded_again(
    peer: SchedulerPeer, runner: RunnerProcess, retries: bool
) -> None:
    peer.checkpoint_retries = retries
    peer.checkpoint_failures = [errors.StorageUnavailable("unknown") for _ in range(3)]
    task = peer.assign(shell("echo 1 > s; taskyard-task checkpoint s --wait 20; mkfifo hold; cat hold"))
    header, content = await peer.until(lambda: peer.checkpoints.get(task.key[0]))
    assert (header.sequence, content) == (1, b"1\n")
    await peer.line(task, "1")
    assert not peer.checkpoint_failures


async def test_failure_is_reported_after_a_delayed_checkpoint_is_stored(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.checkpoint_failures = [errors.StorageUnavailable("unknown") for _ in range(4)]
    task = peer.assign(shell("echo 1 > s; taskyard-task checkpoint s; exit 1"))
    assert (await peer.outcome(task)).WhichOneof("report") == "failed"
    assert peer.checkpoints[task.key[0]][1] == b"1\n"


async def test_checkpoint_that_storage_fails_on_does_not_delay_the_outcome_forever(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.checkpoint_failures = [errors.Internal("c1") for _ in range(100)]
    task = peer.assign(shell("echo 1 > s; taskyard-task checkpoint s; exit 1"))
    assert (await peer.outcome(task)).WhichOneof("report") == "failed"
    assert len(peer.checkpoint_failures) < 100


async def test_checkpoint_of_a_run_that_lost_its_warden_is_stored_before_its_release(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    peer.ack_checkpoints = False
    task = peer.assign(shell("echo 1 > s; taskyard-task checkpoint s; mkfifo hold; cat hold"))
    await peer.line(task, "1")
    await runner.kill()
    peer.ack_checkpoints = True
    await start_runner()
    assert (await peer.outcome(task)).released.reason == RELEASE_REASON_LOST
    assert peer.checkpoints[task.key[0]][1] == b"1\n"


async def test_another_runs_token_is_refused(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    body = "TASKYARD_TOKEN=guess taskyard-task progress 1; echo code $?"
    task = peer.assign(shell(body))
    await peer.line(task, "code 1")
    await peer.line(task, "taskyard-task: no run has this token; is TASKYARD_TOKEN the one of this run?")


async def test_invalid_messages_on_the_socket_are_harmless(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    program = """
import os, socket
for data in (b"nonsense\\n", b"[]\\n", b"[" * 60000 + b"\\n", b"x" * 200000):
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["TASKYARD_SOCKET"])
    try:
        s.sendall(data); print(s.recv(100)[:11])
    except OSError: print(b'')
"""
    from services.runner.tests.runner_process import script
    from taskyard.v1.task_pb2 import INTERPRETER_PYTHON

    task = peer.assign(script(program, INTERPRETER_PYTHON))
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    assert (await peer.outcome(peer.assign(shell("true")))).WhichOneof("report") == "succeeded"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["progress", "101"], "percent 101 is not between 0 and 100"),
        (["progress", "1"], "TASKYARD_TOKEN is not set; taskyard-task works inside a task only"),
        (["fence"], "TASKYARD_FENCE is not set"),
    ],
)
def test_misuse_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TASKYARD_TOKEN", "TASKYARD_FENCE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as ended:
        task_helper.main(arguments)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"taskyard-task: {message}")
