"""Every command of the command line against the real suite: what it prints and how it ends."""

import json
import signal
import uuid
from pathlib import Path

import pytest

from tests.acceptance.suite import Suite, until_open


def new_id(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def submit(suite: Suite, word: str, *arguments: str) -> str:
    task = new_id(word)
    assert suite.done("submit", "--id", task, *arguments) == f"{task}\n"
    return task


def watch_until(suite: Suite, task: str, phase: str) -> None:
    """Returns once the task has shown this phase."""
    process = suite.start_cli("watch", task)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.split()[2] == phase:
                return
        raise AssertionError(f"{task} never was {phase}\n{suite.logs()}")
    finally:
        process.kill()
        process.communicate()


def test_run_prints_the_output_of_a_real_task(suite: Suite) -> None:
    ended = suite.cli("run", "--", "echo", "hello")
    assert (ended.code, ended.out, ended.err) == (0, "hello\n", "")


def test_run_keeps_output_and_errors_apart_and_passes_on_the_exit_code(suite: Suite) -> None:
    ended = suite.cli("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ended.code, ended.out) == (3, "out\n")
    line, verdict = ended.err.splitlines()
    assert line == "err"
    assert "FAILED" in verdict or "EXHAUSTED" in verdict


def test_run_takes_a_script_with_arguments_and_environment(suite: Suite) -> None:
    (suite.folder / "greet.sh").write_text('echo "$GREETING $1"\n')
    assert suite.done("run", "-e", "GREETING=hi", "--script", "greet.sh", "--", "there") == "hi there\n"
    (suite.folder / "sum.py").write_text("import sys\nprint(sum(map(int, sys.argv[1:])))\n")
    assert suite.done("run", "--script", "sum.py", "--", "2", "3") == "5\n"


def test_run_keeps_the_lines_in_order(suite: Suite) -> None:
    expected = "".join(f"{n}\n" for n in range(1, 3001))
    assert suite.done("run", "--", "seq", "3000") == expected


def test_a_missing_program_is_reported(suite: Suite) -> None:
    ended = suite.cli("run", "--", "no-such-program-anywhere")
    assert ended.code not in (0, 2, 3)
    assert "no-such-program-anywhere" in ended.err


def test_ctrl_c_cancels_the_task(suite: Suite) -> None:
    task = new_id("interrupted")
    process = suite.start_cli("run", "--id", task, "--", "sh", "-c", "echo started; exec sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "CANCELLED" in suite.done("get", task)


def test_a_timeout_ends_the_task(suite: Suite) -> None:
    ended = suite.cli("run", "--timeout", "1s", "--", "sleep", "1000")
    assert ended.code == 124
    assert "TIMED_OUT" in ended.err


def test_submit_wait_get_logs_and_runs(suite: Suite) -> None:
    task = submit(suite, "whole", "--label", "team=video", "--", "sh", "-c", "echo one; echo two")
    assert suite.done("wait", task) == f"{task}  SUCCEEDED\n"
    shown = suite.done("get", task)
    assert task in shown and "SUCCEEDED" in shown and "team=video" in shown and "exit code  0" in shown
    printed = json.loads(suite.done("get", task, "-o", "json"))
    assert (printed["status"]["phase"], printed["status"]["attempt"]) == ("TASK_PHASE_SUCCEEDED", 1)
    assert suite.done("get", task, "-o", "name") == f"{task}\n"
    assert suite.done("logs", task) == "one\ntwo\n"
    assert suite.done("logs", "-n", "1", task) == "two\n"
    head, row = suite.done("runs", task).splitlines()
    assert head.split()[:3] == ["RUN", "ATTEMPT", "STATE"]
    assert row.split()[:4] == ["1", "1", "SUCCEEDED", "0"]
    assert json.loads(suite.done("runs", task, "-o", "json"))[0]["state"] == "RUN_STATE_SUCCEEDED"


def test_logs_follow_a_running_task(suite: Suite, gate: Path) -> None:
    task = submit(suite, "followed", "--", *until_open(gate))
    process = suite.start_cli("logs", "-F", task)
    assert process.stdout is not None
    assert process.stdout.readline() == "before\n"
    gate.touch()
    assert process.stdout.readline() == "after\n"
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_watch_shows_a_task_through_its_life(suite: Suite, gate: Path) -> None:
    task = submit(suite, "watched", "--", *until_open(gate))
    process = suite.start_cli("watch", task)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "RUNNING" in line:
            gate.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert {line.split()[1] for line in lines} == {task}
    assert lines[-1].split()[2] == "SUCCEEDED"


def test_watch_of_everything_sees_new_tasks(suite: Suite) -> None:
    process = suite.start_cli("watch", "-o", "json", "--snapshot")
    task = submit(suite, "appearing", "--", "true")
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        event = json.loads(line)
        if event["task"]["name"].endswith(task):
            seen.append((event["resourceVersion"], event["status"]["phase"]))
            if seen[-1][1] == "TASK_PHASE_SUCCEEDED":
                break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    versions = [int(version) for version, _ in seen]
    assert versions == sorted(set(versions))


def test_list_filters_by_phase_and_label(suite: Suite) -> None:
    mark = new_id("m")
    good = submit(suite, "good", "--label", f"mark={mark}", "--", "true")
    bad = submit(suite, "bad", "--label", f"mark={mark}", "--retries", "0", "--", "false")
    assert suite.cli("wait", good, bad).code == 1
    mine = f'metadata.labels.mark = "{mark}"'
    assert set(suite.done("list", "--filter", mine, "-o", "name").split()) == {good, bad}
    assert suite.done("list", "--filter", mine, "--phase", "succeeded", "-o", "name") == f"{good}\n"
    assert suite.done("list", "--filter", mine, "--phase", "live", "-o", "name") == ""
    head, *rows = suite.done("list", "--filter", mine).splitlines()
    assert {row.split()[0] for row in rows} == {good, bad}
    assert head.index("PHASE") == rows[0].index(rows[0].split()[1])
    names = [task["name"] for task in json.loads(suite.done("list", "--filter", mine, "-o", "json"))]
    assert len(names) == 2


def test_an_invalid_filter_is_reported(suite: Suite) -> None:
    ended = suite.cli("list", "--filter", "colour = red")
    assert ended.code == 1
    assert "colour" in ended.err and ended.err.count("\n") == 1


def test_retries_are_made_and_counted(suite: Suite) -> None:
    flaky = 'echo "attempt $TASKYARD_ATTEMPT"; [ "$TASKYARD_ATTEMPT" -ge 2 ]'
    ended = suite.cli("run", "--retries", "2", "--", "sh", "-c", flaky)
    assert (ended.code, ended.out) == (0, "attempt 1\nattempt 2\n")


def test_cancel_stops_a_running_task(suite: Suite) -> None:
    task = submit(suite, "cancelled", "--", "sleep", "1000")
    watch_until(suite, task, "RUNNING")
    assert suite.done("cancel", "--reason", "test", task).startswith(f"{task}  ")
    ended = suite.cli("wait", "--timeout", "40s", task)
    assert ended.code == 1
    assert ended.out.startswith(f"{task}  CANCELLED")
    assert suite.cli("cancel", task).code == 0


def test_pause_and_resume(suite: Suite, gate: Path) -> None:
    task = submit(suite, "paused", "--", *until_open(gate))
    watch_until(suite, task, "RUNNING")
    assert "pause requested" in suite.done("pause", "--grace", "1s", task)
    watch_until(suite, task, "PAUSED")
    assert suite.done("resume", task).startswith(f"{task}  ")
    gate.touch()
    assert suite.done("wait", task) == f"{task}  SUCCEEDED\n"


def test_retry_starts_an_ended_task_again(suite: Suite) -> None:
    task = submit(suite, "again", "--retries", "0", "--", "sh", "-c", '[ "$TASKYARD_ATTEMPT" -ge 2 ]')
    assert suite.cli("wait", task).code == 1
    suite.done("retry", task)
    assert suite.done("wait", task) == f"{task}  SUCCEEDED\n"


def test_delete_removes_an_ended_task_only(suite: Suite) -> None:
    task = submit(suite, "deleted", "--", "sleep", "1000")
    live = suite.cli("delete", task)
    assert live.code == 1 and live.err.count("\n") == 1
    suite.done("cancel", "--grace", "0s", task)
    suite.cli("wait", "--timeout", "40s", task)
    assert suite.done("delete", task) == f"{task}  deleted\n"
    assert suite.cli("get", task).code == 5
    assert suite.cli("delete", task).code == 5
    assert suite.cli("delete", "--missing-ok", task).code == 0


def test_wait_times_out(suite: Suite) -> None:
    task = submit(suite, "slow", "--", "sleep", "1000")
    ended = suite.cli("wait", "--timeout", "500ms", task)
    assert ended.code == 124 and task in ended.err
    suite.done("cancel", "--grace", "0s", task)


def test_the_same_request_id_makes_one_task(suite: Suite) -> None:
    request = uuid.uuid4().hex
    first = suite.done("submit", "--request-id", request, "--", "true")
    again = suite.cli("submit", "--request-id", request, "--", "true")
    assert (again.code, again.out) == (0, first)
    assert "sent before" in again.err


def test_status_lists_the_services(suite: Suite) -> None:
    shown = suite.done("status")
    assert [line.split()[0] for line in shown.splitlines()[1:3]] == ["taskdb", "scheduler"]
    assert shown.count("serving") == 2
    assert "The key is accepted" in shown


@pytest.mark.parametrize(
    "command", ["get", "logs", "wait", "watch", "cancel", "pause", "resume", "retry", "runs"]
)
def test_an_unknown_task_is_a_one_line_error(suite: Suite, command: str) -> None:
    ended = suite.cli(command, "no-such-task")
    assert ended.code == 5
    assert ended.err.startswith('taskyard: no task "no-such-task"') and ended.err.count("\n") == 1


def test_a_wrong_key_is_a_one_line_error(suite: Suite) -> None:
    for command in (["list"], ["watch"], ["run", "--", "true"], ["status"]):
        ended = suite.cli("--key", "ty_wrong_0123456789abcdef", *command)
        assert ended.code == 4, command
        assert "TASKYARD_KEY" in ended.err


def test_another_tenant_is_not_visible(suite: Suite) -> None:
    ended = suite.cli("--tenant", "somebody-else", "list")
    assert ended.code in (4, 5)
    assert ended.err.count("\n") == 1


def test_the_shell_completes_commands(suite: Suite) -> None:
    made = suite.done("completion", "bash")
    assert "_TASKYARD_COMPLETE" in made
    asked = {"_TASKYARD_COMPLETE": "bash_complete", "COMP_WORDS": "taskyard ca", "COMP_CWORD": "1"}
    assert suite.cli(**asked).out == "plain,cancel\n"
    assert suite.cli("completion", "no-such-shell").code == 2


def test_without_a_command_help_is_printed(suite: Suite) -> None:
    ended = suite.cli()
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith("Usage: taskyard") and "taskyard:" not in ended.err


def test_run_says_why_a_task_waits_also_without_a_terminal(suite: Suite) -> None:
    task = new_id("nowhere")
    process = suite.start_cli("run", "--id", task, "--runner-label", "no=where", "--", "true")
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith(f"taskyard: {task} is waiting; to see why: `taskyard explain {task}` ("), line
    assert "no=where" in line or "runner" in line
    suite.done("cancel", task)
    assert process.wait(timeout=60) != 0
