"""The runner's systemd unit: systemd accepts it, and it fits what the runner does."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from taskyard_runner.settings import RunnerSettings
from taskyard_runner.warden.main import SHUTDOWN_MARGIN

UNIT = Path(__file__).parents[2] / "services/runner/systemd/taskyard-runner.service"
PROGRAM = "/opt/taskyard/bin/taskyard-runner"


@pytest.fixture
def service() -> dict[str, str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return dict(parser["Service"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    installed = tmp_path / UNIT.name
    # Where the program is installed nothing is on this host.
    installed.write_text(UNIT.read_text().replace(PROGRAM, sys.executable))
    checked = subprocess.run(["systemd-analyze", "verify", installed], capture_output=True, text=True)
    complaints = [line for line in checked.stderr.splitlines() if UNIT.name in line]
    assert (checked.returncode, complaints) == (0, []), checked.stderr


def test_the_runner_of_the_unit_is_nobody_special_and_may_enclose_its_tasks(service: dict[str, str]) -> None:
    assert service["User"] == "taskyard"
    # What forbids namespaces would leave nothing between the tasks and the runner's key.
    assert not {"RestrictNamespaces", "SystemCallFilter", "PrivateUsers"} & service.keys()
    assert not any("SANDBOX" in value.upper() for value in service.values())


def test_a_stop_leaves_time_for_the_drain(service: dict[str, str]) -> None:
    drain: timedelta = RunnerSettings.__dataclass_fields__["drain_timeout"].default
    assert int(service["TimeoutStopSec"]) > drain.total_seconds() + SHUTDOWN_MARGIN


def test_the_unit_leaves_signals_and_groups_to_the_warden(service: dict[str, str]) -> None:
    assert (service["KillMode"], service["Delegate"], service["ExecStart"]) == ("mixed", "yes", PROGRAM)
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
