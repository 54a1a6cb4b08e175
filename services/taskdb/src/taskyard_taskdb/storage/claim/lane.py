"""The name of a lane, which creates, pops, watches and sweeps share."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple


class LaneKey(NamedTuple):
    """A lane: FIFO by ready_time within tenant, placement class, priority and pinned runner ("" for none)."""

    tenant_id: str
    class_id: int
    priority: int
    pinned_runner: str


class Filling(NamedTuple):
    """Tasks that were appended to a lane: the first ready_time among them, and how many they are."""

    ready_time: datetime
    backlog: int

    def join(self, other: "Filling") -> "Filling":
        """Both together."""
        return Filling(min(self.ready_time, other.ready_time), self.backlog + other.backlog)


def join_fillings(fillings: dict[LaneKey, Filling], more: Iterable[tuple[LaneKey, Filling]]) -> None:
    """Add to what is known of each lane."""
    for lane, filling in more:
        known = fillings.get(lane)
        fillings[lane] = filling if known is None else known.join(filling)
