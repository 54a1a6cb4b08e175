"""Fixtures of the standalone tests: directories, running `up` processes, and who runs them."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.standalone.tests.running import ORDINARY, UpFactory, python_for
from services.standalone.tests.server import copy_tree, run, running


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory that every user can reach, which those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="taskyard-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a cluster, to be copied."""
    path = tmp_path_factory.mktemp("made") / "data"

    async def make() -> None:
        async with running(path):
            pass

    loop = asyncio.new_event_loop()
    loop.run_until_complete(make())
    loop.close()
    return path


@pytest.fixture
def up(tmp_path: Path, made: Path) -> Iterator[UpFactory]:
    """Starts `up` processes as this user, in a private directory."""
    copy_tree(made, tmp_path / "data")
    factory = UpFactory(tmp_path, None, sys.executable)
    yield factory
    factory.close()


@pytest.fixture(params=["as this user", "as an ordinary user"])
def up_as(
    request: pytest.FixtureRequest, tmp_path: Path, made: Path, public_directory: Path
) -> Iterator[UpFactory]:
    """Like `up`, for root and for an ordinary user."""
    if request.param == "as this user":
        factory = UpFactory(tmp_path, None, sys.executable)
        copy_tree(made, factory.data)
    else:
        if os.geteuid() != 0:
            pytest.skip("the first parameter is an ordinary user already")
        factory = UpFactory(public_directory, ORDINARY, python_for(ORDINARY))
        copy_tree(made, factory.data)
        run("chown", "-R", f"{ORDINARY.uid}:{ORDINARY.gid}", str(public_directory))
    yield factory
    factory.close()
