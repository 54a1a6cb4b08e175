"""Claims that one call of a function of the database carries out: one exchange with the server, not six.

The function is for what nearly every claim is: runners with sessions, tenants that nothing is counted of, and
lanes whose order and counts decide. It claims all of a request or declines, and then the statements of
`claimer` decide. A repeat of a claim is always declined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.claim.bundles import Bundle, page_size, waves
from taskyard_taskdb.storage.claim.claims import (
    MAX_BYTES,
    ROW_BYTES,
    ClaimedTask,
    ClaimResult,
    RunnerClaim,
)
from taskyard_taskdb.storage.claim.lanes import BEGINNING, LaneKey, lane_arrays
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement

# No answer has more rows.
_MOST_ROWS = MAX_BYTES // ROW_BYTES + 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of each claim; of the lanes that had rows, the last time chosen and the first passed over.

    It is incomplete if a claim got nothing although there are rows: those that others have locked, and those
    of paused types. The statements look behind them.
    """

    results: list[ClaimResult]
    complete: bool
    chosen: list[tuple[LaneKey, datetime]]
    passed: list[tuple[LaneKey, datetime]]


class OneCall:
    """The claims of one request. `run` may be repeated as a whole."""

    def __init__(self, claim_id: str, claims: Sequence[RunnerClaim], bundles: Sequence[Bundle]) -> None:
        self._claim_id = claim_id
        self._claims = claims
        self._bundles = bundles
        self._lane_claims = [found for bundle in bundles for found in bundle.lane_claims]
        self.lanes = [found.lane for found in self._lane_claims]

    @classmethod
    def of(cls, claim_id: str, claims: Sequence[RunnerClaim]) -> OneCall | None:
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

    def outcome(self, rows: Sequence[Row]) -> Outcome:
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
                results[claim - 1].tasks.append(ClaimedTask(lane[0], *row[5:], ttl))
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
        return Outcome(results, complete, chosen, passed)

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
