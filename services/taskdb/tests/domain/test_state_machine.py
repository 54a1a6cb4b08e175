"""docs/state_machine.md agrees with the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from taskyard_taskdb.domain.lifecycle import TABLE

ROOT = Path(__file__).parents[4]
TOOL = ROOT / "tools/state_machine.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True)


def test_the_page_is_up_to_date_and_names_every_row() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs/state_machine.md").read_text()
    assert [row.name for row in TABLE if f"| {row.name} |" not in page] == []


def test_a_stale_page_is_found_with_its_remedy(tmp_path: Path) -> None:
    assert run("--root", str(tmp_path)).returncode == 0
    (tmp_path / "docs/state_machine.md").write_text("something else")
    stale = run("--root", str(tmp_path), "--check")
    assert stale.returncode == 1
    assert "make generate" in stale.stderr


def test_row_names_are_unique() -> None:
    names = [row.name for row in TABLE]
    assert len(set(names)) == len(names)
