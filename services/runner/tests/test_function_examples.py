"""The example of a function worker passes its own tests, as its users run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "function_worker"


def test_the_example_passes_its_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE), "."]
    ended = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "7 passed" in ended.stdout
