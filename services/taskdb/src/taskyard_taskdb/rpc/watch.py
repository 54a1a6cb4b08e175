"""WatchTasks and WaitTask: streams of the change log, each with a subscription to the hub."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from taskyard.errors import FieldInvalid, LogEpochChanged, NotFound, ResumeTokenExpired
from taskyard.v1 import task_service_pb2
from taskyard_kit.call_limits import CallLimits
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc import convert
from taskyard_taskdb.rpc.access import visible_scope, visible_task
from taskyard_taskdb.rpc.response_size import MAX_RESPONSE_BYTES, fitting
from taskyard_taskdb.rpc.task_events import TaskEvents, coalesced
from taskyard_taskdb.rpc.times import timestamp
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.change_log import epoch as log_epoch
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.watch import token
from taskyard_taskdb.watch.hub import STREAMS_PER_TENANT, Hub, session_seconds
from taskyard_taskdb.watch.subscription import Subscription, TaskKey
from taskyard_taskdb.watch.token import ResumeToken

BOOKMARK_SECONDS = 15.0
WAIT_SECONDS = 30.0
SNAPSHOT_PAGE = 100
# Pages of snapshots that the streams of one tenant hold at a time, read or being sent; one is read at a time.
HELD_PAGES = 8
# How long a token of another epoch waits for a replica that proves its log; a hub looks every 2 s.
PROOF_SECONDS = 4.0
PROOF_POLL_SECONDS = 0.2

Response = task_service_pb2.WatchTasksResponse


@dataclass(frozen=True, slots=True)
class Watch:
    """The parsed request of one stream."""

    tenant_id: str | None
    keys: frozenset[TaskKey]
    condition: filters.Filter | None
    view: int
    query: str
    until_terminal: bool
    coalesce: bool


class WatchHandler:
    """TaskService.WatchTasks and WaitTask."""

    def __init__(self, pool: Pool, hub: Hub, events: TaskEvents, rest: Callable[[], Awaitable[None]]) -> None:
        self._pool = pool
        self._hub = hub
        self._events = events
        self._rest = rest
        self._held_pages = CallLimits(HELD_PAGES, max_waiting=STREAMS_PER_TENANT)
        self._page_reads = CallLimits(1, max_waiting=STREAMS_PER_TENANT)

    async def WatchTasks(
        self, request: task_service_pb2.WatchTasksRequest, context: Any
    ) -> AsyncIterator[Any]:
        """Send the snapshot if requested, then every change, until the client or its age limit ends it.

        Events that streams share are sent as encoded responses.
        """
        watch = _parse(request)
        await self._hub.ready()
        if not request.resume_token:
            await self._hub.flush()
        subscription = self._hub.subscribe(watch.tenant_id, watch.keys, shows_tasks=True)
        try:
            async with aclosing(self._responses(request, watch, subscription)) as responses:
                async for response in responses:
                    yield response
        finally:
            self._hub.unsubscribe(subscription)

    async def _responses(
        self, request: task_service_pb2.WatchTasksRequest, watch: Watch, subscription: Subscription
    ) -> AsyncGenerator[Response | bytes, None]:
        ended: set[TaskKey] = set()
        after: TaskKey | None = None
        if request.resume_token:
            resumed = await self._resume(request.resume_token, watch)
            subscription.rewind(resumed.id, resumed.time)
            after = resumed.snapshot_after
        if request.snapshot or after is not None:
            async with aclosing(self._snapshot(watch, subscription, after, ended)) as snapshot:
                async for response in snapshot:
                    yield response
            yield self._bookmark(watch, subscription, snapshot_complete=True)
        elif not request.resume_token:
            yield self._bookmark(watch, subscription)
        if watch.until_terminal:
            if not request.snapshot:
                ended |= await self._ended(watch)
            # The changes that ended these tasks may not have reached the subscription yet.
            await self._hub.flush()
        interval = request.bookmark_interval.ToTimedelta().total_seconds() or BOOKMARK_SECONDS
        now = time.monotonic()
        age_limit, bookmark_due = now + session_seconds(), now + interval
        while not self._hub.closing and now < age_limit:
            if watch.until_terminal and ended >= watch.keys and not subscription.behind:
                return
            changes = await subscription.next(max(0.0, min(bookmark_due, age_limit) - now))
            if watch.until_terminal:
                ended |= {_key(change) for change in changes if change.phase >= Phase.SUCCEEDED}
                ended -= {_key(change) for change in changes if change.event == ChangeEvent.TASK_RETRIED}
            selected = coalesced(changes) if watch.coalesce else changes
            last: tuple[LoggedChange, bytes] | None = None
            async for part in self._events.slices(selected, watch.condition, watch.view):
                if last is not None:
                    yield last[1] + self._encoded_end(watch, last[0].id, last[0].time)
                    await self._rest()
                last = part
            now = time.monotonic()
            if last is not None or now >= bookmark_due:
                # The position covers all changes that were read, including those that did not match.
                end = self._encoded_end(watch, subscription.position, subscription.time)
                yield end if last is None else last[1] + end
                bookmark_due = now + interval
        yield self._bookmark(watch, subscription, closing=True)

    def _bookmark(
        self,
        watch: Watch,
        subscription: Subscription,
        *,
        snapshot_complete: bool = False,
        closing: bool = False,
    ) -> Response:
        response = self._response(watch, subscription.position, subscription.time)
        response.snapshot_complete = snapshot_complete
        response.closing = closing
        return response

    def _encoded_end(self, watch: Watch, position: int, at: datetime) -> bytes:
        """The encoded end of a response: its resume token covers all changes up to a position."""
        return self._response(watch, position, at).SerializeToString()

    def _response(
        self,
        watch: Watch,
        position: int,
        at: datetime,
        snapshot_after: TaskKey | None = None,
        events: Sequence[task_service_pb2.TaskEvent] = (),
    ) -> Response:
        """A response whose resume token covers all changes up to a position, and a part of the snapshot."""
        token = ResumeToken(self._hub.epoch, position, at, snapshot_after)
        response = Response(resume_token=token.encode(watch.query), events=events)
        response.server_time.seconds, response.server_time.nanos = divmod(time.time_ns(), 1_000_000_000)
        return response

    async def _resume(self, text: str, watch: Watch) -> ResumeToken:
        resumed = token.decode(text, watch.query)
        if resumed.epoch != self._hub.epoch:
            await self._check_continued(resumed)
        async with self._pool.reading() as tx:
            oldest = await change_reader.oldest(tx)
        if oldest is not None and resumed.id + change_reader.ID_STEP < oldest[0] and resumed.time < oldest[1]:
            raise ResumeTokenExpired(resumed.time.isoformat(), oldest[1].isoformat())
        return resumed

    async def _check_continued(self, resumed: ResumeToken) -> None:
        """Raise LogEpochChanged unless this log is known to continue that of the token beyond its position.

        After a failover each replica proves what it has read, and learns of the new epoch, at its own time.
        """
        deadline = time.monotonic() + PROOF_SECONDS
        while resumed.epoch != (current := self._hub.epoch):
            async with self._pool.reading() as tx:
                known = await log_epoch.continued_until(tx, resumed.epoch, current)
            if known is not None and resumed.id <= known:
                return
            if time.monotonic() >= deadline:
                raise LogEpochChanged(str(resumed.epoch), str(current))
            await asyncio.sleep(PROOF_POLL_SECONDS)

    async def _snapshot(
        self, watch: Watch, subscription: Subscription, after: TaskKey | None, ended: set[TaskKey]
    ) -> AsyncGenerator[Response, None]:
        """Yield the current tasks behind `after`; changes since the subscription began follow and may repeat
        them. Each response has the token with which its successor continues."""
        owner = f"tenants/{watch.tenant_id or '-'}"
        async for part in self._parts(watch, after):
            # The page is held until the peer has taken it, or is found to read nothing.
            async with self._held_pages.call(owner):
                async with self._page_reads.call(owner):
                    page = await self._read(part)
                ended |= {record.key for record in page if record.phase >= Phase.SUCCEEDED}
                matching = [
                    record
                    for record in page
                    if watch.condition is None or watch.condition.matches(tasks.filter_fields(record))
                ]
                while matching:
                    events = fitting(_snapshot_event(record, watch.view) for record in matching)
                    last, matching = matching[len(events) - 1], matching[len(events) :]
                    place = last if matching else page[-1]
                    yield self._response(watch, subscription.position, subscription.time, place.key, events)
                    await self._rest()

    async def _read(self, keys: Sequence[TaskKey]) -> list[tasks.TaskRecord]:
        async with self._pool.reading() as tx:
            found = await tasks.read_many(tx, keys)
        return [found[key] for key in keys if key in found]

    async def _parts(self, watch: Watch, after: TaskKey | None) -> AsyncIterator[list[TaskKey]]:
        """The keys of a watch in their order, as many at a time as fit a response."""
        async for sizes in self._sizes(watch, after):
            for part in tasks.sliced(sorted(sizes), sizes, MAX_RESPONSE_BYTES):
                yield part

    async def _sizes(self, watch: Watch, after: TaskKey | None) -> AsyncIterator[Mapping[TaskKey, int]]:
        """The keys of a watch and the bytes of their tasks, a page at a time."""
        if watch.keys:
            keys = sorted(key for key in watch.keys if after is None or key > after)
            for start in range(0, len(keys), SNAPSHOT_PAGE):
                async with self._pool.reading() as tx:
                    sizes = await tasks.read_sizes(tx, keys[start : start + SNAPSHOT_PAGE])
                yield sizes
            return
        while True:
            async with self._pool.reading() as tx:
                sizes = await tasks.scan_keys(tx, watch.tenant_id, after, SNAPSHOT_PAGE)
            if not sizes:
                return
            yield sizes
            after = max(sizes)

    async def _ended(self, watch: Watch) -> set[TaskKey]:
        async with self._pool.reading() as tx:
            found = await archive.read_many_anywhere(tx, watch.keys)
        missing = watch.keys - found.keys()
        if missing:
            raise NotFound("task", task_name(*min(missing)))
        return {key for key, record in found.items() if record.phase >= Phase.SUCCEEDED}

    async def WaitTask(
        self, request: task_service_pb2.WaitTaskRequest, context: Any
    ) -> task_service_pb2.WaitTaskResponse:
        """Wait until the task has ended, or is past a version, or the time is up."""
        key = visible_task(request.name)
        seconds = (
            request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else WAIT_SECONDS
        )
        left = context.time_remaining()
        deadline = time.monotonic() + (min(seconds, max(left - 1, 0)) if left is not None else seconds)
        await self._hub.ready()
        subscription = self._hub.subscribe(key[0], frozenset({key}))
        try:
            while True:
                async with self._pool.reading() as tx:
                    record, _ = await archive.read_anywhere(tx, key)
                if record is None:
                    raise NotFound("task", request.name)
                after = request.after_resource_version
                satisfied = record.version > after if after else record.phase >= Phase.SUCCEEDED
                left = deadline - time.monotonic()
                if satisfied or left <= 0 or self._hub.closing:
                    view = convert.chosen_view(request.view, convert.FULL)
                    task = convert.task_message(record, view)
                    return task_service_pb2.WaitTaskResponse(task=task, satisfied=satisfied)
                await subscription.next(left)
        finally:
            self._hub.unsubscribe(subscription)


def _snapshot_event(record: tasks.TaskRecord, view: int) -> task_service_pb2.TaskEvent:
    status = convert.status_message(record)
    status.ClearField("details")
    if status.HasField("result"):
        status.result.ClearField("output")
    return task_service_pb2.TaskEvent(
        type=task_service_pb2.TASK_EVENT_TYPE_SNAPSHOT,
        task=convert.task_message(record, view),
        resource_version=record.version,
        status=status,
        time=timestamp(record.update_time),
    )


def _parse(request: task_service_pb2.WatchTasksRequest) -> Watch:
    tenant_id = visible_scope(request.parent)
    keys = frozenset(visible_task(name, f"names[{index}]") for index, name in enumerate(request.names))
    for owner, task_id in keys:
        if tenant_id not in (None, owner):
            problem = (
                f"{task_name(owner, task_id)} is not of {request.parent}; watch one tenant, or tenants/-"
            )
            raise FieldInvalid.of("names", problem)
    if request.until_terminal and not keys:
        raise FieldInvalid.of("until_terminal", "needs names; give the tasks to wait for")
    return Watch(
        tenant_id=tenant_id,
        keys=keys,
        condition=filters.parse(request.filter) if request.filter else None,
        view=convert.chosen_view(request.view, convert.BASIC),
        query=watch_query(request.parent, request.names, request.filter),
        until_terminal=request.until_terminal,
        coalesce=request.coalesce,
    )


def watch_query(parent: str, names: Iterable[str], filter_text: str) -> str:
    """The query that a resume token is bound to; the token of a list is that of a watch without names."""
    text = f"{parent}|{','.join(sorted(names))}|{filter_text}"
    # A thousand names are hashed once, not with every token.
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _key(change: LoggedChange) -> TaskKey:
    return (change.tenant_id, change.resource_id)
