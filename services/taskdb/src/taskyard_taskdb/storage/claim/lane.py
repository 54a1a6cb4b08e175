"""The key of a lane, which creates, claims, watches and sweeps share."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple


class LaneKey(NamedTuple):
    """A lane: FIFO by ready_time within tenant, placement class, priority and pinned runner ("" for none)."""

    tenant_id: str
    class_id: int
    priority: int
    pinned_runner: str


class Appended(NamedTuple):
    """Tasks that were appended to a lane: the first ready_time among them, and their number."""

    ready_time: datetime
    backlog: int

    def merge(self, other: "Appended") -> "Appended":
        """Both together."""
        return Appended(min(self.ready_time, other.ready_time), self.backlog + other.backlog)


def merge_appended(appended: dict[LaneKey, Appended], more: Iterable[tuple[LaneKey, Appended]]) -> None:
    """Add more tasks per lane."""
    for lane, added in more:
        present = appended.get(lane)
        appended[lane] = added if present is None else present.merge(added)
