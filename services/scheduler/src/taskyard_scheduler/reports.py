"""Sends the reports of all runners to taskdb, one call at a time; later ones form the next call."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.status import from_status, to_status
from taskyard.v1 import lease_pb2, lease_service_pb2
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.metric_names import REPORTS_REJECTED

MAX_REPORTS = 1000
# Below taskdb's message limit of 4 MiB.
MAX_BYTES = 3 * 1024 * 1024
# Delay before a report is retried on which taskdb failed with an internal error.
RETRY_SECONDS = 5.0
# First delay before a report is retried whose result taskdb is checking; it doubles up to the delay above.
CHECK_SECONDS = 0.25
# Reports that end a run.
OUTCOMES = frozenset(("succeeded", "failed", "timed_out", "cancelled", "released"))

log = get_log(__name__)

_rejected = instrument(REPORTS_REJECTED)


class Reporter(Protocol):
    """The owner of reports; notified once after each call that decided some of them."""

    def reports_decided(self) -> None: ...


class Entry:
    """One report until taskdb has decided it."""

    __slots__ = (
        "decided",
        "duplicate",
        "ends",
        "error",
        "owner",
        "phase",
        "report",
        "runner_id",
        "seq",
        "size",
        "tries",
    )

    def __init__(
        self, owner: Reporter, runner_id: str, report: lease_pb2.RunReport, ends: str = "", seq: int = 0
    ) -> None:
        self.owner = owner
        self.runner_id = runner_id
        self.report = report
        self.seq = seq
        # The tenant whose run it ends, if it does.
        self.ends = ends
        # Bytes of the runner's window that are free again once it is decided.
        self.size = 0
        # How often taskdb was still checking its result.
        self.tries = 0
        self.decided = False
        self.duplicate = False
        self.phase: int = 0
        self.error: Status | None = None

    def decide(self, result: lease_pb2.ReportResult) -> None:
        self.decided = True
        self.duplicate = result.duplicate
        self.phase = result.phase
        if result.HasField("error"):
            self.reject(result.error)

    @property
    def applied(self) -> bool:
        """Whether taskdb applied it, and not as a duplicate."""
        return self.decided and self.error is None and not self.duplicate

    def reject(self, error: Status) -> None:
        self.decided = True
        self.error = error
        _rejected.add(1, {"code": errors.Code(error.code).name})


class ReportClient(Protocol):
    """taskdb, as far as reports need it; raises taskyard.errors."""

    async def report_runs(
        self, request: lease_service_pb2.ReportRunsRequest
    ) -> lease_service_pb2.ReportRunsResponse: ...


# Called with the number of ended runs by tenant.
RunsEnded = Callable[[Mapping[str, int]], None]


class ReportFlush:
    """The queue of reports and its one call to taskdb.

    A report is retried until it is decided; taskdb recognises duplicates. A call that is rejected for its
    content is bisected, so that one bad report does not block the others.
    """

    def __init__(self, taskdb: ReportClient, runs_ended: RunsEnded, backoff: Backoff | None = None) -> None:
        self._taskdb = taskdb
        self._runs_ended = runs_ended
        self._backoff = backoff or Backoff()
        self._queue: deque[Entry] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._deferred = 0

    def submit(self, entries: Sequence[Entry]) -> None:
        """Queue reports, in order."""
        if entries:
            self._queue.extend(entries)
            self._idle.clear()
            self._arrived.set()

    def __len__(self) -> int:
        return len(self._queue)

    async def settled(self) -> None:
        """Waits until no report is queued or in flight."""
        await self._idle.wait()

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._queue:
                await self._flush(self._take())
            if not self._deferred:
                self._idle.set()

    def _take(self) -> list[Entry]:
        taken: list[Entry] = []
        size = 0
        while self._queue and len(taken) < MAX_REPORTS:
            size += self._queue[0].report.ByteSize()
            if taken and size > MAX_BYTES:
                break
            taken.append(self._queue.popleft())
        return taken

    async def _flush(self, batch: list[Entry]) -> None:
        try:
            undecided = await self._call(batch)
        except errors.TaskyardError as error:
            if not error.retryable and error.code not in _TRANSIENT:
                await self._bisect(batch, error)
                return
            log.warning("reports_delayed", count=len(batch), reason=error.reason or error.code.name)
            undecided = batch
        notify_owners(batch)
        if undecided:
            self._queue.extendleft(reversed(undecided))
            await asyncio.sleep(self._backoff.next())
        else:
            self._backoff.reset()

    async def _call(self, batch: list[Entry]) -> list[Entry]:
        """Decides what it can; returns the reports that taskdb could not decide now."""
        request = lease_service_pb2.ReportRunsRequest()
        add = request.reports.add
        for entry in batch:
            add(runner_id=entry.runner_id, report=entry.report)
        response = await self._taskdb.report_runs(request)
        undecided = []
        for entry, result in zip(batch, response.results, strict=True):
            if not result.HasField("error") or result.error.code != errors.Code.UNAVAILABLE:
                entry.decide(result)
            elif isinstance(from_status(result.error), errors.ResultCheckPending):
                self._defer(entry)
            else:
                undecided.append(entry)
        ended = Counter(entry.ends for entry in batch if entry.ends and entry.applied)
        if ended:
            self._runs_ended(ended)
        return undecided

    def _defer(self, entry: Entry) -> None:
        """Retries one report later, while the others go on."""
        delay = min(CHECK_SECONDS * 2**entry.tries, RETRY_SECONDS)
        entry.tries += 1
        self._deferred += 1
        asyncio.get_running_loop().call_later(delay, self._resubmit, entry)

    def _resubmit(self, entry: Entry) -> None:
        self._deferred -= 1
        self.submit([entry])

    async def _bisect(self, batch: list[Entry], error: errors.TaskyardError) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._flush(batch[:middle])
            await self._flush(batch[middle:])
            return
        entry = batch[0]
        lease = entry.report.lease
        final = error.code in _FINAL
        log.error(
            "report_failed",
            task=lease.task,
            generation=lease.generation,
            runner=entry.runner_id,
            final=final,
            error=str(error),
        )
        if final:
            entry.reject(to_status(error))
            notify_owners(batch)
        else:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self.submit, batch)


# The outcome is unknown or the scheduler's key is being rotated: the whole call is retried.
_TRANSIENT = frozenset(
    (
        errors.Code.DEADLINE_EXCEEDED,
        errors.Code.CANCELLED,
        errors.Code.ABORTED,
        errors.Code.UNAUTHENTICATED,
        errors.Code.PERMISSION_DENIED,
    )
)
# Retrying cannot help; after any other error it may.
_FINAL = frozenset((errors.Code.INVALID_ARGUMENT, errors.Code.OUT_OF_RANGE, errors.Code.RESOURCE_EXHAUSTED))


def notify_owners(batch: Sequence[Entry]) -> None:
    """Notifies each owner once, in the order of its first report."""
    for owner in dict.fromkeys(entry.owner for entry in batch):
        owner.reports_decided()
