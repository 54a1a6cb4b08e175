"""Gathers the heartbeats of all runners and renews their sessions in one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from taskyard import errors
from taskyard.v1 import lease_pb2, runner_pb2, session_service_pb2
from taskyard_kit.logs import get_log
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.domain.capacity import RunKey

MAX_SESSIONS = 1000

log = get_log(__name__)


@dataclass(slots=True)
class PendingRenewal:
    """The content of a session's next renewal, merged from the heartbeats before it."""

    heartbeat_id: int = 0
    listed: dict[RunKey, lease_pb2.LeaseRef] = field(default_factory=dict)
    # Runs that the agent no longer has, whose outcome it did not report.
    dropped: dict[RunKey, lease_pb2.LeaseRef] = field(default_factory=dict)
    progress: dict[RunKey, session_service_pb2.LeaseProgress] = field(default_factory=dict)
    registration: runner_pb2.RunnerRegistration | None = None
    start_time: float = 0.0

    def merge(self, newer: PendingRenewal) -> None:
        """Merges a newer renewal into this one."""
        self.heartbeat_id = max(self.heartbeat_id, newer.heartbeat_id)
        self.listed.update(newer.listed)
        self.drop(newer.dropped)
        self.progress.update(newer.progress)
        self.registration = newer.registration or self.registration

    def drop(self, refs: Mapping[RunKey, lease_pb2.LeaseRef]) -> None:
        """The agent no longer has these runs."""
        self.dropped.update(refs)
        for key in refs:
            self.listed.pop(key, None)


class Renewable(Protocol):
    """A session, as far as renewal needs it."""

    @property
    def over(self) -> bool: ...

    def take_renewal(self, now: float) -> tuple[PendingRenewal, session_service_pb2.SessionRenewal]: ...
    def renewal_failed(self, taken: PendingRenewal) -> None: ...
    def renewed(
        self, taken: PendingRenewal, result: session_service_pb2.SessionRenewalResult, now: float
    ) -> None: ...


class RenewalClient(Protocol):
    """taskdb, as far as renewals need it; raises taskyard.errors."""

    async def renew_sessions(
        self, request: session_service_pb2.RenewSessionsRequest
    ) -> session_service_pb2.RenewSessionsResponse: ...


class RenewalFlush:
    """Renews the sessions whose heartbeat arrived lately, at most once in `gather` seconds."""

    def __init__(
        self,
        taskdb: RenewalClient,
        scheduler_id: str,
        gather: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
    ) -> None:
        self._taskdb = taskdb
        self._scheduler_id = scheduler_id
        self._gather = gather
        self._clock = clock
        self._backoff = backoff or Backoff(0.2, 2.0)
        self._waiting: dict[Renewable, None] = {}
        self._arrived = asyncio.Event()

    def submit(self, session: Renewable) -> None:
        """The session has a heartbeat to renew."""
        self._waiting[session] = None
        self._arrived.set()

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(self._gather)
            self._arrived.clear()
            while self._waiting:
                if not await self._flush(self._take()):
                    await asyncio.sleep(self._backoff.next())

    def _take(self) -> list[Renewable]:
        taken = list(self._waiting)[:MAX_SESSIONS]
        for session in taken:
            del self._waiting[session]
        return [session for session in taken if not session.over]

    async def _flush(self, sessions: Sequence[Renewable]) -> bool:
        """Whether taskdb answered."""
        if not sessions:
            return True
        now = self._clock()
        taken = [session.take_renewal(now) for session in sessions]
        request = session_service_pb2.RenewSessionsRequest(
            scheduler_id=self._scheduler_id, sessions=[message for _, message in taken]
        )
        try:
            response = await self._taskdb.renew_sessions(request)
        except errors.TaskyardError as error:
            log.warning("renewals_delayed", count=len(sessions), reason=error.reason or error.code.name)
            for session, (renewal, _) in zip(sessions, taken, strict=True):
                session.renewal_failed(renewal)
                self._waiting[session] = None
            return False
        self._backoff.reset()
        now = self._clock()
        for session, (renewal, _), result in zip(sessions, taken, response.results, strict=True):
            session.renewed(renewal, result, now)
        return True
