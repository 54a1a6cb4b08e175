"""The scheduling loop: woken by work and by free capacity, it plans, claims and hands out."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence, Set
from functools import partial
from typing import Any, Protocol

from taskyard import errors, tracing
from taskyard.v1 import lease_pb2
from taskyard.v1.lease_service_pb2 import PopResult, PopTasksRequest, PopTasksResponse
from taskyard_kit import failpoint
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_scheduler import convert
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.claims import Claim
from taskyard_scheduler.domain.placement import RunnerProfile, judge
from taskyard_scheduler.domain.plan import RunnerPlan, Situation, make_plan
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.fleet import Fleet, refusal_seconds
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.metric_names import ASSIGNED, CLAIM_DURATION
from taskyard_scheduler.pops import note_result, runner_pop
from taskyard_scheduler.session import Session

# How long a runner waits that was given nothing although its lanes are not empty: its budget is too small,
# or the tasks are locked.
HOLD_SECONDS = 1.0
MAX_RUNNERS = 1000
# For so many first leases it is tried to give back what a claim got whose answer was lost.
RETURN_LEASES = 8

CLAIMED = failpoint.declare("dispatch.claimed")

log = get_log(__name__)

_assigned = instrument(ASSIGNED)
_claim_duration = instrument(CLAIM_DURATION)


class PopClient(Protocol):
    """taskdb, as far as claims need it; raises taskyard.errors."""

    async def pop_tasks(self, request: PopTasksRequest) -> PopTasksResponse: ...


GiveBack = Callable[[str, Sequence[lease_pb2.Assignment]], None]


class Dispatcher:
    """One claim of all runners is in flight at a time; what becomes free meanwhile is in the next.

    `available` is cleared while taskdb cannot be reached: nothing is granted then. `give_back` returns
    claimed tasks whose runner is gone.
    """

    def __init__(
        self,
        taskdb: PopClient,
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
        self._give_back = give_back
        self._strict = strict
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._woken = asyncio.Event()
        self._held_back: dict[str, float] = {}
        self._background: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Something may be possible that was not before."""
        self._woken.set()

    def lanes_changed(self) -> None:
        self._held_back.clear()
        self._woken.set()

    def capacity_changed(self, key: str) -> None:
        self._held_back.pop(key, None)
        self._woken.set()

    async def run(self) -> None:
        """Dispatch for ever."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self.available and (plans := self._plan_all()):
                await self._carry_out(plans)

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
            partial(fleet.working, now=now),
            self._strict,
        )
        return make_plan(offers, self._board.agenda, situation, now)

    async def _carry_out(self, plans: Sequence[RunnerPlan]) -> None:
        for_sessions: list[tuple[Session, RunnerPlan]] = []
        for plan in plans:
            taker = self._fleet.taker(plan.offer.key)
            if isinstance(taker, Session):
                for_sessions.append((taker, plan))
            elif isinstance(taker, Claim):
                self._start_claim(taker, plan)
        for start in range(0, len(for_sessions), MAX_RUNNERS):
            await self._pop_for_sessions(for_sessions[start : start + MAX_RUNNERS])

    # ---- runners on the link

    async def _pop_for_sessions(self, group: Sequence[tuple[Session, RunnerPlan]]) -> None:
        version = self._board.version
        claim_time = self._clock()
        # The heartbeats known before the claim is sent: a later one would stretch the first lease.
        heartbeats = [session.heartbeat_id for session, _ in group]
        known = [_known(session) for session, _ in group]
        request = PopTasksRequest(
            scheduler_id=self._config.scheduler_id,
            request_id=uuid.uuid4().hex,
            runners=[runner_pop(plan, session.epoch, self._config.first_lease) for session, plan in group],
        )
        response = await self._ask(request, claim_time)
        await CLAIMED.reach()
        if response is None:
            for _, plan in group:
                self._hold_back(plan.offer.key)
            return
        answered = list(zip(group, response.results, strict=True))
        for ((session, plan), result), heartbeat_id, before in zip(answered, heartbeats, known, strict=True):
            doubtful = plan.moody or _known(session) != before
            self._hand_out(session, result, heartbeat_id, claim_time, doubtful=doubtful)
        moved = [(plan, note_result(self._board, plan, result, version)) for (_, plan), result in answered]
        self._pass_over(moved)

    async def _ask(self, request: PopTasksRequest, claim_time: float) -> PopTasksResponse | None:
        """The answer to a claim, repeated while the leases it may have granted can still be used."""
        while True:
            try:
                response = await self._taskdb.pop_tasks(request)
            except errors.TaskyardError as error:
                log.warning("claim_failed", runners=len(request.runners), error=str(error))
                if not error.retryable:
                    return None
                if self._clock() - claim_time >= self._config.first_lease:
                    self._in_background(self._return_late(request))
                    return None
                await asyncio.sleep(self._backoff.next())
            else:
                self._backoff.reset()
                _claim_duration.add(self._clock() - claim_time, {})
                return response

    async def _return_late(self, request: PopTasksRequest) -> None:
        """Give back what a claim got that was not answered in time: its runners can no longer use it."""
        backoff = Backoff()
        give_up = self._clock() + RETURN_LEASES * self._config.first_lease
        while self._clock() < give_up:
            await asyncio.sleep(backoff.next())
            try:
                response = await self._taskdb.pop_tasks(request)
            except errors.TaskyardError as error:
                if error.retryable:
                    continue
                return
            for pop, result in zip(request.runners, response.results, strict=True):
                self._give_back(pop.runner_id, list(result.assignments))
            return

    def _hand_out(
        self,
        session: Session,
        result: PopResult,
        heartbeat_id: int,
        claim_time: float,
        *,
        doubtful: bool,
    ) -> None:
        if result.error.code:
            session.lose(self._clock())
            return
        # Each look at a repeated field makes its objects anew; one list serves all.
        assignments = list(result.assignments)
        if not assignments:
            return
        if tracing.enabled():
            for assignment in assignments:
                _trace(assignment, session.runner_id)
        _assigned.add(len(assignments), {"way": "link"})
        unfit: list[lease_pb2.Assignment] = []
        if doubtful:
            # What changed while the claim was under way may rule a task out: it goes to another runner.
            assignments, unfit = _sort_out(session, assignments, self._clock())
        unsent = session.assign(assignments, heartbeat_id, claim_time)
        if unfit or unsent:
            self._give_back(session.runner_id, [*unfit, *unsent])

    def _pass_over(self, moved: Sequence[tuple[RunnerPlan, Set[str]]]) -> None:
        """Let tenants wait of whom nobody got anything, and runners that got nothing of what others did."""
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

    def _start_claim(self, claim: Claim, plan: RunnerPlan) -> None:
        claim.pop_started()
        self._in_background(self._pop_for_claim(claim, plan))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def pop_for_claim(self, claim: Claim) -> None:
        """Make the pop of a claim now, for whatever lanes are known to have work for it."""
        claim.pop_started()
        plans = self._plan([claim.whole_offer()], self._clock())
        await self._pop_for_claim(claim, plans[0] if plans else RunnerPlan(claim.whole_offer(), []))

    async def _pop_for_claim(self, claim: Claim, plan: RunnerPlan) -> None:
        version = self._board.version
        pop = runner_pop(plan, 0, claim.lease_duration)
        pop.max_tasks = claim.max_tasks
        request = PopTasksRequest(
            scheduler_id=self._config.scheduler_id, request_id=claim.pop_id, runners=[pop]
        )
        try:
            response = await self._taskdb.pop_tasks(request)
        except errors.TaskyardError as error:
            claim.fail(error)
            return
        result = response.results[0]
        if tracing.enabled():
            for assignment in result.assignments:
                _trace(assignment, claim.worker_id)
        if not note_result(self._board, plan, result, version):
            self._hold_back(claim.key)
        _assigned.add(len(result.assignments), {"way": "pull"})
        claim.resolve(result.assignments)
        self.wake()


def _known(session: Session) -> tuple[RunnerProfile, int]:
    """What a claim was planned with; another value says that the runner changed, or refused something."""
    return session.profile, session.refusals.count


def _sort_out(
    session: Session, assignments: Sequence[lease_pb2.Assignment], now: float
) -> tuple[list[lease_pb2.Assignment], list[lease_pb2.Assignment]]:
    """Those that the runner may still have and has room for, and the others."""
    fit: list[lease_pb2.Assignment] = []
    unfit: list[lease_pb2.Assignment] = []
    room, budget = session.capacity.room(now), session.capacity.budget
    for assignment in assignments:
        cost = convert.resources(assignment.spec.resources)
        affords = budget is None or budget.holds(cost)
        if len(fit) < room and affords and _fits(session, assignment, now):
            fit.append(assignment)
            budget = budget.less(cost) if budget is not None else None
        else:
            unfit.append(assignment)
    return fit, unfit


def _fits(session: Session, assignment: lease_pb2.Assignment, now: float) -> bool:
    """Whether the runner may still have the task."""
    tenant = convert.tenant_of(assignment.lease.task)
    wanted = convert.class_of(assignment.spec)
    if not session.profile.serves(tenant) or refusal_seconds(session, tenant, wanted, now) > 0:
        return False
    return judge(session.profile, wanted, session.capacity.executing()).eligible


def _trace(assignment: lease_pb2.Assignment, runner_id: str) -> None:
    """A span for the dispatch, between the submission's and the runner's."""
    with tracing.span(
        "dispatch",
        traceparent=assignment.traceparent,
        kind="producer",
        task=assignment.lease.task,
        generation=assignment.lease.generation,
        runner=runner_id,
    ):
        assignment.traceparent = tracing.current_traceparent()
