"""What follows a task outlives the services: nothing is missing or twice when one is killed in between."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.suite import Suite, running_suite, until_open

LINES = 60
# Of the 30 s that a call waits by default; the rest is for a busy machine to start taskdb.
AWAY_SECONDS = float(os.environ.get("TASKYARD_TEST_OUTAGE", "10"))


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """A suite of its own, because its services are killed."""
    with running_suite() as suite:
        yield suite


@pytest.fixture
def gate() -> Iterator[Path]:
    """A file that does not exist yet; the task continues once it does.

    The task has a user of its own where the suite is root's, which pytest's private folders keep out.
    """
    with tempfile.TemporaryDirectory(prefix="taskyard-gate-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "open"


def counting(gate: Path) -> tuple[str, ...]:
    """A command that writes half of its lines, waits for the gate, and writes the rest."""
    half = LINES // 2
    waiting = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    return ("sh", "-c", f"seq {half}; {waiting}; seq {half + 1} {LINES}")


def read_lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


@pytest.mark.parametrize("service", ["taskdb", "scheduler"])
def test_followed_logs_are_complete(suite: Suite, gate: Path, service: str) -> None:
    task = f"logged-{service}"
    suite.done("submit", "--id", task, "--", *counting(gate))
    process = suite.start_cli("logs", "-F", task)
    lines = read_lines(process, LINES // 2)
    suite.kill_service(service)
    gate.touch()
    out, err = process.communicate(timeout=90)
    lines += out.splitlines(keepends=True)
    assert lines == [f"{n}\n" for n in range(1, LINES + 1)], err + suite.logs()
    assert process.returncode == 0


@pytest.mark.parametrize("service", ["taskdb", "scheduler"])
def test_a_watch_sees_every_version_once(suite: Suite, gate: Path, service: str) -> None:
    task = f"watched-{service}"
    suite.done("submit", "--id", task, "--", *counting(gate))
    process = suite.start_cli("watch", "-o", "json", task)
    events: list[dict[str, Any]] = []
    while not events or events[-1]["status"]["phase"] != "TASK_PHASE_RUNNING":
        events.append(json.loads(read_lines(process, 1)[0]))
    suite.kill_service(service)
    gate.touch()
    out, err = process.communicate(timeout=90)
    events += [json.loads(line) for line in out.splitlines()]
    versions = [int(event["resourceVersion"]) for event in events]
    assert versions == list(range(versions[0], versions[-1] + 1)), err + suite.logs()
    assert events[-1]["status"]["phase"] == "TASK_PHASE_SUCCEEDED"
    assert process.returncode == 0


def test_run_and_wait_survive_a_restart(suite: Suite, gate: Path) -> None:
    running = suite.start_cli("run", "--id", "attended", "--", *counting(gate))
    read_lines(running, LINES // 2)
    waiting = suite.start_cli("wait", "attended")
    suite.kill_service("taskdb")
    gate.touch()
    out, err = running.communicate(timeout=90)
    assert (running.returncode, len(out.splitlines())) == (0, LINES // 2), err + suite.logs()
    assert waiting.communicate(timeout=90)[0] == "attended  SUCCEEDED\n"


def test_a_run_goes_on_by_itself_after_taskdb_was_away(suite: Suite, gate: Path) -> None:
    waiting = suite.start_cli("run", "--", *until_open(gate))
    assert read_lines(waiting, 1) == ["before\n"]
    # While `up` is stopped, nobody starts taskdb again.
    suite.process.send_signal(signal.SIGSTOP)
    try:
        suite.kill_service("taskdb")
        begun = suite.start_cli("run", "--", "echo", "created meanwhile")
        time.sleep(AWAY_SECONDS)
        assert (waiting.poll(), begun.poll()) == (None, None)
    finally:
        suite.process.send_signal(signal.SIGCONT)
    gate.touch()
    out, err = begun.communicate(timeout=90)
    assert (begun.returncode, out) == (0, "created meanwhile\n"), err + suite.logs()
    assert "trying again for up to 30 s" in err
    out, err = waiting.communicate(timeout=90)
    assert (waiting.returncode, out) == (0, "after\n"), err + suite.logs()
