"""Bad input: a clear error of the right class for the task, a line for the operator, never a crash."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess, command, script, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT
from taskyard.v1.task_pb2 import (
    INTERPRETER_CUSTOM,
    INTERPRETER_NODE,
    INTERPRETER_PYTHON,
    CommandExecution,
    Execution,
    Interpreter,
    ScriptExecution,
    TaskSpec,
)


def script_of(body: bytes, interpreter: int = INTERPRETER_PYTHON, **fields: str) -> TaskSpec:
    chosen = Interpreter.ValueType(interpreter)
    return TaskSpec(execution=Execution(script=ScriptExecution(interpreter=chosen, body=body, **fields)))


async def test_bad_descriptions_are_permanent_start_failures(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    not_executable = tmp_path / "plain.txt"
    not_executable.write_text("text")
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    cases = {
        "relative path": command("./here"),
        "does not exist": command("/no/such/program"),
        "cannot be executed": command(str(not_executable)),
        "exec: No such file": command(str(broken)),
        "NUL character": command("echo", "a\0b"),
        "is no directory": TaskSpec(
            execution=Execution(command=CommandExecution(program="true", working_directory="/no/such/dir"))
        ),
        "Argument list too long": command("echo", *(["x" * 100_000] * 40)),
        "NUL byte at position 6": script_of(b"print(\0)"),
        "not UTF-8": script_of(b"print('\xff')"),
        "body is empty": script_of(b""),
        "is unknown to this runner": script_of(b"x", 77),
        "custom_program": script_of(b"x", INTERPRETER_CUSTOM, custom_program="no-such-interpreter"),
    }
    tasks = {}
    for message, spec in cases.items():
        tasks[message] = peer.assign(spec)
        failed = (await peer.outcome(tasks[message])).failed
        assert failed.error.code == "START_FAILED", message
        assert failed.error.error_class == ERROR_CLASS_PERMANENT, message
        assert message in failed.error.message
    assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"


@pytest.mark.seed("S4.33-34")
async def test_scripts_of_every_interpreter(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    specs = {
        "python": script("import sys; print('python', sys.argv[1])", INTERPRETER_PYTHON),
        "bash": shell("echo bash $1"),
        "node": script("console.log('node', process.argv[2])", INTERPRETER_NODE),
    }
    custom = script_of(
        b'BEGIN { print "awk", ARGV[1] }', INTERPRETER_CUSTOM, custom_program="awk", custom_flag="-f"
    )
    for name, spec in {**specs, "awk": custom}.items():
        spec.execution.script.args.append("argument")
        task = peer.assign(spec)
        await peer.outcome(task)
        (line,) = await peer.lines(task, 1)
        assert line.message == f"{name} argument"


async def test_a_result_above_the_limit_or_no_file_is_an_error(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    cases = {
        "RESULT_TOO_LARGE": "head -c 1048577 /dev/zero > $TASKYARD_RESULT_FILE",
        "RESULT_UNREADABLE": "ln -s /etc/passwd $TASKYARD_RESULT_FILE",
    }
    for code, body in cases.items():
        failed = (await peer.outcome(peer.assign(shell(body)))).failed
        assert (failed.error.code, failed.error.error_class) == (code, ERROR_CLASS_PERMANENT)


async def test_a_directory_that_was_made_unreadable_is_removed_too(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell("mkdir -p a/b; touch a/b/c; chmod 0 a/b a ."))
    await peer.outcome(task)
    await peer.until(lambda: not runner.kept_runs())


async def test_links_in_a_runs_directory_are_removed_and_not_followed(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("mine")
    outside.chmod(0o555)
    body = 'ln -s "$OUT" link; cd ..; rmdir tmp; ln -s "$OUT" tmp; rm -r work/a 2> /dev/null; echo end'
    task = peer.assign(shell(body, env=variables(OUT=str(outside))))
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    await peer.until(lambda: not runner.kept_runs())
    assert (outside / "kept").read_text() == "mine"
    assert outside.stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capacity", "0"], "capacity = '0' (from --capacity): must be at least 1"),
        (["--label", "novalue"], "label = 'novalue': must be name=value"),
        (["--id", "a b"], "id = 'a b': must be 1 to 128 of"),
        (["--task-type", "a b"], "task_type = 'a b': must be a task type"),
        (["--bogus"], "unknown flag --bogus"),
    ],
)
def test_a_bad_setting_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "taskyard_runner", "--data-dir", str(tmp_path), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"taskyard-runner: {message}")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "192.0.2.1:7421"], "192.0.2.1:7421 is not on this machine"),
        (["--metrics-listen", "127.0.0.1:{port}"], "Address already in use"),
        (["--otlp-endpoint", "nowhere"], "otlp_endpoint = 'nowhere': must begin with http://"),
    ],
    ids=["plaintext", "port in use", "bad endpoint"],
)
def test_error_found_by_the_agent_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = [argument.format(port=taken.getsockname()[1]) for argument in arguments]
        ended = subprocess.run(
            [sys.executable, "-m", "taskyard_runner", "--data-dir", str(tmp_path), *flags],
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert line.startswith("taskyard-runner: ") and message in line


def test_a_data_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = subprocess.run(
        [sys.executable, "-m", "taskyard_runner", "--data-dir", str(tmp_path / "file" / "x")],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 1
    assert "cannot be used (Not a directory)" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
