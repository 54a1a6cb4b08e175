"""What a taker could take now, and how it is filled during a plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class Offer:
    """What one runner, or one waiting claim of a pull worker, could take now."""

    key: str
    runner_id: str
    free: int
    used: int
    capacity: int
    budget: Resources | None = None
    # First registration: of runners that are alike the older one goes first.
    since: float = 0.0
    # It does not serve every tenant alike: `Situation.permits` has to be asked.
    limited: bool = False


@dataclass(slots=True)
class Room:
    """An offer while it is being filled."""

    offer: Offer
    order: int
    free: int
    budget: Resources | None
    taken: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, list[int]] = field(default_factory=dict)
    # Filled by something that nothing goes with: a class that looks at what the runner executes, or the
    # task for which the runner was held back.
    closed: bool = False
    # Types that whoever it is held back for avoids.
    barred: frozenset[str] = frozenset()

    @property
    def load(self) -> float:
        given = self.offer.free - self.free
        return (self.offer.used + given) / max(1, self.offer.capacity)

    def fits(self, wanted: PlacementClass) -> int:
        """How many tasks of a class there is room for."""
        if self.closed or self.free <= 0 or wanted.task_type in self.barred:
            return 0
        if wanted.depends_on_running_types:
            return 0 if self.taken else 1
        if self.budget is None or not wanted.resources:
            return self.free
        return self.budget.times(wanted.resources, self.free)

    def lacks(self, wanted: PlacementClass) -> float:
        """Which part of what one task needs is not free, of the resource that is lacking most."""
        return self.budget.lacking(wanted.resources) if self.budget is not None else 0.0

    def take(self, wanted: PlacementClass, tenant: str, lane: int, count: int) -> None:
        self.free -= count
        self.taken[tenant] = self.taken.get(tenant, 0) + count
        listed = self.lanes.setdefault(tenant, [])
        if not listed or listed[-1] != lane:
            listed.append(lane)
        if self.budget is not None and wanted.resources:
            self.budget = self.budget.less(wanted.resources, count)
        self.closed = self.closed or wanted.depends_on_running_types

    def hold(self, wanted: PlacementClass) -> None:
        """Keep what one task of this class needs from all others: they share the rest, if there is any.

        The offer shrinks with it, since what a runner asks taskdb for is bounded by its offer.
        """
        if self.budget is not None:
            self.budget = self.budget.less(wanted.resources)
        self.free -= 1
        self.offer = replace(self.offer, free=self.free, budget=self.budget)
        self.barred = wanted.avoid.task_types
