"""Wants of a pop whose tasks SQL may choose by itself: each a set of lanes, and how many tasks go to whom.

That is so where only counts and the order of the lanes' heads decide. Where a budget may run out between
lanes of different cost, the choice is made task by task (`merge`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from taskyard_taskdb.storage.claim import LaneOffer, RunnerWant, TenantWant
from taskyard_taskdb.storage.lane import LaneKey

# Bundles with a lane in common are taken one after the other; beyond so many, one choice for all is cheaper.
_MOST_WAVES = 4

_BundleKey = tuple[tuple[LaneKey, timedelta], ...]


@dataclass(slots=True)
class Bundle:
    """Lanes of one tenant that are compared with each other; position and count of who takes from them."""

    offers: tuple[LaneOffer, ...]
    takers: list[tuple[int, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.takers)

    def positions(self) -> list[int]:
        """To whom the first, second, ... task goes."""
        return [position for position, count in self.takers for _ in range(count)]


def waves(wants: Sequence[tuple[int, RunnerWant]]) -> list[list[Bundle]] | None:
    """The wants as bundles, those of a wave without a lane in common; None if more than counts decides."""
    bundles: dict[_BundleKey, Bundle] = {}
    for position, want in wants:
        counts = _counts(want)
        if counts is None:
            return None
        for tenant, count in zip(want.tenants, counts, strict=True):
            key = tuple((offer.lane, offer.offset) for offer in tenant.lanes)
            if len({lane for lane, _ in key}) < len(key):
                return None
            bundles.setdefault(key, Bundle(tenant.lanes)).takers.append((position, count))
    made = _apart(list(bundles.values()))
    return made if len(made) <= _MOST_WAVES else None


def _apart(bundles: list[Bundle]) -> list[list[Bundle]]:
    made: list[list[Bundle]] = []
    # The first wave that a lane is not in, nor in a later one.
    after: dict[LaneKey, int] = {}
    for bundle in bundles:
        lanes = [offer.lane for offer in bundle.offers]
        wave = max((after.get(lane, 0) for lane in lanes), default=0)
        after.update(dict.fromkeys(lanes, wave + 1))
        if wave == len(made):
            made.append([])
        made[wave].append(bundle)
    return made


def _counts(want: RunnerWant) -> list[int] | None:
    """How many tasks of each tenant, if that holds whichever lanes they come from."""
    if len(want.tenants) == 1:
        tenant = want.tenants[0]
        asked = min(want.max_tasks, tenant.max_tasks)
        affordable = _affordable(want, want.tenants)
        if affordable >= asked or _costs_alike(tenant):
            return [min(asked, affordable)]
        return None
    total = sum(tenant.max_tasks for tenant in want.tenants)
    if total > min(want.max_tasks, _affordable(want, want.tenants)):
        return None
    return [tenant.max_tasks for tenant in want.tenants]


def _affordable(want: RunnerWant, tenants: Sequence[TenantWant]) -> int:
    """How many tasks the budget pays for, if each were the dearest in every resource."""
    if want.budget is None:
        return want.max_tasks
    dearest: dict[str, int] = {}
    for tenant in tenants:
        for offer in tenant.lanes:
            for name, amount in (offer.cost or {}).items():
                dearest[name] = max(dearest.get(name, 0), amount)
    counts = [want.budget.get(name, 0) // amount for name, amount in dearest.items() if amount > 0]
    return max(0, min(counts, default=want.max_tasks))


def _costs_alike(tenant: TenantWant) -> bool:
    first = tenant.lanes[0].cost
    return all(offer.cost == first for offer in tenant.lanes)
