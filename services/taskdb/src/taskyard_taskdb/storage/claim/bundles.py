"""Claims whose tasks one statement can choose: bundles of lanes, with the number of tasks for each claimant.

That is so where only counts and the order of the lanes' heads decide. Where a budget may run out between
lanes of different cost, the choice is made task by task (`merge`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.claim.claims import LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import BEGINNING, LaneKey, lane_arrays
from taskyard_taskdb.storage.claim.merge import Candidate
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement

# Bundles that share a lane are claimed one after the other; beyond this many waves Python chooses instead.
_MOST_WAVES = 4

_BundleKey = tuple[tuple[LaneKey, timedelta], ...]


@dataclass(slots=True)
class Bundle:
    """Lanes of one tenant that are compared with each other; claimants are position and count."""

    lane_claims: tuple[LaneClaim, ...]
    claimants: list[tuple[int, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.claimants)

    def positions(self) -> list[int]:
        """The position of the claimant of the first, second, ... task."""
        return [position for position, count in self.claimants for _ in range(count)]


def waves(claims: Sequence[tuple[int, RunnerClaim]]) -> list[list[Bundle]] | None:
    """The wants as bundles, those of a wave without a lane in common; None if more than counts decides."""
    bundles: dict[_BundleKey, Bundle] = {}
    for position, claim in claims:
        counts = _counts(claim)
        if counts is None:
            return None
        for tenant, count in zip(claim.tenants, counts, strict=True):
            key = tuple((lane_claim.lane, lane_claim.offset) for lane_claim in tenant.lanes)
            if len({lane for lane, _ in key}) < len(key):
                return None
            bundles.setdefault(key, Bundle(tenant.lanes)).claimants.append((position, count))
    made = _apart(list(bundles.values()))
    return made if len(made) <= _MOST_WAVES else None


def _apart(bundles: list[Bundle]) -> list[list[Bundle]]:
    made: list[list[Bundle]] = []
    # The first wave that a lane is not in, nor in a later one.
    after: dict[LaneKey, int] = {}
    for bundle in bundles:
        lanes = [lane_claim.lane for lane_claim in bundle.lane_claims]
        wave = max((after.get(lane, 0) for lane in lanes), default=0)
        after.update(dict.fromkeys(lanes, wave + 1))
        if wave == len(made):
            made.append([])
        made[wave].append(bundle)
    return made


def _counts(claim: RunnerClaim) -> list[int] | None:
    """How many tasks of each tenant, if that holds whichever lanes they come from."""
    if len(claim.tenants) == 1:
        tenant = claim.tenants[0]
        wanted = min(claim.max_tasks, tenant.max_tasks)
        affordable = _affordable(claim, claim.tenants)
        if affordable >= wanted or _costs_alike(tenant):
            return [min(wanted, affordable)]
        return None
    total = sum(tenant.max_tasks for tenant in claim.tenants)
    if total > min(claim.max_tasks, _affordable(claim, claim.tenants)):
        return None
    return [tenant.max_tasks for tenant in claim.tenants]


def _affordable(claim: RunnerClaim, tenants: Sequence[TenantClaim]) -> int:
    """How many tasks the budget pays for, if each were the dearest in every resource."""
    if claim.budget is None:
        return claim.max_tasks
    dearest: dict[str, int] = {}
    for tenant in tenants:
        for lane_claim in tenant.lanes:
            for name, amount in (lane_claim.cost or {}).items():
                dearest[name] = max(dearest.get(name, 0), amount)
    counts = [claim.budget.get(name, 0) // amount for name, amount in dearest.items() if amount > 0]
    return max(0, min(counts, default=claim.max_tasks))


def _costs_alike(tenant: TenantClaim) -> bool:
    first = tenant.lanes[0].cost
    return all(lane_claim.cost == first for lane_claim in tenant.lanes)


# Up to this many single lanes are claimed by one statement each, which is cheaper than a comparison.
_FEW_LANES = 4
# A bundle whose rows lie in fewer of its lanes than was supposed is read on, further each time.
_ROUNDS = 4
_GROWTH = 4
_SPARE_ROWS = 4


@dataclass(slots=True)
class ClaimedRows:
    """Claimed queue rows (True: the task has an expired lease), skipped rows, and which lanes are drained."""

    rows: dict[Candidate, bool] = field(default_factory=dict)
    skipped: list[Candidate] = field(default_factory=list)
    drained: dict[LaneKey, bool] = field(default_factory=dict)

    def empty(self) -> set[LaneKey]:
        """The drained lanes without those that have rows locked by another transaction."""
        ended = {lane for lane, drained in self.drained.items() if drained}
        return ended - {candidate.lane for candidate in self.skipped}


async def claim_bundles(
    tx: Tx, waves: Sequence[Sequence[Bundle]], bounds: Mapping[LaneKey, datetime]
) -> ClaimedRows:
    """Claim from every bundle what its claimants want, the smallest ready_time - offset first."""
    claimed = ClaimedRows()
    for wave in waves:
        if len(wave) <= _FEW_LANES and all(len(bundle.lane_claims) == 1 for bundle in wave):
            for bundle in sorted(wave, key=_first_lane):
                await _claim_lane(tx, bundle, bounds, claimed)
        else:
            await _Wave(tx, wave, bounds, claimed).run()
    return claimed


def _first_lane(bundle: Bundle) -> LaneKey:
    return bundle.lane_claims[0].lane


async def _claim_lane(
    tx: Tx, bundle: Bundle, bounds: Mapping[LaneKey, datetime], claimed: ClaimedRows
) -> None:
    """Claim the head of the only lane of a bundle."""
    lane, positions = _first_lane(bundle), bundle.positions()
    params = {
        **lane._asdict(),
        "after_time": bounds.get(lane, BEGINNING),
        "at_most": len(positions),
    }
    rows = await tx.fetch(statement("claim_lane"), params)
    # The delete does not keep the order.
    for position, (ready_time, task_id, has_lease, _) in zip(positions, sorted(rows), strict=False):
        claimed.rows[Candidate(lane, ready_time, task_id, position)] = has_lease
    claimed.drained[lane] = len(rows) < len(positions) or not rows[0][3]


@dataclass(slots=True)
class _Part:
    """A bundle in progress: the remaining claimants, the lanes that may have more, the page size of each."""

    positions: list[int]
    lane_claims: list[LaneClaim]
    page: int
    given: int = 0

    @property
    def wanted(self) -> int:
        return len(self.positions) - self.given

    def position(self) -> int:
        """Whose the next task is."""
        return self.positions[self.given]


class _Wave:
    """Takes from bundles that have no lane in common, in one statement for all and as few as possible."""

    def __init__(
        self, tx: Tx, bundles: Iterable[Bundle], bounds: Mapping[LaneKey, datetime], claimed: ClaimedRows
    ) -> None:
        self._tx = tx
        self._claimed = claimed
        self._parts = [_part(bundle) for bundle in bundles]
        # Where reading a lane begins: after the last row that was claimed or skipped.
        self._after: dict[LaneKey, tuple[datetime, str]] = {
            lane_claim.lane: (bounds.get(lane_claim.lane, BEGINNING), "")
            for part in self._parts
            for lane_claim in part.lane_claims
        }

    async def run(self) -> None:
        for _ in range(_ROUNDS):
            self._parts = [part for part in self._parts if part.wanted and part.lane_claims]
            if not self._parts:
                break
            self._note(await self._tx.fetch(statement("claim_lanes"), self._params()))

    def _params(self) -> dict[str, object]:
        listed = [
            (n, part, lane_claim) for n, part in enumerate(self._parts) for lane_claim in part.lane_claims
        ]
        lanes = [lane_claim.lane for _, _, lane_claim in listed]
        after = [self._after[lane] for lane in lanes]
        return {
            **lane_arrays(lanes),
            "after_times": arrays.timestamps([time for time, _ in after]),
            "after_ids": arrays.texts([task_id for _, task_id in after]),
            "offsets": arrays.intervals([lane_claim.offset for _, _, lane_claim in listed]),
            "bundles": arrays.integers([n for n, _, _ in listed]),
            "counts": arrays.integers([part.wanted for _, part, _ in listed]),
            "pages": arrays.integers([part.page for _, part, _ in listed]),
        }

    def _note(self, rows: Sequence[Row]) -> None:
        listed = [(part, lane_claim.lane) for part in self._parts for lane_claim in part.lane_claims]
        seen = {listed[n - 1][1]: place for n, place, task_id, *_ in rows if task_id is None}
        chosen: Counter[LaneKey] = Counter()
        for n, _, task_id, ready_time, has_lease in sorted(
            (row for row in rows if row[2] is not None), key=itemgetter(1)
        ):
            part, lane = listed[n - 1]
            chosen[lane] += 1
            self._after[lane] = (ready_time, task_id)
            if has_lease is None:
                self._claimed.skipped.append(Candidate(lane, ready_time, task_id, part.position()))
            else:
                self._claimed.rows[Candidate(lane, ready_time, task_id, part.position())] = has_lease
                part.given += 1
        for part in self._parts:
            self._go_on(part, seen, chosen)

    def _go_on(self, part: _Part, seen: Mapping[LaneKey, int], chosen: Mapping[LaneKey, int]) -> None:
        """Keep the lanes that were not read to their end, or of which something was left."""
        more: list[LaneClaim] = []
        for lane_claim in part.lane_claims:
            found = seen.get(lane_claim.lane, 0)
            self._claimed.drained[lane_claim.lane] = empty = (
                found < part.page and chosen[lane_claim.lane] >= found
            )
            if not empty:
                more.append(lane_claim)
        part.lane_claims = more
        part.page *= _GROWTH


def page_size(bundle: Bundle) -> int:
    """How many rows to read of each lane."""
    count = bundle.count
    return min(count, 2 * count // len(bundle.lane_claims) + _SPARE_ROWS)


def _part(bundle: Bundle) -> _Part:
    return _Part(bundle.positions(), list(bundle.lane_claims), page_size(bundle))
