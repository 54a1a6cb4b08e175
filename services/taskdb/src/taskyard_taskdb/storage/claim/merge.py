"""Which queued tasks go to which runner of a pop: the heads of lanes merged, without any lock.

The smallest ready_time - offset goes first, per runner and tenant, as long as counts and budget allow.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from taskyard_taskdb.storage.claim.claims import Amounts, LaneOffer, RunnerWant, TenantWant
from taskyard_taskdb.storage.claim.lane import LaneKey

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST_PAGE = 16
_LARGEST_PAGE = 2000


class Candidate(NamedTuple):
    """A queue row that is to be claimed for the runner at `position` of the request."""

    lane: LaneKey
    ready_time: datetime
    task_id: str
    position: int


@dataclass(slots=True)
class Page:
    """What is known of a lane: rows not yet given away, and where the next read begins."""

    after: tuple[datetime, str]
    size: int
    rows: deque[tuple[datetime, str]] = field(default_factory=deque)
    exhausted: bool = False


Read = Callable[[Mapping[LaneKey, Page]], Awaitable[None]]


@dataclass(slots=True)
class _Runner:
    """What is left of a runner's wish."""

    want: RunnerWant
    position: int
    tasks: int
    tenants: dict[str, int]
    budget: dict[str, int] | None

    def affords(self, cost: Amounts | None) -> bool:
        if self.budget is None or cost is None:
            return True
        return all(self.budget.get(name, 0) >= amount for name, amount in cost.items())

    def charge(self, tenant_id: str, cost: Amounts | None, sign: int = 1) -> None:
        self.tasks -= sign
        self.tenants[tenant_id] -= sign
        if self.budget is not None and cost is not None:
            for name, amount in cost.items():
                self.budget[name] = self.budget.get(name, 0) - sign * amount


class Merge:
    """The choice of one pop. `read` fills the pages of lanes whose next rows are needed, many at a time."""

    def __init__(
        self, wants: Iterable[tuple[int, RunnerWant]], bounds: Mapping[LaneKey, datetime], read: Read
    ) -> None:
        self._read = read
        self._runners = [
            _Runner(
                want,
                position,
                want.max_tasks,
                {tenant.tenant_id: tenant.max_tasks for tenant in want.tenants},
                dict(want.budget) if want.budget is not None else None,
            )
            for position, want in wants
        ]
        self._costs: dict[tuple[int, LaneKey], Amounts | None] = {}
        self._skipped: set[LaneKey] = set()
        self.pages = {
            lane: Page((bounds.get(lane, BEGINNING), ""), size)
            for lane, size in _page_sizes(_wants_of(self._runners))
        }

    async def choose(self) -> list[Candidate]:
        """Candidates for what is still wanted, each row at most once."""
        await self._fill()
        chosen: list[Candidate] = []
        for runner in self._runners:
            for tenant in runner.want.tenants:
                if runner.tasks <= 0:
                    break
                await self._serve(runner, tenant, chosen)
        return chosen

    def refuse(self, skipped: Iterable[Candidate]) -> None:
        """Take back candidates that another transaction has locked; `choose` then looks behind them."""
        by_position = {runner.position: runner for runner in self._runners}
        for candidate in skipped:
            lane = candidate.lane
            self._skipped.add(lane)
            cost = self._costs.get((candidate.position, lane))
            by_position[candidate.position].charge(lane.tenant_id, cost, -1)

    def drained(self, lanes: Iterable[LaneKey]) -> list[LaneKey]:
        """Those of the lanes that had nothing more to give."""
        pages = self.pages
        return [
            lane
            for lane in lanes
            if pages[lane].exhausted and not pages[lane].rows and lane not in self._skipped
        ]

    async def _serve(self, runner: _Runner, tenant: TenantWant, chosen: list[Candidate]) -> None:
        heads = [(await self._rank(offer), n, offer) for n, offer in enumerate(tenant.lanes)]
        heap = [(rank, n, offer) for rank, n, offer in heads if rank is not None]
        heapq.heapify(heap)
        while heap:
            _, n, offer = heap[0]
            if not runner.affords(offer.cost):
                heapq.heappop(heap)
                continue
            self._take(runner, offer, chosen)
            if runner.tasks <= 0 or runner.tenants[tenant.tenant_id] <= 0:
                # Before the lane is read on, which nobody needs any more.
                break
            rank = await self._rank(offer)
            if rank is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (rank, n, offer))

    def _take(self, runner: _Runner, offer: LaneOffer, chosen: list[Candidate]) -> None:
        ready_time, task_id = self.pages[offer.lane].rows.popleft()
        runner.charge(offer.lane.tenant_id, offer.cost)
        if offer.cost is not None:
            self._costs[(runner.position, offer.lane)] = offer.cost
        chosen.append(Candidate(offer.lane, ready_time, task_id, runner.position))

    async def _rank(self, offer: LaneOffer) -> datetime | None:
        page = self.pages[offer.lane]
        if not page.rows:
            await self._fill()
        return page.rows[0][0] - offer.offset if page.rows else None

    async def _fill(self) -> None:
        """Read on in every lane whose rows have run out, in one go."""
        short = {lane: page for lane, page in self.pages.items() if not page.rows and not page.exhausted}
        if short:
            await self._read(short)


def _wants_of(runners: Sequence[_Runner]) -> list[RunnerWant]:
    return [runner.want for runner in runners]


def _page_sizes(wants: Sequence[RunnerWant]) -> list[tuple[LaneKey, int]]:
    """How many rows to read of each lane: the demand for it, less where many lanes share that demand."""
    sizes: dict[LaneKey, int] = {}
    for want in wants:
        for tenant in want.tenants:
            demand = min(want.max_tasks, tenant.max_tasks)
            share = min(demand, max(_FIRST_PAGE, 2 * demand // len(tenant.lanes)))
            for offer in tenant.lanes:
                sizes[offer.lane] = min(sizes.get(offer.lane, 0) + share, _LARGEST_PAGE)
    return list(sizes.items())
