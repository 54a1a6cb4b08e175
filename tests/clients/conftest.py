"""One Taskyard for the clients in other languages."""

from collections.abc import Iterator

import pytest

from tests.acceptance.suite import Suite, running_suite


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """A real Taskyard on free ports, with its data in a temporary directory."""
    with running_suite() as suite:
        yield suite


@pytest.fixture(scope="module")
def runner_key(suite: Suite) -> str:
    """A key for any worker."""
    return suite.done("keys", "create", "--kind", "runner").split()[-1]
