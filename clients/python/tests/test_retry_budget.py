"""The budget of repeated calls: small while calls fail, none needed once they succeed again."""

from __future__ import annotations

from random import Random

import pytest

from taskyard.retry_budget import PROBE_SECONDS, RetryBudget


@pytest.mark.parametrize("failing", [0.2, 0.5, 0.8, 1.0])
def test_retries_add_at_most_a_fifth_while_a_part_of_the_calls_fails(failing: float) -> None:
    rng, budget = Random(1), RetryBudget()
    offered, retries, waiting = 2000, 0, 0
    for step in range(offered):
        now = step / 100
        if rng.random() < failing:
            budget.failed()
            waiting += 1
        else:
            budget.succeeded(retry=False)
        # Every call that waits asks, as those do whose timers fire at this moment.
        for _ in range(min(waiting, 5)):
            if budget.take(now):
                retries += 1
                if rng.random() < failing:
                    budget.failed()
                else:
                    budget.succeeded(retry=True)
                    waiting -= 1
    assert retries <= 0.2 * offered


def test_one_retry_per_interval_looks_for_the_end_of_an_outage() -> None:
    budget = RetryBudget()
    while budget.take(0.0):
        budget.failed()
    assert not budget.take(PROBE_SECONDS * 0.9)
    assert budget.take(PROBE_SECONDS)
    assert not budget.take(PROBE_SECONDS)


def test_after_an_outage_each_success_lets_the_next_call_through() -> None:
    budget = RetryBudget()
    while budget.take(0.0):
        budget.failed()
    assert budget.take(1.0)
    for _ in range(1000):
        budget.succeeded(retry=True)
        assert budget.take(1.0)
