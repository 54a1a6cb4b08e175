"""Chooses which queued tasks each runner claims: merges the heads of lanes, without any lock.

The smallest ready_time - offset goes first, per runner and tenant, as long as counts and budget allow.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.storage.claim.claims import Amounts, LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import BEGINNING, LaneKey

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
    """The rows of a lane that were read and not chosen, and where the next read begins."""

    after: tuple[datetime, str]
    size: int
    rows: deque[tuple[datetime, str]] = field(default_factory=deque)
    exhausted: bool = False


Read = Callable[[Mapping[LaneKey, Page]], Awaitable[None]]


@dataclass(slots=True)
class _Runner:
    """What remains of a runner's claim."""

    claim: RunnerClaim
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
    """The choice of one claim. `read` fills the pages of lanes whose next rows are needed, many at a time."""

    def __init__(
        self, claims: Iterable[tuple[int, RunnerClaim]], bounds: Mapping[LaneKey, datetime], read: Read
    ) -> None:
        self._read = read
        self._runners = [
            _Runner(
                claim,
                position,
                claim.max_tasks,
                {tenant.tenant_id: tenant.max_tasks for tenant in claim.tenants},
                dict(claim.budget) if claim.budget is not None else None,
            )
            for position, claim in claims
        ]
        self._costs: dict[tuple[int, LaneKey], Amounts | None] = {}
        self._skipped: set[LaneKey] = set()
        self.pages = {
            lane: Page((bounds.get(lane, BEGINNING), ""), size)
            for lane, size in _page_sizes(_claims_of(self._runners))
        }

    async def choose(self) -> list[Candidate]:
        """Candidates for what is still wanted, each row at most once."""
        await self._fill()
        chosen: list[Candidate] = []
        for runner in self._runners:
            for tenant in runner.claim.tenants:
                if runner.tasks <= 0:
                    break
                await self._serve(runner, tenant, chosen)
        return chosen

    def refuse(self, skipped: Iterable[Candidate]) -> None:
        """Return candidates that another transaction has locked; `choose` then looks behind them."""
        by_position = {runner.position: runner for runner in self._runners}
        for candidate in skipped:
            lane = candidate.lane
            self._skipped.add(lane)
            cost = self._costs.get((candidate.position, lane))
            by_position[candidate.position].charge(lane.tenant_id, cost, -1)

    def drained(self, lanes: Iterable[LaneKey]) -> list[LaneKey]:
        """Those of the lanes that are drained."""
        pages = self.pages
        return [
            lane
            for lane in lanes
            if pages[lane].exhausted and not pages[lane].rows and lane not in self._skipped
        ]

    async def _serve(self, runner: _Runner, tenant: TenantClaim, chosen: list[Candidate]) -> None:
        # A claim may name a lane twice; its rows are one page.
        lanes = {lane_claim.lane: lane_claim for lane_claim in tenant.lanes}.values()
        heads = [(await self._rank(lane_claim), n, lane_claim) for n, lane_claim in enumerate(lanes)]
        heap = [(rank, n, lane_claim) for rank, n, lane_claim in heads if rank is not None]
        heapq.heapify(heap)
        while heap:
            _, n, lane_claim = heap[0]
            if not runner.affords(lane_claim.cost):
                heapq.heappop(heap)
                continue
            self._claim_rows(runner, lane_claim, chosen)
            if runner.tasks <= 0 or runner.tenants[tenant.tenant_id] <= 0:
                # The claim is complete, so the lane need not be read on.
                break
            rank = await self._rank(lane_claim)
            if rank is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (rank, n, lane_claim))

    def _claim_rows(self, runner: _Runner, lane_claim: LaneClaim, chosen: list[Candidate]) -> None:
        ready_time, task_id = self.pages[lane_claim.lane].rows.popleft()
        runner.charge(lane_claim.lane.tenant_id, lane_claim.cost)
        if lane_claim.cost is not None:
            self._costs[(runner.position, lane_claim.lane)] = lane_claim.cost
        chosen.append(Candidate(lane_claim.lane, ready_time, task_id, runner.position))

    async def _rank(self, lane_claim: LaneClaim) -> datetime | None:
        page = self.pages[lane_claim.lane]
        if not page.rows:
            await self._fill()
        return page.rows[0][0] - lane_claim.offset if page.rows else None

    async def _fill(self) -> None:
        """Read on in every lane whose rows have run out, in one go."""
        short = {lane: page for lane, page in self.pages.items() if not page.rows and not page.exhausted}
        if short:
            await self._read(short)


def _claims_of(runners: Sequence[_Runner]) -> list[RunnerClaim]:
    return [runner.claim for runner in runners]


def _page_sizes(claims: Sequence[RunnerClaim]) -> list[tuple[LaneKey, int]]:
    """How many rows to read of each lane: the demand for it, less where many lanes share that demand."""
    sizes: dict[LaneKey, int] = {}
    for claim in claims:
        for tenant in claim.tenants:
            demand = min(claim.max_tasks, tenant.max_tasks)
            share = min(demand, max(_FIRST_PAGE, 2 * demand // len(tenant.lanes)))
            for lane_claim in tenant.lanes:
                sizes[lane_claim.lane] = min(sizes.get(lane_claim.lane, 0) + share, _LARGEST_PAGE)
    return list(sizes.items())
