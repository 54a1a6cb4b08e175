"""Lower bounds of lanes: where reading a lane begins, so that a claim does not visit dead index entries.

A bound is the ready_time that was claimed last, less a second. `repair` finds rows that were committed below
a bound later; a claim never does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.claim.lanes import BEGINNING, LaneKey, lane_arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

_SLACK = timedelta(seconds=1)
# No transaction lasts this long: after it nothing can be committed below a bound any more.
_EVICT_SECONDS = 120.0


class Bounds:
    """The bounds of one process; a lane without a bound is read from its beginning."""

    def __init__(self) -> None:
        self.by_lane: dict[LaneKey, datetime] = {}
        self._raised_at: dict[LaneKey, float] = {}

    def advance(
        self, claimed: Iterable[tuple[LaneKey, datetime]], skipped: Iterable[tuple[LaneKey, datetime]]
    ) -> set[LaneKey]:
        """Raise bounds to what was claimed, but not above what was skipped; the lanes concerned."""
        raised: dict[LaneKey, datetime] = {}
        for lane, ready_time in claimed:
            raised[lane] = max(raised.get(lane, BEGINNING), ready_time)
        for lane, ready_time in skipped:
            raised[lane] = min(raised.get(lane, ready_time), ready_time)
        now = time.monotonic()
        for lane, ready_time in raised.items():
            self.by_lane[lane] = max(self.by_lane.get(lane, BEGINNING), ready_time - _SLACK)
            self._raised_at[lane] = now
        return set(raised)

    async def repair(self, tx: Tx) -> set[LaneKey]:
        """Lower bounds that have rows below them and evict old ones; the lanes that were lowered."""
        self._evict()
        bounds = dict(self.by_lane)
        if not bounds:
            return set()
        lowered = set()
        lanes = list(bounds)
        params = lane_arrays(lanes) | {"after_times": arrays.timestamps(list(bounds.values()))}
        for n, ready_time in await tx.fetch(statement("below_bounds"), params):
            lane = lanes[n - 1]
            self.by_lane[lane] = min(self.by_lane.get(lane, ready_time), ready_time - _SLACK)
            lowered.add(lane)
        return lowered

    def _evict(self) -> None:
        oldest = time.monotonic() - _EVICT_SECONDS
        for lane in [lane for lane, raised_at in self._raised_at.items() if raised_at < oldest]:
            del self._raised_at[lane]
            self.by_lane.pop(lane, None)
