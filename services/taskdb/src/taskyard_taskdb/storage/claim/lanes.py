"""Lanes: the key that creates, claims, watches and sweeps share, and the heads that schedulers see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


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

    def merge(self, other: Appended) -> Appended:
        """Both together."""
        return Appended(min(self.ready_time, other.ready_time), self.backlog + other.backlog)


def merge_appended(appended: dict[LaneKey, Appended], more: Iterable[tuple[LaneKey, Appended]]) -> None:
    """Add more tasks per lane."""
    for lane, added in more:
        present = appended.get(lane)
        appended[lane] = added if present is None else present.merge(added)


BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
COUNT_LIMIT = 1000
# Rows counted over all lanes when lanes are read again, and at least of each lane.
_COUNTED = 2000
_COUNTED_EACH = 4
# Lanes that are measured for metrics, and rows counted over all of them.
_MEASURED_LANES = 2000
_MEASURED = 200_000


@dataclass(frozen=True, slots=True)
class LaneHead:
    """A lane: the ready_time of its first task (None: empty), its backlog, and whether there is more."""

    lane: LaneKey
    ready_time: datetime | None
    backlog: int
    more: bool


async def read_all(tx: Tx) -> list[LaneHead]:
    """Every lane that has work."""
    rows = await tx.fetch(statement("all_lanes"), {"count_limit": COUNT_LIMIT})
    return [LaneHead(LaneKey(*row[:4]), row[4], row[5], row[5] >= COUNT_LIMIT) for row in rows]


async def read_heads(tx: Tx, lanes: Iterable[LaneKey], bounds: Mapping[LaneKey, datetime]) -> list[LaneHead]:
    """The heads of these lanes, empty ones included; the more lanes, the less of each is counted."""
    wanted = list(lanes)
    limit = min(COUNT_LIMIT, max(_COUNTED_EACH, _COUNTED // max(1, len(wanted))))
    after = arrays.timestamps([bounds.get(lane, BEGINNING) for lane in wanted])
    params = lane_arrays(wanted) | {"after_times": after, "count_limit": limit}
    rows = await tx.fetch(statement("lane_heads"), params)
    return [LaneHead(wanted[n - 1], ready_time, count, count >= limit) for n, ready_time, count in rows]


async def read_depths(tx: Tx) -> list[LaneHead]:
    """The first lanes that have work, counted as far as a bounded effort reaches."""
    lanes = [LaneKey(*row) for row in await tx.fetch(statement("lane_keys"), {"lane_limit": _MEASURED_LANES})]
    limit = max(COUNT_LIMIT, _MEASURED // max(1, len(lanes)))
    after = arrays.timestamps([BEGINNING] * len(lanes))
    params = lane_arrays(lanes) | {"after_times": after, "count_limit": limit}
    rows = await tx.fetch(statement("lane_heads"), params)
    return [LaneHead(lanes[n - 1], ready_time, count, count >= limit) for n, ready_time, count in rows]


def lane_arrays(lanes: Iterable[LaneKey]) -> dict[str, object]:
    """The columns of lane keys."""
    keys = list(lanes)
    return {
        "tenant_ids": arrays.texts([lane.tenant_id for lane in keys]),
        "class_ids": arrays.bigints([lane.class_id for lane in keys]),
        "priorities": arrays.smallints([lane.priority for lane in keys]),
        "pinned_runners": arrays.texts([lane.pinned_runner for lane in keys]),
    }
