"""Sends the reports of all runners to taskdb, one call at a time; later ones form the next call."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from taskyard import errors
from taskyard.status import from_status, to_status
from taskyard.v1 import lease_pb2, lease_service_pb2
from taskyard_kit.logs import get_log
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.report_entry import Entry
from taskyard_scheduler.short_runs import Block, Joined, Shape

MAX_REPORTS = 1000
# Below taskdb's message limit of 4 MiB.
MAX_BYTES = 3 * 1024 * 1024
# Delay before a report is retried on which taskdb failed with an internal error.
RETRY_SECONDS = 5.0
# First delay before a report is retried whose result taskdb is checking; it doubles up to the delay above.
CHECK_SECONDS = 0.25

log = get_log(__name__)

# Submitted in order and decided by taskdb.
Item = Entry | Block
# What taskdb has decided about reports.
Results = Sequence[tuple[Entry, lease_pb2.ReportResult]]


class ReportClient(Protocol):
    """taskdb, as far as reports need it; raises taskyard.errors."""

    async def report_runs(
        self, request: lease_service_pb2.ReportRunsRequest
    ) -> lease_service_pb2.ReportRunsResponse: ...
    async def complete_runs(
        self, request: lease_service_pb2.CompleteRunsRequest
    ) -> lease_service_pb2.CompleteRunsResponse: ...


# Called with the number of ended runs by tenant.
RunsEnded = Callable[[Mapping[str, int]], None]


class ReportFlush:
    """The queue of reports and its one call to taskdb.

    A report is retried until it is decided; taskdb recognises duplicates. A call that is rejected for its
    content is bisected, so that one bad report does not block the others. A call is of one kind, reports or
    blocks of short runs, and takes both in the order in which a runner sent them.
    """

    def __init__(self, taskdb: ReportClient, runs_ended: RunsEnded, backoff: Backoff | None = None) -> None:
        self._taskdb = taskdb
        self._runs_ended = runs_ended
        self._backoff = backoff or Backoff()
        # Whether taskdb knows CompleteRuns; blocks are split into reports for one that does not.
        self._takes_blocks = True
        self._queue: deque[Item] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._deferred = 0

    def submit(self, items: Sequence[Item]) -> None:
        """Queue reports and blocks, in order."""
        if items:
            self._queue.extend(items)
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

    def taskdb_reached(self) -> None:
        """The connection to taskdb is a new one: its version may be another."""
        self._takes_blocks = True

    def _take(self) -> list[Item]:
        """The items of the next call: of the first one's kind, none before an earlier one of its runner."""
        queue = self._queue
        kind = type(queue[0])
        taken: list[Item] = []
        passed: list[Item] = []
        held_back: set[str] = set()
        shapes: dict[str, Shape] = {}
        count = size = 0
        while queue and len(passed) < MAX_REPORTS:
            item = queue[0]
            runner_id = item.runner_id
            joins = type(item) is kind and shapes.setdefault(runner_id, item.shape) == item.shape
            if not joins or runner_id in held_back:
                held_back.add(runner_id)
                passed.append(queue.popleft())
                continue
            count += item.count
            size += item.bytes
            if taken and (count > MAX_REPORTS or size > MAX_BYTES):
                break
            taken.append(queue.popleft())
        queue.extendleft(reversed(passed))
        return taken

    async def _flush(self, batch: Sequence[Item]) -> None:
        if not self._takes_blocks and (blocks := _blocks(batch)):
            batch = [entry for block in blocks for entry in block.split()]
        try:
            undecided = await self._call(batch)
        except errors.TaskyardError as error:
            if error.code == errors.Code.UNIMPLEMENTED and _blocks(batch):
                log.info("short_runs_split", reason="taskdb does not know CompleteRuns")
                self._takes_blocks = False
                await self._flush(batch)
                return
            if not error.retryable and error.code not in _TRANSIENT:
                await self._bisect(batch, error)
                return
            log.warning("reports_delayed", count=_count(batch), reason=error.reason or error.code.name)
            undecided = batch
        notify_owners(batch)
        if undecided:
            self._queue.extendleft(reversed(undecided))
            await asyncio.sleep(self._backoff.next())
        else:
            self._backoff.reset()

    async def _call(self, batch: Sequence[Item]) -> Sequence[Item]:
        """Decides what it can; returns the reports that taskdb could not decide now."""
        blocks = _blocks(batch)
        results = await (self._complete(blocks) if blocks else self._report(_entries(batch)))
        undecided = []
        for entry, result in results:
            if not result.HasField("error") or result.error.code != errors.Code.UNAVAILABLE:
                entry.decide(result)
            elif isinstance(from_status(result.error), errors.ResultCheckPending):
                self._defer(entry)
            else:
                undecided.append(entry)
        ended = Counter(entry.ends for entry, _ in results if entry.ends and entry.applied)
        for block in blocks:
            ended.update(block.ended)
        if ended:
            self._runs_ended(ended)
        return undecided

    async def _report(self, entries: Sequence[Entry]) -> Results:
        request = lease_service_pb2.ReportRunsRequest()
        add = request.reports.add
        for entry in entries:
            add(runner_id=entry.runner_id, report=entry.report)
        response = await self._taskdb.report_runs(request)
        return list(zip(entries, response.results, strict=True))

    async def _complete(self, blocks: Sequence[Block]) -> Results:
        """Completes the runs of blocks; returns the results of those that did not simply succeed."""
        joined = Joined(blocks)
        response = await self._taskdb.complete_runs(joined.request)
        for block in blocks:
            block.answered = True
        return [(joined.single(found.holder, found.run), found.result) for found in response.exceptions]

    def _defer(self, entry: Entry) -> None:
        """Retries one report later, while the others go on."""
        delay = min(CHECK_SECONDS * 2**entry.tries, RETRY_SECONDS)
        entry.tries += 1
        self._deferred += 1
        asyncio.get_running_loop().call_later(delay, self._resubmit, entry)

    def _resubmit(self, entry: Entry) -> None:
        self._deferred -= 1
        self.submit([entry])

    async def _bisect(self, batch: Sequence[Item], error: errors.TaskyardError) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._flush(batch[:middle])
            await self._flush(batch[middle:])
            return
        (item,) = batch
        if isinstance(item, Block):
            await self._flush(item.split())
        else:
            self._fail(item, error)

    def _fail(self, entry: Entry, error: errors.TaskyardError) -> None:
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
            notify_owners([entry])
        else:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self.submit, [entry])


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


def notify_owners(batch: Sequence[Item]) -> None:
    """Notifies each owner once, in the order of its first report."""
    for owner in dict.fromkeys([item.owner for item in batch]):
        owner.reports_decided()


def _entries(batch: Iterable[Item]) -> list[Entry]:
    return [item for item in batch if isinstance(item, Entry)]


def _blocks(batch: Iterable[Item]) -> list[Block]:
    return [item for item in batch if isinstance(item, Block)]


def _count(batch: Iterable[Item]) -> int:
    return sum(item.count for item in batch)
