"""Streams that outlive their connections: they resume where they broke, without gaps or repeats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import grpc
import grpc.aio

from taskyard import errors
from taskyard.channels import Channels
from taskyard.retry_timer import RetryTimer, is_outage
from taskyard.status import from_rpc_error
from taskyard.task import Event, LogEntry
from taskyard.v1 import log_pb2
from taskyard.v1 import task_service_pb2 as pb

# The server ends a stream after at most 66 minutes and announces that.
STREAM_SECONDS = 70 * 60.0
# Longest silence of a watch; the server sends a bookmark every 15 s.
SILENCE_SECONDS = 60.0
# Tasks whose newest version is kept to detect repeats.
MAX_TRACKED_TASKS = 100_000

T = TypeVar("T")


class Stream(Generic[T]):
    """Iterate over it with `async for`; `batches` gives what arrived together as one list."""

    def __init__(self, batches: AsyncGenerator[Sequence[T]]) -> None:
        self.batches = batches
        # Of a list, once its first page was read: a watch from here delivers what changed since.
        self.resume_token = ""

    async def __aiter__(self) -> AsyncIterator[T]:
        try:
            async for batch in self.batches:
                for item in batch:
                    yield item
        finally:
            await self.batches.aclose()

    async def aclose(self) -> None:
        """Ends the stream; leaving the loop early does so too, but only at the next garbage collection."""
        await self.batches.aclose()


class _Response(Protocol):
    resume_token: str
    closing: bool


R = TypeVar("R", bound=_Response)


async def responses(
    connect: Callable[[str], Any],
    token: str,
    *,
    endless: bool,
    silence: float,
    outage_timeout: float,
    channels: Channels,
    established: bool = False,
) -> AsyncGenerator[R]:
    """Yields every response of the stream opened by `connect(token)`, over as many connections as needed.

    Ends when the server ends the stream without announcing it, unless `endless`. Raises taskyard.errors if
    no first connection is made within the client's patience and the stream is not `established`, if an error
    is not retryable, or after an outage of `outage_timeout`.
    """
    retry_timer = RetryTimer(outage_timeout) if established else None
    first: RetryTimer | None = None
    while True:
        call = connect(token)
        closing = endless
        try:
            while (response := await _read(call, silence)) is not grpc.aio.EOF:
                retry_timer = retry_timer or RetryTimer(outage_timeout)
                retry_timer.refresh()
                yield response
                token = response.resume_token or token
                closing = endless or response.closing
            if not closing:
                return
            lost: errors.TaskyardError = errors.ServerDraining()
        except grpc.RpcError as error:
            lost = channels.described(from_rpc_error(error))
        except TimeoutError:
            lost = errors.Unavailable(message=f"the server sent nothing for {silence:g} s")
        finally:
            call.cancel()
        if retry_timer is None and first is None:
            first = channels.outage(lost) if is_outage(lost) else RetryTimer(0)
        await (retry_timer or first or RetryTimer(0)).wait(lost)


async def _read(call: Any, silence: float) -> Any:
    # Not wait_for, which loses a cancellation that races with the response: Ctrl-C would do nothing.
    async with asyncio.timeout(silence):
        return await call.read()


class Versions:
    """The newest version seen of each task, to drop repeated events."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        # What was seen before a gap, until the snapshot after it is complete.
        self._before_gap: dict[str, float] = {}

    def begin_gap(self) -> None:
        """Compare the snapshot that follows with what was seen; its versions may also be lower."""
        self._before_gap |= self._seen
        self._seen = {}

    def end_gap(self) -> None:
        """The snapshot is complete: every later event is new."""
        self._before_gap = {}

    def is_new(self, event: pb.TaskEvent) -> bool:
        """Whether this change was not seen before; records it as seen."""
        # A task that was deleted and created again has the old name and a new uid.
        key = event.task.metadata.uid or event.task.name
        deleted = event.type == pb.TASK_EVENT_TYPE_DELETED
        version = float("inf") if deleted else float(event.resource_version)
        last = self._seen.pop(key, -1.0)
        self._seen[key] = max(version, last)
        if len(self._seen) > MAX_TRACKED_TASKS:
            del self._seen[next(iter(self._seen))]
        return version > last and self._before_gap.pop(key, -1.0) != version


Open = Callable[[str, bool], AsyncGenerator[pb.WatchTasksResponse]]


async def over_gaps(
    open_watch: Open, token: str, snapshot: bool
) -> AsyncGenerator[pb.WatchTasksResponse | None]:
    """Yields the responses of `open_watch(token, snapshot)`; where history is lost, None and a new snapshot.

    The server ends a watch with LogEpochChanged if a failover or a restore has replaced its log.
    """
    while True:
        source = open_watch(token, snapshot)
        try:
            async for response in source:
                yield response
            return
        except errors.LogEpochChanged:
            yield None
            token, snapshot = "", True
        finally:
            await source.aclose()


async def watch_batches(
    source: AsyncGenerator[pb.WatchTasksResponse | None], token: str, bookmarks: bool
) -> AsyncGenerator[Sequence[Event]]:
    """The events of a watch, each change once; `token` is where it began."""
    versions = Versions()
    try:
        async for response in source:
            if response is None:
                versions.begin_gap()
                # A watch from the token of before would meet the gap again, which loses nothing.
                yield [Event(pb.TaskEvent(), token, gap=True)]
                continue
            new_events = [event for event in response.events if versions.is_new(event)]
            if response.snapshot_complete:
                versions.end_gap()
            # Until the last event of a response is processed, only the token before it is safe.
            batch = [Event(event, token) for event in new_events[:-1]]
            token = response.resume_token or token
            batch += [Event(event, token) for event in new_events[-1:]]
            if bookmarks and not batch:
                batch = [Event(pb.TaskEvent(), token)]
            if batch:
                yield batch
    finally:
        await source.aclose()


async def log_batches(source: AsyncGenerator[pb.TailTaskLogsResponse]) -> AsyncGenerator[Sequence[LogEntry]]:
    """The entries of a log, each once, with a warning where the runner had to drop some."""
    last: dict[int, int] = {}
    try:
        async for response in source:
            batch = [LogEntry(_dropped(response))] if response.dropped_count else []
            for entry in response.entries:
                if entry.sequence > last.get(entry.generation, 0):
                    last[entry.generation] = entry.sequence
                    batch.append(LogEntry(entry))
            if batch:
                yield batch
            # The server ends a complete log by itself: a call that is left early counts as cancelled.
    finally:
        await source.aclose()


def _dropped(response: pb.TailTaskLogsResponse) -> log_pb2.LogEntry:
    return log_pb2.LogEntry(
        generation=response.entries[0].generation if response.entries else 0,
        level=log_pb2.LOG_LEVEL_WARNING,
        source=log_pb2.LOG_SOURCE_RUNNER,
        message=f"{response.dropped_count} lines are missing here; they were written too fast to be sent",
    )
