"""The ledger of requirements: every line has an entry, every mark a line, and the page is not stale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = """\
[S0]
title = "a system"

[S0.lines]
1 = "tasks have an id"
2 = "tasks have a colour"
3 = "tasks sing"

[S0.deviations]
2 = { decision = "0001", instead = "use a label" }

[S0.absent]
3 = "nobody listens"
"""
TEST = """\
import pytest


@pytest.mark.seed("S0.1")
def test_ids() -> None: ...
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small ledger that is in order."""
    (tmp_path / "docs/decisions").mkdir(parents=True)
    (tmp_path / "docs/decisions/0001-lock-file.md").write_text("# 0001")
    (tmp_path / "docs/requirements.toml").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(TEST)
    assert run(tmp_path).returncode == 0
    return tmp_path


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/requirements.py", "--root", str(root), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_page_names_tests_decisions_and_reasons(checkout: Path) -> None:
    assert run(checkout, "--check").returncode == 0
    page = (checkout / "docs/requirements.md").read_text()
    assert "| S0.1 | tasks have an id | `test_ids` in `tests/test_it.py` |" in page
    assert "*deviation*, decision 0001: use a label" in page and "*absent*: nobody listens" in page
    printed = run(checkout, "--print").stdout
    assert printed.splitlines()[1].split()[-4:] == ["3", "1", "1", "1"]
    assert "S0.3 tasks sing\n  absent: nobody listens" in printed


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("tests/test_it.py", '@pytest.mark.seed("S0.1")\n', "", "S0.1 has no entry"),
        ("tests/test_it.py", '"S0.1"', '"S0.1", "S0.9"', "is marked with S0.9, which is no line"),
        ("tests/test_it.py", '"S0.1"', '"S0.1-4"', "is marked with S0.4, which is no line"),
        ("tests/test_it.py", "test_ids", "ids", "which is not a test"),
        ("tests/test_it.py", "test_ids", "test_identities", "differs from docs/requirements.toml"),
        ("docs/requirements.toml", '"0001"', '"0002"', "'0002', which is no decision"),
        ("docs/requirements.toml", ', instead = "use a label"', "", "lacks `instead`"),
        ("docs/requirements.toml", '3 = "nobody', '4 = "nobody', "explains S0.4, which is not one of"),
        ("docs/requirements.toml", "a colour", "a colour and a shape", "differs from"),
        ("docs/requirements.md", "tasks sing", "tasks dance", "differs from"),
    ],
)
def test_each_damage_is_found(checkout: Path, file: str, old: str, new: str, problem: str) -> None:
    text = (checkout / file).read_text()
    assert old in text
    (checkout / file).write_text(text.replace(old, new))
    damaged = run(checkout, "--check")
    assert damaged.returncode == 1 and problem in damaged.stdout, damaged.stdout


def test_the_ledger_of_the_project_is_in_order() -> None:
    checked = run(ROOT, "--check")
    assert checked.returncode == 0, checked.stdout
