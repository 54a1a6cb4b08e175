"""Runs pytest as CI does: of a few failed tests, each runs once more, alone, and both results are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

# More failures than these are no accident of a busy machine.
RETRIED_AT_MOST = 3
TESTS_FAILED = 1
FLAKY_FILE = "TASKYARD_CI_FLAKY"


def main(arguments: list[str]) -> int:
    """0 if every test passed in the run or alone; 1 otherwise, also if pytest ended early or ran no test."""
    with tempfile.TemporaryDirectory(prefix="taskyard-ci-") as name:
        folder = Path(name)
        report = folder / "run.xml"
        code = _pytest(folder / "cache", f"--junitxml={report}", *arguments)
        # pytest writes it at its end.
        if code == 0 and report.exists():
            return 0
        failed = _failed(folder / "cache")
        if code != TESTS_FAILED or not 0 < len(failed) <= RETRIED_AT_MOST:
            return 1
        print(f"== failed tests, once more, each alone: {len(failed)}", flush=True)
        outcomes = {test: _passes_alone(test, folder) for test in failed}
    lines = [
        f"FLAKY {test}: failed in the run, passed alone" if passed else f"FAILED {test}: in the run and alone"
        for test, passed in outcomes.items()
    ]
    print(*lines, sep="\n", flush=True)
    if path := os.environ.get(FLAKY_FILE):
        Path(path).write_text("".join(f"{line}\n" for line in lines if line.startswith("FLAKY")))
    return 0 if all(outcomes.values()) else 1


def _pytest(cache: Path, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]).returncode


def _failed(cache: Path) -> list[str]:
    """What pytest noted for its --last-failed; nothing if all passed or pytest did not get to its end."""
    noted = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(noted.read_text())) if noted.exists() else []


def _passes_alone(test: str, folder: Path) -> bool:
    """A test that is skipped now has not passed."""
    report = folder / "alone.xml"
    if _pytest(folder / "alone", "-q", f"--junitxml={report}", test) != 0:
        return False
    return all(suite.get("skipped") == "0" for suite in ET.parse(report).iter("testsuite"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
