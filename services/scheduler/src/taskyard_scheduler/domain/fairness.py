"""Between tenants: who is served first, and how much of the free capacity each may take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# One point of effective priority is worth this much waiting: 5 points per waited minute.
POINT_SECONDS = 12.0
# Strict order: no wait makes up for one point of priority.
STRICT_POINT_SECONDS = 366 * 86400.0

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A tenant as taskdb describes it: tier weight, decayed capacity-seconds, and what it may claim."""

    tenant: str
    weight: int = 1
    usage: float = 0.0
    claimable: int = UNLIMITED
    paused: bool = False
    paused_task_types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """How many tasks of a tenant could start now."""

    share: TenantShare
    count: int


def lane_offset(priority: int, weight: int, *, strict: bool = False) -> float:
    """The advantage of a lane in seconds: its smallest ready_time - offset goes first."""
    if strict:
        return priority * STRICT_POINT_SECONDS
    return priority * weight * POINT_SECONDS


def normalised_usage(share: TenantShare) -> float:
    """Capacity-seconds per unit of weight: the tenant with the smallest is served first."""
    return share.usage / max(1, share.weight)


def divide(capacity: int, demands: Iterable[Demand]) -> Mapping[str, int]:
    """How much of the capacity each tenant may take, in the order in which they are served.

    Each gets its part by weight, bounded by its demand; what a small demand leaves is divided again. Parts
    are rounded up, so the last in the order, those that used most, may find the capacity taken.
    """
    ordered = sorted(demands, key=lambda demand: (normalised_usage(demand.share), demand.share.tenant))
    parts: dict[str, int] = {demand.share.tenant: 0 for demand in ordered}
    open_demands = [demand for demand in ordered if demand.count > 0]
    left = capacity
    while left > 0 and open_demands:
        weights = sum(max(1, demand.share.weight) for demand in open_demands)
        round_capacity = left
        still_open = []
        for demand in open_demands:
            tenant = demand.share.tenant
            part = math.ceil(round_capacity * max(1, demand.share.weight) / weights)
            given = min(part, demand.count - parts[tenant], left)
            parts[tenant] += given
            left -= given
            if parts[tenant] < demand.count:
                still_open.append(demand)
        open_demands = still_open
    return parts
