"""A long log: followed live and listed by pages without loss, while no process keeps it in memory."""

from tests.acceptance.suite import Suite
from tests.chaos import long_log


def test_a_long_log_is_followed_and_listed_without_loss_in_bounded_memory(suite: Suite) -> None:
    growth = long_log.check(suite, 30_000)
    assert growth and max(growth.values()) < long_log.GROWTH_BYTES, growth
