"""The free capacity of a claimant, and how a plan fills it."""

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
    # First registration: among equal runners the older one goes first.
    since: float = 0.0
    # It does not serve every tenant: check `Situation.permits`.
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
    # Filled by a task that must be claimed alone: of a class that depends on running task types, or the task
    # for which the runner was reserved.
    closed: bool = False
    # Task types that the lane with the reservation avoids.
    barred: frozenset[str] = frozenset()

    @property
    def load(self) -> float:
        given = self.offer.free - self.free
        return (self.offer.used + given) / max(1, self.offer.capacity)

    def fits(self, wanted: PlacementClass) -> int:
        """How many tasks of a class fit."""
        if self.closed or self.free <= 0 or wanted.task_type in self.barred:
            return 0
        if wanted.depends_on_running_types:
            return 0 if self.taken else 1
        if self.budget is None or not wanted.resources:
            return self.free
        return self.budget.times(wanted.resources, self.free)

    def lacks(self, wanted: PlacementClass) -> float:
        """The missing fraction of one task's resources, of the scarcest resource."""
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
        """Withholds the resources of one task of this class from all others.

        The offer shrinks too, because the claim of a runner is bounded by its offer.
        """
        if self.budget is not None:
            self.budget = self.budget.less(wanted.resources)
        self.free -= 1
        self.offer = replace(self.offer, free=self.free, budget=self.budget)
        self.barred = wanted.avoid.task_types
