"""A Taskyard for each file of pages and examples."""

from collections.abc import Iterator

import pytest

from tests.acceptance.suite import Suite, running_suite


# One for each file: pages show all runners and tasks that there are, examples leave some behind.
@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """A real Taskyard on free ports, with its data in a temporary directory."""
    with running_suite() as suite:
        yield suite
