"""Wants of a pop whose tasks SQL may choose by itself: each a set of lanes, and how many tasks go to whom.

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
from taskyard_taskdb.storage.claim.claims import LaneOffer, RunnerWant, TenantWant
from taskyard_taskdb.storage.claim.lane import LaneKey
from taskyard_taskdb.storage.claim.lanes import lane_arrays
from taskyard_taskdb.storage.claim.merge import BEGINNING, Candidate
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement

# Bundles with a lane in common are taken one after the other; beyond so many, one choice for all is cheaper.
_MOST_WAVES = 4

_BundleKey = tuple[tuple[LaneKey, timedelta], ...]


@dataclass(slots=True)
class Bundle:
    """Lanes of one tenant that are compared with each other; position and count of who takes from them."""

    offers: tuple[LaneOffer, ...]
    takers: list[tuple[int, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.takers)

    def positions(self) -> list[int]:
        """To whom the first, second, ... task goes."""
        return [position for position, count in self.takers for _ in range(count)]


def waves(wants: Sequence[tuple[int, RunnerWant]]) -> list[list[Bundle]] | None:
    """The wants as bundles, those of a wave without a lane in common; None if more than counts decides."""
    bundles: dict[_BundleKey, Bundle] = {}
    for position, want in wants:
        counts = _counts(want)
        if counts is None:
            return None
        for tenant, count in zip(want.tenants, counts, strict=True):
            key = tuple((offer.lane, offer.offset) for offer in tenant.lanes)
            if len({lane for lane, _ in key}) < len(key):
                return None
            bundles.setdefault(key, Bundle(tenant.lanes)).takers.append((position, count))
    made = _apart(list(bundles.values()))
    return made if len(made) <= _MOST_WAVES else None


def _apart(bundles: list[Bundle]) -> list[list[Bundle]]:
    made: list[list[Bundle]] = []
    # The first wave that a lane is not in, nor in a later one.
    after: dict[LaneKey, int] = {}
    for bundle in bundles:
        lanes = [offer.lane for offer in bundle.offers]
        wave = max((after.get(lane, 0) for lane in lanes), default=0)
        after.update(dict.fromkeys(lanes, wave + 1))
        if wave == len(made):
            made.append([])
        made[wave].append(bundle)
    return made


def _counts(want: RunnerWant) -> list[int] | None:
    """How many tasks of each tenant, if that holds whichever lanes they come from."""
    if len(want.tenants) == 1:
        tenant = want.tenants[0]
        asked = min(want.max_tasks, tenant.max_tasks)
        affordable = _affordable(want, want.tenants)
        if affordable >= asked or _costs_alike(tenant):
            return [min(asked, affordable)]
        return None
    total = sum(tenant.max_tasks for tenant in want.tenants)
    if total > min(want.max_tasks, _affordable(want, want.tenants)):
        return None
    return [tenant.max_tasks for tenant in want.tenants]


def _affordable(want: RunnerWant, tenants: Sequence[TenantWant]) -> int:
    """How many tasks the budget pays for, if each were the dearest in every resource."""
    if want.budget is None:
        return want.max_tasks
    dearest: dict[str, int] = {}
    for tenant in tenants:
        for offer in tenant.lanes:
            for name, amount in (offer.cost or {}).items():
                dearest[name] = max(dearest.get(name, 0), amount)
    counts = [want.budget.get(name, 0) // amount for name, amount in dearest.items() if amount > 0]
    return max(0, min(counts, default=want.max_tasks))


def _costs_alike(tenant: TenantWant) -> bool:
    first = tenant.lanes[0].cost
    return all(offer.cost == first for offer in tenant.lanes)


# Up to so many single lanes are taken by a statement each, which is cheaper than to compare.
_FEW_LANES = 4
# A bundle whose rows lie in fewer of its lanes than was supposed is read on, further each time.
_ROUNDS = 4
_GROWTH = 4
_SPARE_ROWS = 4


@dataclass(slots=True)
class Taken:
    """What was taken and whether an expired lease lies beside it, what was passed over, which lanes ended."""

    rows: dict[Candidate, bool] = field(default_factory=dict)
    skipped: list[Candidate] = field(default_factory=list)
    drained: dict[LaneKey, bool] = field(default_factory=dict)

    def empty(self) -> set[LaneKey]:
        """The lanes that have nothing more to give, not even what another transaction has locked."""
        ended = {lane for lane, drained in self.drained.items() if drained}
        return ended - {candidate.lane for candidate in self.skipped}


async def take(tx: Tx, waves: Sequence[Sequence[Bundle]], bounds: Mapping[LaneKey, datetime]) -> Taken:
    """Take from every bundle as much as it has for its takers, the smallest ready_time - offset first."""
    taken = Taken()
    for wave in waves:
        if len(wave) <= _FEW_LANES and all(len(bundle.offers) == 1 for bundle in wave):
            for bundle in sorted(wave, key=_first_lane):
                await _take_lane(tx, bundle, bounds, taken)
        else:
            await _Wave(tx, wave, bounds, taken).run()
    return taken


def _first_lane(bundle: Bundle) -> LaneKey:
    return bundle.offers[0].lane


async def _take_lane(tx: Tx, bundle: Bundle, bounds: Mapping[LaneKey, datetime], taken: Taken) -> None:
    """The head of the only lane of a bundle: what is found is what is taken."""
    lane, positions = _first_lane(bundle), bundle.positions()
    params = {
        **lane._asdict(),
        "after_time": bounds.get(lane, BEGINNING),
        "at_most": len(positions),
    }
    rows = await tx.fetch(statement("claim_lane"), params)
    # The delete does not keep the order.
    for position, (ready_time, task_id, has_lease, _) in zip(positions, sorted(rows), strict=False):
        taken.rows[Candidate(lane, ready_time, task_id, position)] = has_lease
    taken.drained[lane] = len(rows) < len(positions) or not rows[0][3]


@dataclass(slots=True)
class _Part:
    """A bundle on its way: to whom the next tasks go, which lanes may have more, what to read of each."""

    positions: list[int]
    offers: list[LaneOffer]
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
        self, tx: Tx, bundles: Iterable[Bundle], bounds: Mapping[LaneKey, datetime], taken: Taken
    ) -> None:
        self._tx = tx
        self._taken = taken
        self._parts = [_part(bundle) for bundle in bundles]
        # Where reading a lane begins: behind the last row that was taken or passed over.
        self._after: dict[LaneKey, tuple[datetime, str]] = {
            offer.lane: (bounds.get(offer.lane, BEGINNING), "")
            for part in self._parts
            for offer in part.offers
        }

    async def run(self) -> None:
        for _ in range(_ROUNDS):
            self._parts = [part for part in self._parts if part.wanted and part.offers]
            if not self._parts:
                break
            self._note(await self._tx.fetch(statement("claim_lanes"), self._params()))

    def _params(self) -> dict[str, object]:
        listed = [(n, part, offer) for n, part in enumerate(self._parts) for offer in part.offers]
        lanes = [offer.lane for _, _, offer in listed]
        after = [self._after[lane] for lane in lanes]
        return {
            **lane_arrays(lanes),
            "after_times": arrays.timestamps([time for time, _ in after]),
            "after_ids": arrays.texts([task_id for _, task_id in after]),
            "offsets": arrays.intervals([offer.offset for _, _, offer in listed]),
            "bundles": arrays.integers([n for n, _, _ in listed]),
            "counts": arrays.integers([part.wanted for _, part, _ in listed]),
            "pages": arrays.integers([part.page for _, part, _ in listed]),
        }

    def _note(self, rows: Sequence[Row]) -> None:
        listed = [(part, offer.lane) for part in self._parts for offer in part.offers]
        seen = {listed[n - 1][1]: place for n, place, task_id, *_ in rows if task_id is None}
        chosen: Counter[LaneKey] = Counter()
        for n, _, task_id, ready_time, has_lease in sorted(
            (row for row in rows if row[2] is not None), key=itemgetter(1)
        ):
            part, lane = listed[n - 1]
            chosen[lane] += 1
            self._after[lane] = (ready_time, task_id)
            if has_lease is None:
                self._taken.skipped.append(Candidate(lane, ready_time, task_id, part.position()))
            else:
                self._taken.rows[Candidate(lane, ready_time, task_id, part.position())] = has_lease
                part.given += 1
        for part in self._parts:
            self._go_on(part, seen, chosen)

    def _go_on(self, part: _Part, seen: Mapping[LaneKey, int], chosen: Mapping[LaneKey, int]) -> None:
        """Keep the lanes that were not read to their end, or of which something was left."""
        more: list[LaneOffer] = []
        for offer in part.offers:
            found = seen.get(offer.lane, 0)
            self._taken.drained[offer.lane] = empty = found < part.page and chosen[offer.lane] >= found
            if not empty:
                more.append(offer)
        part.offers = more
        part.page *= _GROWTH


def _part(bundle: Bundle) -> _Part:
    count = bundle.count
    page = min(count, 2 * count // len(bundle.offers) + _SPARE_ROWS)
    return _Part(bundle.positions(), list(bundle.offers), page)
