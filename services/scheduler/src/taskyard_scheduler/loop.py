"""The scheduling loop: when work or free capacity appears, it plans, claims and assigns tasks."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence, Set
from functools import partial
from typing import Any, Protocol

from taskyard import errors, tracing
from taskyard.v1 import lease_pb2
from taskyard.v1.lease_service_pb2 import ClaimForRunnersRequest, ClaimForRunnersResponse, RunnerClaimResult
from taskyard_kit import failpoint
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_scheduler import convert
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.claimed import Claimed, claimed_of
from taskyard_scheduler.domain.placement import RunnerProfile, judge
from taskyard_scheduler.domain.plan import RunnerPlan, Situation, make_plan
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.fleet import Fleet, refusal_seconds
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.metric_names import ASSIGNED, CLAIM_DURATION
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.runner_claims import note_result, runner_claim
from taskyard_scheduler.session import Session

# How long a runner is skipped after a claim returned nothing although its lanes are not empty: its budget is
# too small, or the tasks are locked.
HOLD_SECONDS = 1.0
MAX_RUNNERS = 1000
# How many first leases long the scheduler tries to release the tasks of a claim whose response was lost.
RELEASE_LEASES = 8

CLAIMED = failpoint.declare("dispatch.claimed")

log = get_log(__name__)

_assigned = instrument(ASSIGNED)
_claim_duration = instrument(CLAIM_DURATION)


class ClaimClient(Protocol):
    """taskdb, as far as claims need it; raises taskyard.errors."""

    async def claim_for_runners(self, request: ClaimForRunnersRequest) -> ClaimForRunnersResponse: ...


GiveBack = Callable[[str, Sequence[Claimed]], None]


class Dispatcher:
    """One claim for all runners is in flight at a time; capacity that becomes free meanwhile is in the next.

    `available` is cleared while taskdb cannot be reached; no claims are made then. `give_back` releases
    claimed tasks whose runner is gone.
    """

    def __init__(
        self,
        taskdb: ClaimClient,
        board: LaneBoard,
        fleet: Fleet,
        config: LinkConfig,
        give_back: GiveBack,
        *,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
    ) -> None:
        self.available = False
        self._taskdb = taskdb
        self._board = board
        self._fleet = fleet
        self._config = config
        self.give_back = give_back
        self._strict = strict
        self._clock = clock
        self._backoff = backoff or Backoff()
        # Called when work or capacity may have changed, and after claims.
        self.on_change: Callable[[], None] = _ignore
        self._woken = asyncio.Event()
        self._held_back: dict[str, float] = {}
        self._background: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Plan again: work or capacity may have changed."""
        self._woken.set()
        self.on_change()

    def lanes_changed(self) -> None:
        self._held_back.clear()
        self.wake()

    def capacity_changed(self, key: str) -> None:
        self._held_back.pop(key, None)
        self.wake()

    async def run(self) -> None:
        """Dispatch until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self.available and (plans := self._plan_all()):
                await self._carry_out(plans)
            self.on_change()

    def _plan_all(self) -> list[RunnerPlan]:
        if not self._board:
            return []
        now = self._clock()
        self._held_back = {key: until for key, until in self._held_back.items() if until > now}
        return self._plan(self._fleet.offers(now, self._held_back), now)

    def _plan(self, offers: Sequence[Offer], now: float) -> list[RunnerPlan]:
        fleet = self._fleet
        situation = Situation(
            fleet.matches,
            fleet.capacity,
            partial(fleet.permits, now=now),
            fleet.executing,
            partial(fleet.accepts_work, now=now),
            self._strict,
        )
        return make_plan(offers, self._board.agenda, situation, now)

    async def _carry_out(self, plans: Sequence[RunnerPlan]) -> None:
        for_sessions: list[tuple[Session, RunnerPlan]] = []
        for plan in plans:
            claimant = self._fleet.claimant(plan.offer.key)
            if isinstance(claimant, Session):
                for_sessions.append((claimant, plan))
            elif isinstance(claimant, PullClaim):
                self._start_claim(claimant, plan)
        for start in range(0, len(for_sessions), MAX_RUNNERS):
            await self._claim_for_sessions(for_sessions[start : start + MAX_RUNNERS])

    # ---- runners on the link

    async def _claim_for_sessions(self, group: Sequence[tuple[Session, RunnerPlan]]) -> None:
        version = self._board.version
        claim_time = self._clock()
        # The last heartbeats before the claim is sent: a later one would extend the first lease.
        heartbeats = [session.heartbeat_id for session, _ in group]
        states = [planned_state(session) for session, _ in group]
        request = ClaimForRunnersRequest(
            scheduler_id=self._config.scheduler_id,
            request_id=uuid.uuid4().hex,
            runners=[
                runner_claim(plan, session.epoch, self._config.first_lease, heartbeat_id)
                for (session, plan), heartbeat_id in zip(group, heartbeats, strict=True)
            ],
            # With tracing, each assignment gets a span of its own.
            packed=not tracing.enabled(),
        )
        response = await self._claim_with_retries(request, claim_time)
        await CLAIMED.reach()
        if response is None:
            for _, plan in group:
                self._hold_back(plan.offer.key)
            return
        results = list(zip(group, response.results, strict=True))
        for ((session, plan), result), heartbeat_id, before in zip(results, heartbeats, states, strict=True):
            doubtful = plan.depends_on_running_types or planned_state(session) != before
            self._hand_out(session, result, heartbeat_id, claim_time, doubtful=doubtful)
        moved = [(plan, note_result(self._board, plan, result, version)) for (_, plan), result in results]
        self._pass_over(moved)

    async def _claim_with_retries(
        self, request: ClaimForRunnersRequest, claim_time: float
    ) -> ClaimForRunnersResponse | None:
        """Sends a claim and repeats it on errors while the leases it may have granted are still usable."""
        while True:
            try:
                response = await self._taskdb.claim_for_runners(request)
            except errors.TaskyardError as error:
                log.warning("claim_failed", runners=len(request.runners), error=str(error))
                if not error.retryable:
                    return None
                if self._clock() - claim_time >= self._config.first_lease:
                    self._in_background(self._release_late(request))
                    return None
                await asyncio.sleep(self._backoff.next())
            else:
                self._backoff.reset()
                _claim_duration.add(self._clock() - claim_time, {})
                return response

    async def _release_late(self, request: ClaimForRunnersRequest) -> None:
        """Releases the tasks of a claim whose response is late: its runners can no longer start them."""
        backoff = Backoff()
        deadline = self._clock() + RELEASE_LEASES * self._config.first_lease
        while self._clock() < deadline:
            await asyncio.sleep(backoff.next())
            try:
                response = await self._taskdb.claim_for_runners(request)
            except errors.TaskyardError as error:
                if error.retryable:
                    continue
                return
            for claim, result in zip(request.runners, response.results, strict=True):
                self.give_back(claim.runner_id, claimed_of(result, claim.heartbeat_id))
            return

    def _hand_out(
        self,
        session: Session,
        result: RunnerClaimResult,
        heartbeat_id: int,
        claim_time: float,
        *,
        doubtful: bool,
    ) -> None:
        if result.error.code:
            session.lose(self._clock())
            return
        if tracing.enabled():
            for assignment in result.assignments:
                trace(assignment, session.runner_id)
        if found := claimed_of(result, heartbeat_id):
            self.hand_out(session, found, claim_time, doubtful=doubtful, way="link")

    def hand_out(
        self, session: Session, found: list[Claimed], claim_time: float, *, doubtful: bool, way: str
    ) -> None:
        """Sends leased tasks to their runner, and releases those that it can no longer take."""
        _assigned.add(len(found), {"way": way})
        unfit: list[Claimed] = []
        if doubtful:
            # A change of the runner during the claim may rule a task out: it is released to another runner.
            found, unfit = _split_by_fit(session, found, self._clock())
        unsent = session.assign(found, claim_time)
        if unfit or unsent:
            self.give_back(session.runner_id, [*unfit, *unsent])

    def _pass_over(self, moved: Sequence[tuple[RunnerPlan, Set[str]]]) -> None:
        """Stalls tenants of which nothing was claimed, and holds back runners that got nothing else."""
        given = {tenant for _, tenants in moved for tenant in tenants}
        for plan, tenants in moved:
            stuck = [found.tenant for found in plan.tenants if found.tenant not in given]
            for tenant in stuck:
                self._board.stall(tenant)
            if not tenants and len(stuck) < len(plan.tenants):
                self._hold_back(plan.offer.key)
            elif stuck:
                self._wake_later()

    def _hold_back(self, key: str) -> None:
        self._held_back[key] = self._clock() + HOLD_SECONDS
        self._wake_later()

    def _wake_later(self) -> None:
        asyncio.get_running_loop().call_later(HOLD_SECONDS, self._woken.set)

    # ---- pull workers

    def _start_claim(self, claim: PullClaim, plan: RunnerPlan) -> None:
        claim.claim_started()
        self._in_background(self._claim_for_pull(claim, plan))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def claim_for_pull(self, claim: PullClaim) -> None:
        """Claims for a pull worker now, from the lanes that have work for it."""
        claim.claim_started()
        plans = self._plan([claim.whole_offer()], self._clock())
        await self._claim_for_pull(claim, plans[0] if plans else RunnerPlan(claim.whole_offer(), []))

    async def _claim_for_pull(self, claim: PullClaim, plan: RunnerPlan) -> None:
        version = self._board.version
        message = runner_claim(plan, 0, claim.lease_duration, 0)
        message.max_tasks = claim.max_tasks
        request = ClaimForRunnersRequest(
            scheduler_id=self._config.scheduler_id, request_id=claim.claim_request_id, runners=[message]
        )
        try:
            response = await self._taskdb.claim_for_runners(request)
        except errors.TaskyardError as error:
            claim.fail(error)
            return
        result = response.results[0]
        if tracing.enabled():
            for assignment in result.assignments:
                trace(assignment, claim.worker_id)
        if not note_result(self._board, plan, result, version):
            self._hold_back(claim.key)
        _assigned.add(len(result.assignments), {"way": "pull"})
        claim.resolve(result.assignments)
        self.wake()


def _ignore() -> None:
    pass


def planned_state(session: Session) -> tuple[RunnerProfile, int]:
    """The state a claim was planned with; it differs once the runner changed or refused a task."""
    return session.profile, session.refusals.count


def _split_by_fit(
    session: Session, found: Sequence[Claimed], now: float
) -> tuple[list[Claimed], list[Claimed]]:
    """Splits claimed tasks into those that still fit the runner and the others."""
    fit: list[Claimed] = []
    unfit: list[Claimed] = []
    room, budget = session.capacity.room(now), session.capacity.budget
    for one in found:
        cost = one.workload.cost
        affords = budget is None or budget.holds(cost)
        if len(fit) < room and affords and _fits(session, one, now):
            fit.append(one)
            budget = budget.less(cost) if budget is not None else None
        else:
            unfit.append(one)
    return fit, unfit


def _fits(session: Session, one: Claimed, now: float) -> bool:
    """Whether the runner is still eligible for the task."""
    tenant = convert.tenant_of(one.key[0])
    wanted = convert.class_of(one.assignment().spec)
    if not session.profile.serves(tenant) or refusal_seconds(session, tenant, wanted, now) > 0:
        return False
    return judge(session.profile, wanted, session.capacity.executing()).eligible


def trace(assignment: lease_pb2.Assignment, runner_id: str) -> None:
    """Adds a span for the dispatch, between the spans of the submission and of the runner."""
    with tracing.span(
        "dispatch",
        traceparent=assignment.traceparent,
        kind="producer",
        task=assignment.lease.task,
        generation=assignment.lease.generation,
        runner=runner_id,
    ):
        assignment.traceparent = tracing.current_traceparent()
