"""CI's second chance: who gets one, what is printed, and the exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "ci_tests.py"
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert False\n"
# Fails unless it has run before.
ONCE = """
from pathlib import Path
def test_late():
    ran = Path(__file__).with_suffix(".ran")
    before = ran.exists()
    ran.touch()
    assert before
"""
SKIPPED_LATER = ONCE.replace("assert before", "assert before and pytest.skip()").replace(
    "from", "import pytest\nfrom"
)


def run(folder: Path, *files: str) -> tuple[int, str, str]:
    """The tool over a folder with these test files: exit code, output, and the list of flaky tests."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    flaky = folder / "flaky"
    ended = subprocess.run(
        [sys.executable, TOOL],
        cwd=folder,
        # Without the plugins pytest starts in a third of the time.
        env={**os.environ, "TASKYARD_CI_FLAKY": str(flaky), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout, flaky.read_text() if flaky.exists() else ""


def test_green_tests_run_once(tmp_path: Path) -> None:
    code, out, flaky = run(tmp_path, PASSES)
    assert (code, flaky) == (0, "")
    assert "1 passed" in out and "once more" not in out


def test_a_test_that_passes_alone_is_named_and_ci_goes_on(tmp_path: Path) -> None:
    code, out, flaky = run(tmp_path, PASSES, ONCE)
    assert code == 0
    assert "1 failed, 1 passed" in out
    assert flaky == "FLAKY test_1.py::test_late: failed in the run, passed alone\n"
    assert flaky in out


def test_a_test_that_fails_twice_fails_ci_beside_one_that_passes_alone(tmp_path: Path) -> None:
    code, out, flaky = run(tmp_path, FAILS, ONCE)
    assert code == 1
    assert "FAILED test_0.py::test_fails: in the run and alone\n" in out
    assert flaky == "FLAKY test_1.py::test_late: failed in the run, passed alone\n"


def test_a_test_that_is_skipped_alone_has_not_passed(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, SKIPPED_LATER)
    assert code == 1
    assert "FAILED test_0.py::test_late: in the run and alone\n" in out


def test_more_failures_than_three_have_no_second_chance(tmp_path: Path) -> None:
    code, out, flaky = run(tmp_path, *[ONCE] * 4)
    assert (code, flaky) == (1, "")
    assert "4 failed" in out and "once more" not in out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "raise SystemError",
        "import os\ndef test_ends(): os._exit(0)\n",
        "def test_stops(): raise KeyboardInterrupt",
    ],
    ids=["no test", "not importable", "crashed", "interrupted"],
)
def test_a_run_without_results_fails(tmp_path: Path, text: str) -> None:
    code, _, flaky = run(tmp_path, text)
    assert (code, flaky) == (1, "")
