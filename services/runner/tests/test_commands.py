"""Commands: started, logged and reported, with a fresh environment and directory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import Gate, RunnerProcess, command, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer, Task
from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT, ERROR_CLASS_TRANSIENT, Payload
from taskyard.v1.log_pb2 import LOG_SOURCE_STDERR, LOG_SOURCE_STDOUT


@pytest.mark.seed("S4.27", "S4.32")
async def test_a_command_is_started_logged_and_succeeds(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(command("echo", "hello", "world"))
    outcome = await peer.outcome(task)
    assert outcome.succeeded.exit_code == 0
    assert [r.WhichOneof("report") for r in peer.reports[task.key]] == ["started", "succeeded"]
    (line,) = await peer.lines(task, 1)
    assert (line.message, line.source, line.sequence) == ("hello world", LOG_SOURCE_STDOUT, 1)
    assert peer.keys == ["Bearer ty_test_secret"]


async def test_an_exit_code_is_a_transient_failure_with_the_end_of_stderr(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("echo out; echo broken >&2; exit 3"))
    failed = (await peer.outcome(task)).failed
    assert failed.exit_code == 3
    assert failed.error.code == "EXIT_NONZERO"
    assert failed.error.error_class == ERROR_CLASS_TRANSIENT
    assert failed.error.message == "exit code 3\nbroken"
    lines = await peer.lines(task, 2)
    assert {(line.message, line.source) for line in lines} == {
        ("out", LOG_SOURCE_STDOUT),
        ("broken", LOG_SOURCE_STDERR),
    }


async def test_a_usage_error_of_the_program_is_permanent(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell("exit 64"))
    assert (await peer.outcome(task)).failed.error.error_class == ERROR_CLASS_PERMANENT


async def test_a_signal_is_reported_as_such(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell("kill -SEGV $$"))
    failed = (await peer.outcome(task)).failed
    assert (failed.error.code, failed.exit_code) == ("KILLED_BY_SIGNAL", 139)


async def test_a_missing_program_is_a_permanent_start_failure(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(command("no-such-program"))
    failed = (await peer.outcome(task)).failed
    assert (failed.error.code, failed.error.error_class) == ("START_FAILED", ERROR_CLASS_PERMANENT)
    assert "no-such-program" in failed.error.message
    (report,) = peer.reports[task.key]
    assert report.HasField("start")


async def test_the_result_file_becomes_the_output(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(shell("""echo '{"frames": 3}' > "$TASKYARD_RESULT_FILE" """))
    result = (await peer.outcome(task)).succeeded.result
    assert json.loads(result.output.raw) == {"frames": 3}
    assert result.output.content_type == "application/json"
    assert result.metrics.fields["max_rss_bytes"].number_value > 0


@pytest.mark.seed("S4.49", "S4.50")
async def test_the_environment_is_the_tasks_then_the_runners(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    await start_runner("--env", "SHARED=runner", SECRET="of the runner")
    spec = command("env", env=variables(SHARED="task", OWN="1"), payload=Payload(raw=b'{"a":1}'))
    task = peer.assign(spec)
    await peer.outcome(task)
    await peer.line(task, "OWN=1")
    env = dict(entry.message.split("=", 1) for entry in peer.logs[task.key].values())
    assert env["SHARED"] == "runner"
    assert "SECRET" not in env and "TASKYARD_KEY" not in env
    lease = task.assignment.lease
    assert env["TASKYARD_TASK"] == lease.task
    assert env["TASKYARD_FENCE"] == f"1.{lease.lease_id}"
    assert env["HOME"].startswith(env["TASKYARD_RUN"])


async def test_payload_and_fresh_directory(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    spec = shell('cat "$TASKYARD_PAYLOAD_FILE"; echo; ls -A; touch left; pwd')
    spec.payload.raw = b'{"a": 1}'
    task = peer.assign(spec)
    await peer.outcome(task)
    payload, pwd = await peer.lines(task, 2)
    assert payload.message == '{"a": 1}'
    assert pwd.message.startswith(str(runner.data_dir))


async def test_two_hundred_commands_at_once(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    await start_runner("--capacity", "200")
    gate = Gate(tmp_path)
    body = 'echo ready; exec flock -s "$GATE" true'
    tasks = [peer.task(command("bash", "-c", body, env=variables(GATE=str(gate)))) for _ in range(200)]
    peer.send(*tasks)
    for task in tasks:
        await peer.line(task, "ready")
    gate.open()
    for task in tasks:
        assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"


async def test_a_runner_short_of_descriptors_fails_some_tasks_and_recovers(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    await start_runner("--capacity", "40", program=("prlimit", "--nofile=80:80", sys.executable))
    gate = Gate(tmp_path)
    body = 'exec flock -s "$GATE" true'
    tasks = [peer.task(command("bash", "-c", body, env=variables(GATE=str(gate)))) for _ in range(40)]
    peer.send(*tasks)
    failed = [task for task in tasks if await _fails_to_start(peer, task)]
    gate.open()
    assert 0 < len(failed) < 40
    for task in tasks:
        await peer.outcome(task)
    # The last descriptors go with the logs that are shipped behind the outcomes.
    ends = [(await peer.outcome(peer.assign(command("true")))).WhichOneof("report") for _ in range(20)]
    assert ends[-1] == "succeeded"


async def _fails_to_start(peer: SchedulerPeer, task: Task) -> bool:
    """Whether it failed for want of descriptors; a start failure counts as an attempt too."""
    await peer.report(task, "started")
    failures = [r.failed.error for r in peer.reports[task.key] if r.WhichOneof("report") == "failed"]
    assert all((e.code, e.error_class) == ("START_FAILED", ERROR_CLASS_TRANSIENT) for e in failures)
    return bool(failures)
