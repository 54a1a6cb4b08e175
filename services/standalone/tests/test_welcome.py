"""The command that `up` suggests finds this Taskyard from where the user is."""

import sys
from pathlib import Path

import pytest

from taskyard_standalone.settings import UpSettings, default_data_dir
from taskyard_standalone.welcome import welcome


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installation that is not on the PATH."""
    folder = tmp_path / "checkout" / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "taskyard").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nonexistent")
    return folder


def suggestion(data_dir: Path, here: Path) -> str:
    return welcome(UpSettings(), data_dir, here).splitlines()[1].strip()


def test_the_program_is_named_by_a_path_that_can_be_executed(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    assert suggestion(checkout / ".taskyard", checkout) == ".venv/bin/taskyard run -- echo hello"
    assert (
        suggestion(default_data_dir().expanduser(), tmp_path / "x")
        == f"{installed}/taskyard run -- echo hello"
    )
    monkeypatch.setenv("PATH", str(installed))
    assert suggestion(checkout / ".taskyard", checkout / "src") == "taskyard run -- echo hello"


def test_the_context_of_another_data_directory_is_shown(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed))
    assert suggestion(tmp_path / "a b/.taskyard", tmp_path / "c") == (
        f"cd '{tmp_path}/a b' && taskyard run -- echo hello"
    )
    assert suggestion(tmp_path / "data", tmp_path) == (
        f"ln -s {tmp_path}/data .taskyard && taskyard run -- echo hello"
    )


def test_without_a_runner_no_task_output_is_suggested(tmp_path: Path) -> None:
    assert "no runner on this machine" in welcome(UpSettings(runner=False), tmp_path, tmp_path)
