"""Tiers, and a tenant's own numbers."""

from __future__ import annotations

import pytest

from taskyard.errors import BatchTooLarge
from taskyard_taskdb.domain.quota import TIERS, Quota, QuotaOverrides, Tier, effective

UNLIMITED = Quota(0, 0, 0, 0, 1)


def test_the_tiers_are_those_of_the_contract() -> None:
    numbers = {
        tier.name: (q.max_concurrent_tasks, q.max_queue_depth, q.rate_limit_per_sec, q.rate_burst, q.weight)
        for tier, q in TIERS.items()
    }
    assert numbers == {
        "FREE": (10, 50, 1, 5, 1),
        "STANDARD": (100, 500, 10, 50, 10),
        "PREMIUM": (500, 2000, 50, 200, 50),
        "ENTERPRISE": (2000, 10000, 200, 1000, 100),
    }


def test_an_override_wins_and_zero_is_unlimited() -> None:
    quota = effective(Tier.FREE, QuotaOverrides(max_concurrent_tasks=0, max_queue_depth=7))
    assert (quota.claimable(10**6), quota.room(5), quota.room(9)) == (-1, 2, 0)
    assert quota.rate_limit_per_sec == 1


def test_claimable_never_falls_below_zero() -> None:
    assert TIERS[Tier.FREE].claimable(4) == 6
    assert TIERS[Tier.FREE].claimable(11) == 0


def test_only_limited_tenants_need_counters() -> None:
    assert not UNLIMITED.counted
    assert TIERS[Tier.FREE].counted


def test_a_batch_above_the_burst_is_refused_unless_the_rate_is_unlimited() -> None:
    TIERS[Tier.FREE].check_batch(5)
    with pytest.raises(BatchTooLarge, match="6 tasks are more than the 5"):
        TIERS[Tier.FREE].check_batch(6)
    UNLIMITED.check_batch(1000)
    effective(Tier.FREE, QuotaOverrides(rate_limit_per_sec=0)).check_batch(1000)
