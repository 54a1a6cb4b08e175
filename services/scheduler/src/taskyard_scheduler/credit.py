"""Keeps credit with taskdb: lends places of idle runners, and sends the tasks that were leased on them.

taskdb grants leases, this scheduler alone sends them. So a lease that arrives for a place that is gone costs
a release and never a place too many, and one that does not arrive expires like any that was not started.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from taskyard import errors, tracing
from taskyard.v1.lease_service_pb2 import (
    EagerAssignments,
    KeepCreditRequest,
    KeepCreditResponse,
    RunnerCredit,
)
from taskyard_kit.logs import get_log
from taskyard_scheduler import convert
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.claimed import Claimed, claimed
from taskyard_scheduler.domain.credit import Decision, Lender, Loan, decide
from taskyard_scheduler.domain.placement import RunnerProfile
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig, duration
from taskyard_scheduler.loop import Dispatcher, planned_state, trace
from taskyard_scheduler.session import Session

# Credit that is not confirmed for so long is void, and the interval at which it is confirmed.
VALID_SECONDS = 3.0
CONFIRM_SECONDS = 1.0
# Between two decisions; longer with many runners, so that deciding takes a small part of the time.
PAUSE_SECONDS = 0.001
PAUSE_FACTOR = 5
# The same while work waits and nothing is lent: a backlog costs next to nothing.
BACKLOG_SECONDS = 0.02
# A backlog is counted up to here.
COUNTED_BACKLOG = 1000
# Until a taskdb that does not know KeepCredit is tried again.
UNKNOWN_SECONDS = 60.0
MAX_RUNNERS = 1000

log = get_log(__name__)


class Stream(Protocol):
    """An open KeepCredit; raises taskyard.errors."""

    async def write(self, request: KeepCreditRequest) -> None: ...
    async def read(self) -> KeepCreditResponse | None: ...
    def cancel(self) -> None: ...


class CreditClient(Protocol):
    """taskdb, as far as credit needs it."""

    def keep_credit(self) -> Stream: ...


@dataclass(slots=True)
class _Loaned:
    """The credit of one session as taskdb knows it."""

    session: Session
    class_ids: frozenset[int]
    heartbeat_id: int
    state: tuple[RunnerProfile, int]
    withdrawing: bool = False


class CreditKeeper:
    """Lends and withdraws places whenever work or capacity has changed."""

    def __init__(
        self,
        taskdb: CreditClient,
        board: LaneBoard,
        fleet: Fleet,
        dispatcher: Dispatcher,
        config: LinkConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
    ) -> None:
        self._taskdb = taskdb
        self._board = board
        self._fleet = fleet
        self._dispatcher = dispatcher
        self._config = config
        self._clock = clock
        self._backoff = backoff or Backoff(0.1, 1.0)
        self._woken = asyncio.Event()
        self._loaned: dict[str, _Loaned] = {}
        # The classes of runners, as of a version of matches and classes.
        self._fitting: dict[str, tuple[tuple[int, int, bool], frozenset[int]]] = {}
        self._sent_position = (-1, "")
        self._sent_time = -math.inf

    def wake(self) -> None:
        """Decide again: work or capacity may have changed."""
        self._woken.set()

    async def run(self) -> None:
        """Keep credit until cancelled."""
        while True:
            wait = self._backoff.next()
            stream = self._taskdb.keep_credit()
            writing = asyncio.create_task(self._write(stream))
            try:
                while (response := await stream.read()) is not None:
                    self._backoff.reset()
                    self.take(response)
            except errors.TaskyardError as error:
                log.info("credit_lost", error=str(error))
                if error.code == errors.Code.UNIMPLEMENTED:
                    wait = UNKNOWN_SECONDS
            finally:
                writing.cancel()
                stream.cancel()
                self._forget()
            await asyncio.sleep(wait)

    async def _write(self, stream: Stream) -> None:
        try:
            while True:
                await self._wait()
                start = self._clock()
                for request in self.decide():
                    await stream.write(request)
                least = BACKLOG_SECONDS if self._board and not self._loaned else PAUSE_SECONDS
                await asyncio.sleep(max(least, PAUSE_FACTOR * (self._clock() - start)))
        except errors.TaskyardError:
            # The reader gets the reason.
            return

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(CONFIRM_SECONDS, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()

    def _forget(self) -> None:
        """The stream has ended, and with it the credit: what taskdb still grants does not arrive."""
        for loaned in self._loaned.values():
            loaned.session.lent = 0
        self._loaned.clear()
        self._sent_position, self._sent_time = (-1, ""), -math.inf
        self._dispatcher.wake()

    # ---- lending

    def decide(self) -> list[KeepCreditRequest]:
        """What taskdb has to be sent now."""
        now = self._clock()
        credits = self._withdraw_ended()
        if len(self._fitting) > 2 * len(self._fleet.sessions) + 100:
            self._fitting.clear()
        lenders = [self._lender(session, now) for session in self._fleet.sessions.values()]
        lent = {key: loaned.class_ids for key, loaned in self._loaned.items()}
        decision = decide(lenders, self._waits(), self._backlog(), self._classes, lent)
        credits += [self._withdraw(key) for key in decision.withdrawn]
        credits += [self._lend(loan, now) for loan in self._with_heartbeats(decision, lenders)]
        return list(self._requests(credits, decision.considered, now))

    def _lender(self, session: Session, now: float) -> Lender:
        loaned = self._loaned.get(session.runner_id)
        key = session.runner_id
        return Lender(
            key,
            session.capacity.room(now),
            session.lent,
            open=self._dispatcher.available
            and session.accepts_work(now)
            and not session.refusals.prune(now)
            and key not in self._board.agenda.reservations.held,
            withdrawing=loaned is not None and loaned.withdrawing,
            accounted=session.capacity.budget is not None,
        )

    def _waits(self) -> Callable[[str], bool]:
        agenda, matches = self._board.agenda, self._fleet.matches
        # Tenants that are paused or at their quota wait for something else than a place.
        if all(tenant.blocked_until == math.inf for tenant in agenda.tenants.values()):
            return lambda key: False
        busy = [agenda.classes.get(class_id) for class_id in agenda.busy]
        return lambda key: any(wanted is None or key in matches.of(wanted) for wanted in busy)

    def _backlog(self) -> int:
        count = 0
        for tenant in self._board.agenda.tenants.values() if self._loaned else ():
            count += sum(lane.backlog for lane in tenant.lanes.values())
            if count >= COUNTED_BACKLOG:
                break
        return count

    def _classes(self, lender: Lender) -> frozenset[int]:
        recent, matches = self._board.recent, self._fleet.matches
        version = (matches.version, recent.version, lender.accounted)
        known = self._fitting.get(lender.key)
        if known is None or known[0] != version:
            known = self._fitting[lender.key] = (version, recent.fitting(lender, matches))
        return known[1]

    def _with_heartbeats(self, decision: Decision, lenders: list[Lender]) -> list[Loan]:
        """The loans, and the others whose runner has sent a heartbeat: first leases count from it."""
        changing = {loan.key for loan in decision.loans} | set(decision.withdrawn)
        fresh = [
            Loan(lender.key, 0, loaned.class_ids)
            for lender in lenders
            if lender.open
            and not lender.withdrawing
            and lender.key not in changing
            and (loaned := self._loaned.get(lender.key)) is not None
            and loaned.heartbeat_id != loaned.session.heartbeat_id
        ]
        return decision.loans + fresh

    def _lend(self, loan: Loan, now: float) -> RunnerCredit:
        session = self._fleet.sessions[loan.key]
        session.lent += loan.places
        self._loaned[loan.key] = _Loaned(
            session, loan.class_ids, session.heartbeat_id, planned_state(session)
        )
        return RunnerCredit(
            runner_id=loan.key,
            session_epoch=session.epoch,
            places=loan.places,
            heartbeat_id=session.heartbeat_id,
            valid_for=duration(max(0.0, session.heartbeat_time + self._config.fresh_limit - now)),
            lease_duration=duration(self._config.first_lease),
            class_ids=loan.class_ids,
            tenants=session.profile.tenants,
        )

    def _withdraw(self, key: str) -> RunnerCredit:
        self._loaned[key].withdrawing = True
        return RunnerCredit(runner_id=key, session_epoch=self._loaned[key].session.epoch, withdrawn=True)

    def _withdraw_ended(self) -> list[RunnerCredit]:
        """Withdraws the credit of sessions that have ended; nothing waits for their places."""
        sessions = self._fleet.sessions
        ended = [key for key, loaned in self._loaned.items() if sessions.get(key) is not loaned.session]
        credits = [self._withdraw(key) for key in ended if not self._loaned[key].withdrawing]
        for key in ended:
            self._loaned.pop(key).session.lent = 0
            self._fitting.pop(key, None)
        return credits

    def _requests(self, credits: list[RunnerCredit], considered: bool, now: float) -> list[KeepCreditRequest]:
        position = self._board.position
        name = (position.number, position.replica_id)
        moved = considered and name != self._sent_position
        due = now - self._sent_time >= CONFIRM_SECONDS
        if not credits and not (self._loaned and (moved or due)):
            return []
        if considered:
            self._sent_position = name
        self._sent_time = now
        requests = [
            KeepCreditRequest(
                scheduler_id=self._config.scheduler_id,
                valid_for=duration(VALID_SECONDS),
                runners=credits[start : start + MAX_RUNNERS],
            )
            for start in range(0, max(1, len(credits)), MAX_RUNNERS)
        ]
        for request in requests:
            number, replica_id = self._sent_position
            request.position.number, request.position.replica_id = number, replica_id
        return requests

    # ---- uses

    def take(self, response: KeepCreditResponse) -> None:
        """Sends the tasks of a response to their runners, and takes settled places back."""
        for granted in response.granted:
            self._hand_out(granted)
        for key in response.settled:
            loaned = self._loaned.get(key)
            if loaned is not None and loaned.withdrawing:
                del self._loaned[key]
                loaned.session.lent = 0
                self._dispatcher.capacity_changed(key)
        self._woken.set()

    @staticmethod
    def _claimed(granted: EagerAssignments) -> list[Claimed]:
        found = []
        for assignment in granted.assignments:
            if tracing.enabled():
                trace(assignment, granted.runner_id)
            assignment.heartbeat_id = granted.heartbeat_id
            found.append(claimed(assignment))
        return found

    def _hand_out(self, granted: EagerAssignments) -> None:
        found = self._claimed(granted)
        loaned = self._loaned.get(granted.runner_id)
        session = self._fleet.sessions.get(granted.runner_id)
        if session is None or session.epoch != granted.session_epoch:
            self._dispatcher.give_back(granted.runner_id, found)
            return
        session.lent = max(0, session.lent - len(found))
        now = self._clock()
        doubtful = (
            loaned is None
            or loaned.state != planned_state(session)
            or session.capacity.room(now) < len(found)
        )
        self._dispatcher.hand_out(session, found, now, doubtful=doubtful, way="eager")
        for tenant, count in Counter(convert.tenant_of(one.key[0]) for one in found).items():
            self._board.claimed(tenant, (), count)
