"""`taskyard up` from the command line: detached, found again, stopped; its errors are one line."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, Ended, client_environment, running_suite
from tests.harness.leash import tied

PORTS = ("--taskdb-port", "0", "--scheduler-port", "0", "--gateway-port", "0")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="taskyard-up-", ignore_cleanup_errors=True) as path:
        yield Path(path)
        # Whatever a failed test has left running.
        taskyard(Path(path), "down")


def taskyard(folder: Path, *arguments: str) -> Ended:
    ended = subprocess.run(
        [BIN / "taskyard", *arguments],
        cwd=folder,
        env=client_environment(),
        capture_output=True,
        text=True,
        timeout=90,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def held_while_starting(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A `taskyard up` that has its data directory and is stopped there by SIGSTOP."""
    up = subprocess.Popen(
        tied(BIN / "taskyard", "up", "--no-runner", "--data-dir", ".taskyard", *PORTS),
        cwd=folder,
        env=client_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert up.stdout is not None
    try:
        assert up.stdout.readline().startswith("Starting Taskyard")
        up.send_signal(signal.SIGSTOP)
        yield up
    finally:
        up.send_signal(signal.SIGCONT)
        up.terminate()
        up.communicate(timeout=60)


def assert_commands_wait_for(up: subprocess.Popen[str], folder: Path, created: str) -> None:
    """A command without patience names the start of `up`, any other waits for it."""
    refused = taskyard(folder, "--patience", "0", "list")
    assert refused.code == 3 and f"`taskyard up` (process {up.pid}) is starting in " in refused.err
    assert "start one" not in refused.err

    submit = subprocess.Popen(
        [BIN / "taskyard", "--patience", "80", "submit", "--id", created, "--", "true"],
        cwd=folder,
        env=client_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert submit.stderr is not None
    assert "is starting in " in submit.stderr.readline()
    up.send_signal(signal.SIGCONT)
    out, err = submit.communicate(timeout=90)
    assert (submit.returncode, out, err) == (0, f"{created}\n", "")


@pytest.mark.timeout(240)
def test_a_command_waits_for_an_up_that_is_starting(folder: Path) -> None:
    with held_while_starting(folder) as up:
        assert_commands_wait_for(up, folder, "first")
    # The context file of the last run is still there, with ports of that run.
    with held_while_starting(folder) as up:
        assert_commands_wait_for(up, folder, "second")


def test_detached_up_serves_until_down(folder: Path) -> None:
    up = taskyard(folder, "up", "--detach", "--no-runner", "--data-dir", ".taskyard", *PORTS)
    assert up.code == 0, up.out
    assert "Ready" in up.out
    assert taskyard(folder, "submit", "--id", "kept", "--", "true").out == "kept\n"

    again = taskyard(folder, "up", "--data-dir", ".taskyard", *PORTS)
    assert again.code == 1 and "another taskyard up" in again.err

    down = taskyard(folder, "down")
    assert down.code == 0 and "kept" in down.out
    status = taskyard(folder, "status")
    assert status.code == 3 and status.out.count("not reachable") == 2
    gone = taskyard(folder, "--patience", "0", "get", "kept")
    assert gone.code == 3 and "start one with `make up`" in gone.err

    assert taskyard(folder, "up", "--detach", "--no-runner", "--data-dir", ".taskyard", *PORTS).code == 0
    assert taskyard(folder, "get", "kept", "-o", "name").out == "kept\n"
    assert taskyard(folder, "down").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")
def test_below_a_private_home_tasks_of_root_are_not_root_and_read_no_key(folder: Path) -> None:
    folder.chmod(0o700)
    ports = ("--taskdb-port", "0", "--scheduler-port", "0")
    up = taskyard(folder, "up", "--detach", "--data-dir", ".taskyard", *ports)
    assert up.code == 0 and "Ready" in up.out, up.out
    assert int(taskyard(folder, "run", "--", "id", "-u").out) > 60_000
    assert taskyard(folder, "run", "--", "cat", f"{folder}/.taskyard/keys.toml").code != 0
    assert taskyard(folder, "down").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "192.0.2.1"], "--host 192.0.2.1"),
        (["--database-url", "postgresql://nobody@127.0.0.1:1/x"], "127.0.0.1"),
        (["--taskdb-port", "70000"], "70000"),
        (["--metrcs"], "--metrics"),
    ],
)
def test_errors_of_up_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    ended = taskyard(folder, "up", "--data-dir", "data", *arguments)
    assert ended.code in (1, 2)
    assert message in ended.err and ended.err.count("\n") == 1
    assert "Traceback" not in ended.out + ended.err


def test_down_without_up_is_reported(folder: Path) -> None:
    ended = taskyard(folder, "down", "--data-dir", "data")
    assert ended.code == 5 and ended.err.count("\n") == 1


@pytest.mark.timeout(120)
def test_a_stop_names_the_task_that_it_waits_for_and_a_second_ctrl_c_ends_it() -> None:
    with running_suite() as suite:
        suite.done("submit", "--id", "long", "--", "sleep", "600")
        suite.done("wait", "--for", "phase=running", "long")
        suite.process.send_signal(signal.SIGINT)
        words = "runner waits for task long to end, 10 s at most; Ctrl-C once more ends it now"
        deadline = time.monotonic() + 30
        while words not in suite.output():
            assert time.monotonic() < deadline and suite.process.poll() is None, suite.output()
            time.sleep(0.05)
        began = time.monotonic()
        suite.process.send_signal(signal.SIGINT)
        assert suite.process.wait(60) == 0
        assert time.monotonic() - began < 8, "the task was ended, not awaited"
        assert "Stopped." in suite.output()
