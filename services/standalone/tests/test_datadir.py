"""A data directory is ours, private, locked, and never the folder of another program."""

import os
from pathlib import Path

import pytest

from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import DataDirectoryError


def test_a_new_directory_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "new" / "data") as data:
        # Tasks of root's runner are other users and pass through, which is all they may.
        assert data.path.stat().st_mode & 0o777 == (0o711 if os.geteuid() == 0 else 0o700)
        others = [entry for entry in data.path.iterdir() if entry.stat().st_mode & 0o004]
        assert {entry.name for entry in others} <= {".gitignore", "taskyard-data"}
        assert (data.path / ".gitignore").read_text() == "*\n"
    with DataDirectory(data.path):
        pass


def test_a_directory_with_a_context_written_by_hand_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "context.toml").write_text("")
    with DataDirectory(tmp_path):
        pass


def test_a_foreign_directory_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataDirectoryError, match=r"'thesis\.txt' and is not a Taskyard data directory"):
        DataDirectory(tmp_path).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryError, match="is not a directory"):
        DataDirectory(tmp_path / "file").__enter__()


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        (data.path / "taskyard-data").write_text("2\n")
    with pytest.raises(DataDirectoryError, match="layout version '2'"):
        DataDirectory(tmp_path).__enter__()


def test_the_lock_names_its_holder_and_is_released(tmp_path: Path) -> None:
    with (
        DataDirectory(tmp_path),
        pytest.raises(DataDirectoryError, match=rf"up \(pid {os.getpid()}\) is using"),
    ):
        DataDirectory(tmp_path).__enter__()
    with DataDirectory(tmp_path):
        pass


def test_a_directory_without_permission_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match=r"cannot use the data directory /proc/x: .*--data-dir"):
        DataDirectory(Path("/proc/x")).__enter__()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        data.write_private(data.context, "old")
        with pytest.raises(UnicodeEncodeError):
            data.write_private(data.context, "\ud800")
        assert data.context.read_text() == "old"
        assert not list(tmp_path.glob(".context*"))
