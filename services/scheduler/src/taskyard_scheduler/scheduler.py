"""A running scheduler: connects sessions, lanes, the loop and the flushes to taskdb."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from taskyard import errors
from taskyard.v1 import lease_pb2, session_service_pb2
from taskyard.v1.runner_link_service_pb2 import (
    SERVER_GOODBYE_REASON_DATABASE_REPLACED,
    SERVER_GOODBYE_REASON_SHUTDOWN,
    ServerGoodbyeReason,
)
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument, observe
from taskyard_scheduler import convert
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.claimed import Claimed
from taskyard_scheduler.credit import CreditKeeper
from taskyard_scheduler.domain.reservations import RESERVATION_DELAY_SECONDS
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.logs import LogFlush
from taskyard_scheduler.loop import Dispatcher
from taskyard_scheduler.metric_names import CAPACITY, GIVEN_BACK, LANES, SESSIONS
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.queue_watch import QueueWatch
from taskyard_scheduler.renewals import RenewalFlush
from taskyard_scheduler.report_entry import Entry
from taskyard_scheduler.reports import Item, ReportFlush
from taskyard_scheduler.session import Session
from taskyard_scheduler.taskdb import Taskdb
from taskyard_scheduler.workers import WorkerRegister

log = get_log(__name__)

SETTLE_SECONDS = 2.0
# Concurrent OpenSession and CloseSession calls; fewer than taskdb's connections, so that other calls proceed.
MAX_CONCURRENT_OPENS = 6
MAX_CONCURRENT_CLOSES = 2


class Part(Protocol):
    """What works until it is cancelled."""

    async def run(self) -> None: ...


class Scheduler:
    """One scheduler instance. `run` works until it is cancelled; the RPC handlers use the parts."""

    def __init__(
        self,
        taskdb: Taskdb,
        config: LinkConfig,
        *,
        gather: float = 1.0,
        reconnect_spread: float = 2.0,
        strict: bool = False,
        reservation_delay: float = RESERVATION_DELAY_SECONDS,
        eager: bool = False,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self.taskdb = taskdb
        self.config = config
        self.clock = clock
        self.draining = False
        self._rng = rng or random.Random()
        self.board = LaneBoard(clock, reservation_delay=reservation_delay)
        self.fleet = Fleet()
        self.reports = ReportFlush(taskdb, self._runs_ended, backoff=Backoff(rng=self._rng))
        self.renewals = RenewalFlush(
            taskdb, config.scheduler_id, gather, clock, backoff=Backoff(0.2, 2.0, self._rng)
        )
        self.workers = WorkerRegister(taskdb, config.scheduler_id, clock)
        self.logs = LogFlush(taskdb, config.max_log_bytes_per_second, clock)
        self.dispatcher = Dispatcher(
            taskdb,
            self.board,
            self.fleet,
            config,
            self.give_back,
            strict=strict,
            clock=clock,
            backoff=Backoff(rng=self._rng),
        )
        self._watch = QueueWatch(
            taskdb,
            self.board,
            self.fleet,
            self.dispatcher,
            config,
            self._reopen_sessions,
            clock=clock,
            backoff=Backoff(0.1, 1.0, self._rng),
        )
        self._watch.on_open = self.reports.taskdb_reached
        self._parts: list[Part] = [self._watch, self.dispatcher, self.reports, self.renewals, self.logs]
        if eager:
            backoff = Backoff(0.1, 1.0, self._rng)
            credit = CreditKeeper(
                taskdb, self.board, self.fleet, self.dispatcher, config, clock=clock, backoff=backoff
            )
            self.dispatcher.on_change = credit.wake
            self._parts.append(credit)
        self._reconnect_spread = reconnect_spread
        self._opening = asyncio.Semaphore(MAX_CONCURRENT_OPENS)
        self._closing = asyncio.Semaphore(MAX_CONCURRENT_CLOSES)
        self._left = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._observe()

    def _observe(self) -> None:
        observe(SESSIONS, lambda: [(len(self.fleet.sessions), {})])
        observe(LANES, lambda: [(len(self.board), {})])
        observe(CAPACITY, self._read_capacity)

    def _read_capacity(self) -> list[tuple[float, dict[str, str]]]:
        sessions = list(self.fleet.sessions.values())
        used = sum(session.capacity.used for session in sessions)
        total = sum(session.capacity.capacity for session in sessions)
        return [(used, {"state": "used"}), (max(0, total - used), {"state": "free"})]

    @property
    def watching(self) -> bool:
        """Whether the queue of taskdb is watched, without which no task is claimed."""
        return self.dispatcher.available

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run())

    # ---- called by sessions (session.Surroundings)

    def submit_reports(self, items: Sequence[Item]) -> None:
        self.reports.submit(items)

    def submit_renewal(self, session: Session) -> None:
        self.renewals.submit(session)

    def capacity_changed(self, session: Session) -> None:
        self.dispatcher.capacity_changed(session.runner_id)

    def profile_changed(self, session: Session) -> None:
        self.fleet.profile_changed(session)
        self.dispatcher.capacity_changed(session.runner_id)

    def _runs_ended(self, counts: Mapping[str, int]) -> None:
        if self.board.released(counts):
            self.dispatcher.wake()

    # ---- opening and closing sessions

    async def open_session(
        self, request: session_service_pb2.OpenSessionRequest
    ) -> session_service_pb2.OpenSessionResponse:
        """Opens a session; raises taskyard.errors. Many runners that reconnect at once wait here."""
        async with self._opening:
            try:
                return await self.taskdb.open_session(request)
            except errors.Overloaded as error:
                raise errors.StorageUnavailable(retry_after=error.retry_after) from error

    def admit(self, session: Session) -> None:
        """Adds a session whose stream is ready."""
        self.fleet.add_session(session, self.clock())
        self.dispatcher.capacity_changed(session.runner_id)

    def dismiss(self, session: Session, *, disconnected: bool) -> None:
        """Removes a session whose stream has ended; claimed tasks that were not sent are released."""
        self.fleet.remove_session(session, self.clock())
        self._left.set()
        self.give_back(session.runner_id, session.outbox.withdraw_assignments())
        if disconnected:
            self.in_background(self._report_disconnected(session))

    async def _report_disconnected(self, session: Session) -> None:
        """Reports the runner as disconnected to taskdb, unless it has reconnected."""
        async with self._closing:
            if session.runner_id not in self.fleet.sessions:
                await self.close_session(session, disconnected=True)

    async def close_session(
        self, session: Session, *, release: bool = False, disconnected: bool = False
    ) -> None:
        """Closes a session in taskdb; raises taskyard.errors. A session that was superseded is ignored."""
        request = session_service_pb2.CloseSessionRequest(
            runner_id=session.runner_id,
            session_epoch=session.epoch,
            release=release,
            disconnected=disconnected,
        )
        with contextlib.suppress(errors.SessionSuperseded):
            await self.taskdb.close_session(request)

    # ---- pull workers

    async def claim(self, claim: PullClaim, wait: float) -> Sequence[lease_pb2.Assignment]:
        """Tasks for a pull worker, waiting up to `wait` seconds; raises taskyard.errors.

        The first claim is sent even without known work: it returns the leases of an earlier, identical claim.
        """
        if self.draining:
            raise errors.ServerDraining()
        if not self.dispatcher.available:
            raise errors.StorageUnavailable()
        self.fleet.add_claimant(claim.key, claim)
        try:
            await self.dispatcher.claim_for_pull(claim)
            if wait > 0 and not claim.answer.done():
                await claim.wait(wait)
        finally:
            self.fleet.remove_claimant(claim.key)
        return claim.answer.result() if claim.answer.done() else ()

    def give_back(self, runner_id: str, unsent: Sequence[Claimed]) -> None:
        """Releases claimed tasks that were not sent to a runner, instead of letting their leases expire."""
        if not unsent:
            return
        instrument(GIVEN_BACK).add(len(unsent), {})
        released = lease_pb2.RunReleased(
            reason=lease_pb2.RELEASE_REASON_NO_CAPACITY,
            message="its runner disconnected or changed",
        )
        self.reports.submit(
            [
                Entry(
                    NO_OWNER,
                    runner_id,
                    lease_pb2.RunReport(lease=one.lease, released=released),
                    convert.tenant_of(one.key[0]),
                )
                for one in unsent
            ]
        )

    def redirect(self, session: Session, reason: ServerGoodbyeReason.ValueType) -> None:
        """Asks one runner to reconnect, possibly to another scheduler (rule 14)."""
        session.send_goodbye(reason, self._rng.uniform(0.0, self._reconnect_spread))
        self.give_back(session.runner_id, session.outbox.withdraw_assignments())

    def _reopen_sessions(self) -> None:
        for session in list(self.fleet.sessions.values()):
            self.redirect(session, SERVER_GOODBYE_REASON_DATABASE_REPLACED)

    def session_age(self) -> float:
        """The lifetime of a stream: the setting plus or minus 10 %."""
        return self.config.max_session_age * self._rng.uniform(0.9, 1.1)

    async def drain(self) -> None:
        """Asks every runner and pull worker to reconnect; returns when all streams have ended."""
        self.draining = True
        for claim in self.fleet.claims():
            claim.fail(errors.ServerDraining())
        for session in list(self.fleet.sessions.values()):
            self.redirect(session, SERVER_GOODBYE_REASON_SHUTDOWN)
        while self.fleet.sessions:
            self._left.clear()
            await self._left.wait()

    async def settle(self) -> None:
        """Waits briefly for the last releases and disconnects to reach taskdb."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self.reports.settled()
                await asyncio.gather(*self._background, return_exceptions=True)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine in the background; a failure is logged."""
        task = asyncio.create_task(_logged(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except errors.TaskyardError as error:
        log.warning("background_work_failed", error=str(error))


class _NoOwner:
    """The owner of reports whose result is ignored."""

    def reports_decided(self) -> None:
        pass


NO_OWNER = _NoOwner()
