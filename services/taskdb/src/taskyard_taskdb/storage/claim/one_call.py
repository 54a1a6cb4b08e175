"""Claims that one call of a function of the database carries out: one exchange with the server, not six.

The function is for what nearly every claim is: runners with sessions, tenants that nothing is counted of, and
lanes whose order and counts decide. It claims all of a request or declines, and then the statements of
`claimer` decide. A repeat of a claim is always declined.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from taskyard.errors import StorageUnavailable
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.bundles import Bundle, page_size, waves
from taskyard_taskdb.storage.claim.claims import (
    MAX_BYTES,
    ROW_BYTES,
    ClaimedTask,
    ClaimResult,
    RunnerClaim,
)
from taskyard_taskdb.storage.claim.lanes import BEGINNING, LaneKey, lane_arrays
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.statements import statement

# No answer has more rows.
_MOST_ROWS = MAX_BYTES // ROW_BYTES + 1
# How long claims of a tenant go to the statements at once after the function has declined one.
_DECLINED_SECONDS = 10.0


class OneCalls:
    """The calls of one process; one claim at a time."""

    def __init__(self, pool: Pool, bus: Bus, bounds: Bounds) -> None:
        self._pool = pool
        self._bus = bus
        self._bounds = bounds
        # Tenants of which the function claims nothing, and until when that is supposed.
        self._declined: dict[str, float] = {}

    async def claim(
        self, scheduler_id: str, claim_id: str, claims: Sequence[RunnerClaim]
    ) -> list[ClaimResult] | None:
        """The results, or None if the statements have to decide, or to complete them as those of a repeat."""
        call = _Call.of(claim_id, claims)
        if call is None or self._is_declined(call):
            return None
        try:
            rows = await self._pool.run(
                lambda tx: call.run(tx, scheduler_id, self._bounds.by_lane), single=True
            )
        except StorageUnavailable as error:
            if error.outcome == "not applied":
                raise
            # The connection broke; what it claimed nevertheless, the repeat returns.
            return None
        declined = call.declined(rows)
        if declined is not None:
            self._declined |= dict.fromkeys(declined, time.monotonic() + _DECLINED_SECONDS)
            return None
        outcome = call.outcome(rows)
        shrunk = self._bounds.advance(outcome.chosen, outcome.passed)
        self._bus.publish(CommitNotice(shrunk=shrunk))
        return outcome.results if outcome.complete else None

    def _is_declined(self, call: _Call) -> bool:
        if not self._declined:
            return False
        now = time.monotonic()
        self._declined = {tenant: until for tenant, until in self._declined.items() if until > now}
        return any(lane.tenant_id in self._declined for lane in call.lanes)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of each claim; of the lanes that had rows, the last time chosen and the first passed over.

    It is incomplete if a claim got nothing although there are rows: those that others have locked, and those
    of paused types. The statements look behind them.
    """

    results: list[ClaimResult]
    complete: bool
    chosen: list[tuple[LaneKey, datetime]]
    passed: list[tuple[LaneKey, datetime]]


class _Call:
    """The claims of one request. `run` may be repeated as a whole."""

    def __init__(self, claim_id: str, claims: Sequence[RunnerClaim], bundles: Sequence[Bundle]) -> None:
        self._claim_id = claim_id
        self._claims = claims
        self._bundles = bundles
        self._lane_claims = [found for bundle in bundles for found in bundle.lane_claims]
        self.lanes = [found.lane for found in self._lane_claims]

    @classmethod
    def of(cls, claim_id: str, claims: Sequence[RunnerClaim]) -> _Call | None:
        """The call, or None if the claims are for the statements to decide."""
        if not all(claim.session_epoch for claim in claims):
            return None
        found = waves(list(enumerate(claims)))
        return cls(claim_id, claims, found[0]) if found is not None and len(found) == 1 else None

    async def run(self, tx: Tx, scheduler_id: str, bounds: Mapping[LaneKey, datetime]) -> list[Row]:
        """Claim; the rows of the function."""
        return await tx.fetch(statement("claim_tasks"), self._params(scheduler_id, bounds))

    def declined(self, rows: Sequence[Row]) -> set[str] | None:
        """None if the function has decided; else the tenants because of which it has declined, if known."""
        if not rows or rows[0][0] > 0:
            return None
        return {self.lanes[-row[0] - 1].tenant_id for row in rows if row[0]}

    def outcome(self, rows: Sequence[Row]) -> _Outcome:
        """What was claimed."""
        results = [ClaimResult() for _ in self._claims]
        lanes, claims = self.lanes, self._claims
        seen: dict[LaneKey, bool] = {}
        chosen: list[tuple[LaneKey, datetime]] = []
        passed: list[tuple[LaneKey, datetime]] = []
        for row in rows:
            lane, claim = lanes[row[0] - 1], row[4]
            if claim is not None:
                ttl = claims[claim - 1].lease_duration
                results[claim - 1].tasks.append(ClaimedTask._make((lane[0], *row[5:], ttl)))
                continue
            seen[lane] = row[1]
            if row[2] is not None:
                chosen.append((lane, row[2]))
            if row[3] is not None:
                passed.append((lane, row[3]))
        left = {lane for lane, _ in passed}
        complete = True
        for result, claimed in zip(results, claims, strict=True):
            wanted = [found.lane for tenant in claimed.tenants for found in tenant.lanes]
            complete = complete and (bool(result.tasks) or left.isdisjoint(wanted))
            result.drained = [lane for lane in wanted if seen.get(lane, True)]
        return _Outcome(results, complete, chosen, passed)

    def _params(self, scheduler_id: str, bounds: Mapping[LaneKey, datetime]) -> dict[str, object]:
        claims, lanes = self._claims, self.lanes
        first_seats = _running_totals(bundle.count for bundle in self._bundles)
        listed = [
            (n, bundle, first_seat)
            for n, (bundle, first_seat) in enumerate(zip(self._bundles, first_seats, strict=False))
            for _ in bundle.lane_claims
        ]
        claimants = [claimant for bundle in self._bundles for claimant in bundle.claimants]
        compared = len(lanes) > len(self._bundles)
        return {
            **lane_arrays(lanes),
            "claim_id": self._claim_id,
            "scheduler_id": scheduler_id,
            "log_lock": LOG_LOCK,
            "max_bytes": MAX_BYTES,
            "runner_ids": arrays.texts([claim.runner_id for claim in claims]),
            "epochs": arrays.bigints([claim.session_epoch for claim in claims]),
            "lease_durations": arrays.intervals([claim.lease_duration for claim in claims]),
            "after_times": arrays.timestamps([bounds.get(lane, BEGINNING) for lane in lanes]),
            "offsets": arrays.intervals([found.offset for found in self._lane_claims]),
            "bundles": arrays.integers([n for n, _, _ in listed]),
            "counts": arrays.integers([bundle.count for _, bundle, _ in listed]),
            "pages": arrays.integers([page_size(bundle) for _, bundle, _ in listed]) if compared else None,
            "seats": arrays.integers([first_seat for _, _, first_seat in listed]),
            "seat_starts": arrays.integers(_running_totals(count for _, count in claimants)[:-1]),
            "seat_claims": arrays.integers([position + 1 for position, _ in claimants]),
            "lease_ids": arrays.drawn_bigints(min(first_seats[-1], _MOST_ROWS)),
        }


def _running_totals(counts: Iterable[int]) -> list[int]:
    """What comes before each count, and the sum of all."""
    totals = [0]
    for count in counts:
        totals.append(totals[-1] + count)
    return totals
