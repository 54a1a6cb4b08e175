"""Statistics of tasks: counts by phase, and durations as steps of a quarter of a power of two."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from taskyard_taskdb.domain.words import TERMINAL, Phase

STEPS_PER_OCTAVE = 4


@dataclass(slots=True)
class Durations:
    """A distribution; percentiles are right to a tenth."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    steps: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, step: int, count: int, seconds: float, longest: float) -> None:
        """Take in tasks of one step."""
        self.count += count
        self.seconds += seconds
        self.longest = max(self.longest, longest)
        self.steps[step] += count

    @property
    def average(self) -> float:
        """The mean, in seconds."""
        return self.seconds / self.count if self.count else 0.0

    def percentile(self, part: float) -> float:
        """The middle of the step in which `part` of the tasks is reached, and no more than the longest."""
        reached = 0
        for step, count in sorted(self.steps.items()):
            reached += count
            if reached >= part * self.count:
                return min(self.longest, math.exp2((step + 0.5) / STEPS_PER_OCTAVE) / 1000)
        return self.longest


@dataclass(slots=True)
class Stats:
    """Numbers of one group of tasks."""

    group: Mapping[str, str]
    phases: dict[Phase, int] = field(default_factory=dict)
    retry_count: int = 0
    # Of successful runs, of waits, and of last runs of tasks that ended otherwise.
    run: Durations = field(default_factory=Durations)
    queue: Durations = field(default_factory=Durations)
    failed: Durations = field(default_factory=Durations)
    oldest_pending: float | None = None

    @property
    def ended(self) -> Durations:
        """Of all tasks that were started and have ended."""
        both = Durations()
        for part in (self.run, self.failed):
            both.count += part.count
            both.seconds += part.seconds
            both.longest = max(both.longest, part.longest)
            for step, count in part.steps.items():
                both.steps[step] += count
        return both

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.phases.values())

    @property
    def success_ratio(self) -> float:
        """SUCCEEDED of all that have ended; 0 before any has."""
        ended = sum(count for phase, count in self.phases.items() if phase in TERMINAL)
        return self.phases.get(Phase.SUCCEEDED, 0) / ended if ended else 0.0
