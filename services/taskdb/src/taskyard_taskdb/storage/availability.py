"""Whether the database can do work: one record of an outage, however many connections notice it."""

from __future__ import annotations

import time
from collections.abc import Callable

from taskyard_kit.logs import get_log

log = get_log(__name__)


class Availability:
    """The outages of the database as one process sees them; each is logged when it begins and when it ends.

    Whatever uses the database reports for itself: the pools when they cannot connect, the probe when a write
    fails. The outage ends when the last of them has recovered.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._problems: dict[object, str] = {}
        self._since = 0.0

    @property
    def problem(self) -> str:
        """What is wrong, or empty."""
        return next(iter(self._problems.values()), "")

    @property
    def outage_seconds(self) -> float:
        """How long the outage has lasted; 0 if there is none."""
        return self._clock() - self._since if self._problems else 0.0

    def lost(self, source: object, problem: str) -> None:
        """Record that `source` cannot use the database."""
        if not self._problems:
            self._since = self._clock()
            log.error("database_lost", problem=problem)
        self._problems[source] = problem

    def restored(self, source: object) -> None:
        """Record that `source` can use the database again."""
        if self._problems.pop(source, None) is not None and not self._problems:
            log.warning("database_restored", outage_seconds=round(self._clock() - self._since, 1))
