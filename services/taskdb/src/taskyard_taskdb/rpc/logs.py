"""Logs of tasks: appended by holders through LeaseService, listed and tailed through TaskService."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from google.rpc import status_pb2

from taskyard import status
from taskyard.errors import FieldInvalid, LeaseNotHeld, NotFound
from taskyard.v1 import lease_pb2, lease_service_pb2, log_pb2, task_service_pb2
from taskyard_kit import wellformed
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.page import decode_cursor, encode_cursor, page_size
from taskyard_taskdb.rpc.access import visible_task
from taskyard_taskdb.rpc.response_size import MAX_READ_BYTES, MAX_RESPONSE_BYTES, fitting, size_in_response
from taskyard_taskdb.rpc.times import timestamp
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report import run_logs
from taskyard_taskdb.storage.report.run_logs import LATEST, LogChunk, LogQuery, NewChunk, Position, RunRef
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub, session_seconds
from taskyard_taskdb.watch.subscription import Subscription, TaskKey

CHUNKS = 20
ENTRIES = 500
# Seconds that a tail waits after the end of a task: for announced entries, behind the newest stored one, and
# without an announcement.
PATIENCE_SECONDS = 60.0
SILENCE_SECONDS = 2.0
# Seconds after the end of a task in which a tail that does not follow waits for announced entries: outcome
# and output arrive by separate calls, and a reader that has seen the outcome expects all of the output.
READ_SECONDS = 5.0
# A tail of a live task looks again after this time, whether or not it was woken.
FOLLOW_SECONDS = 30.0

Cursor = tuple[int, int]
_BEGINNING = datetime.fromtimestamp(0, UTC)


class LogAppendHandler:
    """LeaseService.AppendLogs."""

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus

    async def AppendLogs(
        self, request: lease_service_pb2.AppendLogsRequest, context: Any
    ) -> lease_service_pb2.AppendLogsResponse:
        """Store the new entries of each batch whose run the sender holds or has just ended."""
        runs = [_run(batch.lease) for batch in request.batches]
        invalid = [_invalid(batch) for batch in request.batches]
        async with self._pool.transaction() as tx:
            positions = await run_logs.positions(tx, request.runner_id, runs)
            chunks = [
                chunk
                for run, position, batch, error in zip(runs, positions, request.batches, invalid, strict=True)
                if position.held and error is None and (chunk := _new_chunk(run, batch, position)) is not None
            ]
            if chunks:
                await run_logs.insert(tx, chunks)
        self._bus.publish(CommitNotice(logs={(chunk.tenant_id, chunk.task_id) for chunk in chunks}))
        results = [
            _batch_status(batch, position.held, error)
            for position, batch, error in zip(positions, request.batches, invalid, strict=True)
        ]
        return lease_service_pb2.AppendLogsResponse(results=results)


def _invalid(batch: lease_pb2.LogBatch) -> FieldInvalid | None:
    """What no reader of this batch can process: a time out of range, a number that is not JSON.

    A message is kept as the task has written it, NUL included.
    """
    try:
        wellformed.check(batch)
    except FieldInvalid:
        for number, entry in enumerate(batch.entries):
            try:
                wellformed.check(entry, apart_from="message")
            except FieldInvalid as error:
                named = (replace(one, field=f"entries[{number}].{one.field}") for one in error.violations)
                return FieldInvalid(tuple(named))
    return None


def _batch_status(batch: lease_pb2.LogBatch, held: bool, error: FieldInvalid | None) -> status_pb2.Status:
    if not held:
        return status.to_status(LeaseNotHeld(batch.lease.task, batch.lease.generation))
    return status_pb2.Status() if error is None else status.to_status(error)


class LogReadHandler:
    """TaskService.ListTaskLogs and TailTaskLogs."""

    def __init__(self, pool: Pool, hub: Hub, followers: LogFollowers) -> None:
        self._pool = pool
        self._hub = hub
        self._followers = followers

    async def ListTaskLogs(
        self, request: task_service_pb2.ListTaskLogsRequest, context: Any
    ) -> task_service_pb2.ListTaskLogsResponse:
        """Return one page of entries in (generation, sequence) order, or newest first."""
        tenant_id, task_id = visible_task(request.parent, "parent")
        query = LogQuery(tenant_id, task_id, request.generation, request.min_level)
        binding = (
            f"{request.parent}/{request.generation}/{request.min_level}/{request.descending}/{_span(request)}"
        )
        size = page_size(request.page_size)
        start = (LATEST, LATEST) if request.descending else (0, 0)
        cursor = decode_cursor(request.page_token, binding) if request.page_token else start
        entries: list[log_pb2.LogEntry] = []
        token = ""
        read = kept = 0
        async with self._pool.reading() as tx:
            if await run_logs.state(tx, tenant_id, task_id) is None:
                raise NotFound("task", request.parent)
            while len(entries) <= size and kept <= MAX_RESPONSE_BYTES:
                if read > MAX_READ_BYTES:
                    # Few entries match: the page is short, and its token continues the search.
                    token = encode_cursor(cursor, binding)
                    break
                chunks = await run_logs.read(tx, query, *cursor, CHUNKS, backwards=request.descending)
                if not chunks:
                    break
                for chunk in chunks:
                    selected = list(_select(chunk, query, cursor, request))
                    entries += selected
                    kept += sum(map(size_in_response, selected))
                    read += len(chunk.entries)
                    cursor = _end(chunk, request.descending)
        listed = fitting(entries[:size])
        if len(listed) < len(entries):
            token = encode_cursor((listed[-1].generation, listed[-1].sequence), binding)
        return task_service_pb2.ListTaskLogsResponse(entries=listed, next_page_token=token)

    async def TailTaskLogs(
        self, request: task_service_pb2.TailTaskLogsRequest, context: Any
    ) -> AsyncIterator[task_service_pb2.TailTaskLogsResponse]:
        """Send entries as they are stored, until the task has ended and everything is sent."""
        tenant_id, task_id = key = visible_task(request.parent, "parent")
        query = LogQuery(tenant_id, task_id, request.generation, request.min_level)
        binding = f"{request.parent}/{request.generation}/{request.min_level}"
        await self._hub.ready()
        with self._followers.follow(key) as changes:
            if not request.follow:
                await self._announced_entries(key, changes)
            cursor = await self._tail_start(request, query, binding)
            has_responded = False
            age_limit = time.monotonic() + session_seconds()
            while not self._hub.closing and time.monotonic() < age_limit:
                async with self._pool.reading() as tx:
                    state = await run_logs.state(tx, tenant_id, task_id)
                    if state is None:
                        raise NotFound("task", request.parent)
                    chunks = await run_logs.read(tx, query, *cursor, CHUNKS)
                for chunk in chunks:
                    for response in _tail_responses(chunk, query, cursor, binding):
                        has_responded = True
                        yield response
                    cursor = _end(chunk, backwards=False)
                if chunks:
                    continue
                left = state.patience_left(PATIENCE_SECONDS, SILENCE_SECONDS, state.stored_for)
                if not request.follow or (left is not None and left <= 0):
                    token = encode_cursor(cursor, binding)
                    yield task_service_pb2.TailTaskLogsResponse(complete=True, resume_token=token)
                    return
                if not has_responded:
                    # A bookmark: without one the client could not resume a log that has no line yet.
                    has_responded = True
                    token = encode_cursor(cursor, binding)
                    yield task_service_pb2.TailTaskLogsResponse(resume_token=token)
                # Changes of the task and lines that any replica stores wake the tail.
                await changes.next(FOLLOW_SECONDS if left is None else left + 0.05)
            token = encode_cursor(cursor, binding)
            yield task_service_pb2.TailTaskLogsResponse(closing=True, resume_token=token)

    async def _announced_entries(self, key: TaskKey, changes: Subscription) -> None:
        """Wait until the entries that a run announced are stored, if the task has just ended."""
        while not self._hub.closing:
            async with self._pool.reading() as tx:
                state = await run_logs.state(tx, *key)
            if state is None:
                return
            left = state.patience_left(READ_SECONDS, silence=0.0, quiet=None)
            if left is None or left <= 0:
                return
            await changes.next(left + 0.05)

    async def _tail_start(
        self, request: task_service_pb2.TailTaskLogsRequest, query: LogQuery, binding: str
    ) -> Cursor:
        if request.resume_token:
            return decode_cursor(request.resume_token, binding, field="resume_token")
        if not request.tail_lines:
            return (0, 0)
        lines, cursor = request.tail_lines, (LATEST, LATEST)
        found: list[Cursor] = []
        async with self._pool.reading() as tx:
            while len(found) <= lines:
                chunks = await run_logs.read(tx, query, *cursor, CHUNKS, backwards=True)
                if not chunks:
                    return (0, 0)
                for chunk in chunks:
                    found += [(chunk.generation, e.sequence) for e in reversed(_entries(chunk, query))]
                    cursor = _end(chunk, backwards=True)
        return found[lines]


def _run(lease: lease_pb2.LeaseRef) -> RunRef:
    tenant_id, task_id = parse_task_name(lease.task)
    return RunRef(tenant_id, task_id, lease.generation, lease.lease_id)


def _new_chunk(run: RunRef, batch: lease_pb2.LogBatch, position: Position) -> NewChunk | None:
    """The entries of the batch that are not stored yet; None if all of them are."""
    entries: Sequence[log_pb2.LogEntry] = batch.entries
    if entries and entries[0].sequence <= position.stored:
        entries = [entry for entry in entries if entry.sequence > position.stored]
    if not entries:
        return None
    _clamp_times(entries, position)
    last_time = entries[-1].time.ToDatetime(UTC) if entries[-1].HasField("time") else datetime.now(UTC)
    return NewChunk(
        generation=run.generation,
        first_sequence=entries[0].sequence,
        last_sequence=entries[-1].sequence,
        dropped_count=batch.dropped_count,
        entries=lease_pb2.LogBatch(entries=entries).SerializeToString(),
        tenant_id=run.tenant_id,
        task_id=run.task_id,
        last_time=last_time,
        max_level=max(entry.level for entry in entries),
    )


def _clamp_times(entries: Sequence[log_pb2.LogEntry], position: Position) -> None:
    """Move times by the runner's clock into the span of the run: none before its start, none after its end.

    Whole seconds are compared first: most entries need no more.
    """
    first, last = timestamp(position.earliest or _BEGINNING), timestamp(position.latest)
    for entry in entries:
        if not entry.HasField("time"):
            entry.time.CopyFrom(last)
        elif entry.time.seconds <= first.seconds and entry.time.ToNanoseconds() < first.ToNanoseconds():
            entry.time.CopyFrom(first)
        elif entry.time.seconds >= last.seconds and entry.time.ToNanoseconds() > last.ToNanoseconds():
            entry.time.CopyFrom(last)


def _entries(chunk: LogChunk, query: LogQuery) -> list[log_pb2.LogEntry]:
    batch = lease_pb2.LogBatch.FromString(chunk.entries)
    entries = [entry for entry in batch.entries if entry.level >= query.min_level]
    for entry in entries:
        entry.generation = chunk.generation
    return entries


def _end(chunk: LogChunk, backwards: bool) -> Cursor:
    return (chunk.generation, chunk.first_sequence if backwards else chunk.last_sequence)


def _select(
    chunk: LogChunk, query: LogQuery, cursor: Cursor, request: task_service_pb2.ListTaskLogsRequest
) -> Iterator[log_pb2.LogEntry]:
    """Yield the entries of a chunk that are beyond the cursor and within the requested time."""
    entries = _entries(chunk, query)
    start, end = _span(request)
    for entry in reversed(entries) if request.descending else entries:
        position = (chunk.generation, entry.sequence)
        beyond = position < cursor if request.descending else position > cursor
        if beyond and start <= entry.time.ToNanoseconds() < end:
            yield entry


def _span(request: task_service_pb2.ListTaskLogsRequest) -> tuple[int, int]:
    span = request.time_range
    start = span.start_time.ToNanoseconds()
    if span.HasField("window") and not span.HasField("start_time"):
        start = int(datetime.now(UTC).timestamp() * 1e9) - span.window.ToNanoseconds()
    return start, span.end_time.ToNanoseconds() if span.HasField("end_time") else 2**62


def _tail_responses(
    chunk: LogChunk, query: LogQuery, cursor: Cursor, binding: str
) -> Iterator[task_service_pb2.TailTaskLogsResponse]:
    entries = [entry for entry in _entries(chunk, query) if (chunk.generation, entry.sequence) > cursor]
    dropped = chunk.dropped_count
    while entries:
        page = fitting(entries[:ENTRIES])
        entries = entries[len(page) :]
        token = encode_cursor((chunk.generation, page[-1].sequence), binding)
        yield task_service_pb2.TailTaskLogsResponse(entries=page, resume_token=token, dropped_count=dropped)
        dropped = 0
