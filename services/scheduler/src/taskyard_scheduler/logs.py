"""Sends the logs of runners to taskdb, in calls separate from the reports (rule 9)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.status import to_status
from taskyard.v1 import lease_pb2
from taskyard.v1.lease_service_pb2 import AppendLogsRequest, AppendLogsResponse
from taskyard.v1.runner_link_service_pb2 import LogAck
from taskyard_kit.logs import get_log
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.final import is_final
from taskyard_scheduler.session import Session

MAX_BATCHES = 1000
MAX_BYTES = 3 * 1024 * 1024
# Concurrent calls that store logs, each for one runner.
CONCURRENT_CALLS = 4
# A batch is rejected after this many internal errors of taskdb, so that the runner's other logs continue.
MAX_FAILURES = 10
_FAILED = frozenset((errors.Code.INTERNAL, errors.Code.UNKNOWN))

log = get_log(__name__)


class LogClient(Protocol):
    """taskdb, as far as logs need it; raises taskyard.errors."""

    async def append_logs(self, request: AppendLogsRequest) -> AppendLogsResponse: ...


@dataclass(slots=True, eq=False)
class _Backlog:
    """Log batches of one session, with their sizes."""

    session: Session
    batches: deque[tuple[lease_pb2.LogBatch, int]] = field(default_factory=deque)
    # One batch at a time after a rejected call, to find the invalid batch.
    limit: int = MAX_BATCHES
    # Consecutive internal errors of taskdb on the first batch.
    failures: int = 0

    def take(self, max_bytes: int) -> list[tuple[lease_pb2.LogBatch, int]]:
        taken: list[tuple[lease_pb2.LogBatch, int]] = []
        total = 0
        while self.batches and len(taken) < self.limit:
            total += self.batches[0][1]
            if taken and total > max_bytes:
                break
            taken.append(self.batches.popleft())
        return taken


class LogFlush:
    """One call per session at a time; logs that arrive meanwhile are in its next.

    `rate` limits how many bytes per second of a session's logs are stored. An agent that exceeds the rate
    fills its window and, beyond that, loses its stream (rule 11).
    """

    def __init__(self, taskdb: LogClient, rate: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._taskdb = taskdb
        self._rate = rate
        self._clock = clock
        self._backlogs: dict[Session, _Backlog] = {}
        self._ready: asyncio.Queue[_Backlog] = asyncio.Queue()

    def submit(self, session: Session, batch: lease_pb2.LogBatch) -> None:
        """Queue a batch; it is acknowledged once it is stored or refused."""
        size = batch.ByteSize()
        session.take_bulk(size)
        backlog = self._backlogs.get(session)
        if backlog is None:
            backlog = self._backlogs[session] = _Backlog(session)
            self._enqueue(backlog)
        backlog.batches.append((batch, size))

    def _enqueue(self, backlog: _Backlog) -> None:
        """Store it as soon as the rate allows."""
        delay = backlog.session.log_time - self._clock()
        if self._rate and delay > 0:
            asyncio.get_running_loop().call_later(delay, self._ready.put_nowait, backlog)
        else:
            self._ready.put_nowait(backlog)

    def _charge(self, session: Session, size: int) -> None:
        """Delays the session's next logs according to the rate; bursts of one second are allowed."""
        if self._rate:
            session.log_time = max(session.log_time, self._clock() - 1.0) + size / self._rate

    async def run(self) -> None:
        """Store logs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENT_CALLS):
                group.create_task(self._work())

    async def _work(self) -> None:
        backoff = Backoff(longest=1.0)
        while True:
            backlog = await self._ready.get()
            if await self._store(backlog):
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next())
            if backlog.batches and not (backlog.session.over and backlog.session.error):
                self._enqueue(backlog)
            else:
                del self._backlogs[backlog.session]

    async def _store(self, backlog: _Backlog) -> bool:
        """Stores batches; returns whether taskdb answered. Those that were not stored stay in the backlog."""
        taken = backlog.take(min(MAX_BYTES, self._rate or MAX_BYTES))
        batches = [batch for batch, _ in taken]
        request = AppendLogsRequest(runner_id=backlog.session.runner_id, batches=batches)
        try:
            results = list((await self._taskdb.append_logs(request)).results)
        except errors.TaskyardError as error:
            log.warning("logs_delayed", runner=backlog.session.runner_id, error=str(error))
            if not self._is_rejected(backlog, taken, error):
                backlog.batches.extendleft(reversed(taken))
                return False
            results = [to_status(error)]
        backlog.limit, backlog.failures = MAX_BATCHES, 0
        stored = sum(size for _, size in taken)
        self._charge(backlog.session, stored)
        backlog.session.bulk_stored(stored)
        _acknowledge(backlog.session, batches, results)
        return True

    def _is_rejected(
        self, backlog: _Backlog, taken: list[tuple[lease_pb2.LogBatch, int]], error: errors.TaskyardError
    ) -> bool:
        """Whether the single batch of the call is finally rejected; otherwise the call is repeated."""
        failed = error.code in _FAILED
        backlog.limit = 1 if failed or is_final(error) else MAX_BATCHES
        if len(taken) > 1:
            return False
        backlog.failures += failed
        return is_final(error) or backlog.failures >= MAX_FAILURES


def _acknowledge(session: Session, batches: list[lease_pb2.LogBatch], results: list[Status]) -> None:
    acks: dict[tuple[str, int], LogAck] = {}
    for batch, result in zip(batches, results, strict=True):
        key = (batch.lease.task, batch.lease.generation)
        ack = acks.setdefault(key, LogAck(lease=batch.lease))
        if result.code:
            ack.status.CopyFrom(result)
        elif batch.entries:
            ack.through_sequence = max(ack.through_sequence, batch.entries[-1].sequence)
    for ack in acks.values():
        session.outbox.acknowledge_logs(ack)
