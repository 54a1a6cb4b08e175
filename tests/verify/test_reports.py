"""What a test run reports: skips for unnamed reasons fail, and the executors' table is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.harness.allowed_skips import LIST, allowed_reasons, is_allowed
from tests.harness.executor_table import outcomes, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("reason", "status"),
    [("no control groups: not mounted", 0), ("it is flaky", 1)],
    ids=["named", "unnamed"],
)
@pytest.mark.parametrize(
    "way", ["def test_it(): pytest.skip({!r})", "pytest.skip({!r}, allow_module_level=True)"]
)
def test_a_skip_fails_unless_its_reason_is_in_the_list(
    tmp_path: Path, way: str, reason: str, status: int
) -> None:
    (tmp_path / "test_it.py").write_text(f"import pytest\n{way.format(reason)}\n")
    options = ["-q", "-p", "tests.harness.allowed_skips", "-p", "no:cacheprovider", "-c", "/dev/null"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    # A module that is skipped whole leaves no test: 5; one that fails to be collected is an interruption: 2.
    assert ran.returncode in ((0, 5) if status == 0 else (1, 2)), ran.stdout
    assert ("does not name" in ran.stdout) == bool(status)


def test_every_line_of_the_list_is_a_reason_that_some_test_can_give() -> None:
    allowed = allowed_reasons(LIST.read_text())
    assert allowed
    assert not is_allowed("", allowed)
    assert is_allowed("no control groups: cgroup v2: not mounted", allowed)


def test_the_table_shows_every_case_of_every_kind() -> None:
    node = "tests/executors/test_{}.py::TestIt::test_{}"
    stats = {
        "passed": [SimpleNamespace(nodeid=node.format("command", "success"))],
        "failed": [SimpleNamespace(nodeid=node.format("wasm", "cancel"))],
        "skipped": [SimpleNamespace(nodeid=node.format("container", "limits"))],
    }
    rows = {line.split()[0]: line.split()[1:] for line in table(outcomes(stats))[1:]}
    assert rows["success"] == ["yes", "-", "-"]
    assert rows["limits"] == ["-", "skipped", "-"]
    assert rows["cancel"] == ["-", "-", "FAILED"]
    assert len(rows) == 12


def test_without_executors_there_is_no_table() -> None:
    assert table(outcomes({"passed": [SimpleNamespace(nodeid="tests/verify/test_it.py::test_logs")]})) == []
