"""`make ha` collects these tests and prints what they measured; `make test` does not: they take minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.ha.figures import Figures
from tests.ha.patroni import missing_program

collect_ignore_glob = [] if os.environ.get("TASKYARD_HA") else ["test_*.py"]


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """What the tests measure; printed as a table at the end."""
    if missing := missing_program():
        pytest.skip(missing)
    made = Figures()
    yield made
    print(made.table())
