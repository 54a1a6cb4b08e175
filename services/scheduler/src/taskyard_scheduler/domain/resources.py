"""Amounts of compute: what a task reserves, what a runner has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in thousandths of a core, memory and disk in MB, and countable named resources."""

    cpu_millis: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    extended: Mapping[str, int] = field(default_factory=lambda: _NONE)

    def __bool__(self) -> bool:
        return bool(self.cpu_millis or self.memory_mb or self.disk_mb or self.extended)

    def _pairs(self, cost: Resources) -> list[tuple[int, int]]:
        pairs = [
            (self.cpu_millis, cost.cpu_millis),
            (self.memory_mb, cost.memory_mb),
            (self.disk_mb, cost.disk_mb),
        ]
        pairs += [(self.extended.get(name, 0), needed) for name, needed in cost.extended.items()]
        return pairs

    def holds(self, cost: Resources) -> bool:
        """Whether `cost` fits into this amount."""
        return all(has >= needed for has, needed in self._pairs(cost))

    def times(self, cost: Resources, at_most: int) -> int:
        """How many tasks of this cost fit, at most `at_most`."""
        # Called for every runner and class in every plan: avoid building a list.
        fits = at_most
        if cost.cpu_millis:
            fits = min(fits, self.cpu_millis // cost.cpu_millis)
        if cost.memory_mb:
            fits = min(fits, self.memory_mb // cost.memory_mb)
        if cost.disk_mb:
            fits = min(fits, self.disk_mb // cost.disk_mb)
        for name, needed in cost.extended.items():
            if needed:
                fits = min(fits, self.extended.get(name, 0) // needed)
        return max(0, fits)

    def lacking(self, cost: Resources) -> float:
        """The missing fraction of `cost`, of the scarcest resource: 0 = it fits, 1 = nothing is free."""
        parts = [(needed - max(0, has)) / needed for has, needed in self._pairs(cost) if needed > 0]
        return max([0.0, *parts])

    def less(self, cost: Resources, count: int = 1) -> Resources:
        """What is left after `count` tasks of this cost; may be negative."""
        extended = dict(self.extended)
        for name, needed in cost.extended.items():
            extended[name] = extended.get(name, 0) - needed * count
        return Resources(
            self.cpu_millis - cost.cpu_millis * count,
            self.memory_mb - cost.memory_mb * count,
            self.disk_mb - cost.disk_mb * count,
            extended,
        )


NO_RESOURCES = Resources()
