"""Fixtures of the standalone tests: directories, running `up` processes, and who runs them."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.standalone.tests.running import ORDINARY, UpFactory, python_for


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory that every user can reach, which those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="taskyard-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[UpFactory]:
    """Starts `up` processes as this user, in a private directory."""
    factory = UpFactory(tmp_path, None, sys.executable)
    yield factory
    factory.close()


@pytest.fixture(params=["as this user", "as an ordinary user"])
def up_as(request: pytest.FixtureRequest, tmp_path: Path, public_directory: Path) -> Iterator[UpFactory]:
    """Like `up`, for root and for an ordinary user."""
    if request.param == "as this user":
        factory = UpFactory(tmp_path, None, sys.executable)
    else:
        if os.geteuid() != 0:
            pytest.skip("the first parameter is an ordinary user already")
        os.chown(public_directory, ORDINARY.uid, ORDINARY.gid)
        factory = UpFactory(public_directory, ORDINARY, python_for(ORDINARY))
    yield factory
    factory.close()
