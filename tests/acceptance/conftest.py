"""One running suite for the acceptance tests of a worker."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.suite import Suite, running_suite


# It ends with the folder: the services of an idle suite go on taking CPU.
@pytest.fixture(scope="package")
def suite() -> Iterator[Suite]:
    """A real Taskyard on free ports, with its data in a temporary directory."""
    with running_suite() as suite:
        yield suite


@pytest.fixture
def gate() -> Iterator[Path]:
    """A file that is not there yet, in a folder that any user can reach."""
    with tempfile.TemporaryDirectory(prefix="taskyard-gate-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "open"
