"""One Taskyard for all pages and examples."""

from collections.abc import Iterator

import pytest

from tests.acceptance.suite import Suite, running_suite


# It ends with the folder: the services of an idle suite go on taking CPU.
@pytest.fixture(scope="package")
def suite() -> Iterator[Suite]:
    """A real Taskyard on free ports, with its data in a temporary directory."""
    with running_suite() as suite:
        yield suite
