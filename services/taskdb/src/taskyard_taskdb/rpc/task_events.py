"""Changes of tasks as events: a task is read once for all streams, and an event encoded once per view."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.change import ChangeEvent, ResourceKind
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc import convert
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import TaskRecord
from taskyard_taskdb.watch.subscription import TaskKey

ENTERED = task_service_pb2.TASK_EVENT_TYPE_ENTERED
UPDATED = task_service_pb2.TASK_EVENT_TYPE_UPDATED
EXITED = task_service_pb2.TASK_EVENT_TYPE_EXITED
DELETED = task_service_pb2.TASK_EVENT_TYPE_DELETED

# Tasks read and events sent at a time; a task may have a megabyte.
SLICE = 100
SLICE_BYTES = 1 << 20
# Bounds of the cache of events that other streams need a moment later.
KEPT_EVENTS = 4000
KEPT_BYTES = 16 << 20

Response = task_service_pb2.WatchTasksResponse
Event = task_service_pb2.TaskEvent
EventType = task_service_pb2.TaskEventType
ChangeKey = tuple[int, datetime]


@dataclass(slots=True)
class _CachedChange:
    """A change, its task as the first stream read it, and the events made of both.

    An event is kept as the bytes of a response that contains only this event: the concatenation of such
    responses is the response that contains all of the events.
    """

    record: TaskRecord | None
    size: int
    events: dict[tuple[int, int], bytes] = field(default_factory=dict)


class TaskEvents:
    """Makes the events of all streams of one replica."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._records: Batcher[TaskKey, TaskRecord | None] = Batcher(
            self._read, max_items=SLICE, in_flight=2, max_waiting=1_000_000
        )
        # By id and time: after a failover that lost changes their ids are drawn again.
        self._cache: dict[ChangeKey, _CachedChange] = {}
        self._kept_bytes = 0

    async def slices(
        self, changes: Sequence[LoggedChange], condition: filters.Filter | None, view: int
    ) -> AsyncIterator[tuple[LoggedChange, bytes]]:
        """Yield encoded events, as many as fit a response, with the last change that each response covers."""
        changes = [change for change in changes if change.resource_kind == ResourceKind.TASK]
        for start in range(0, len(changes), SLICE):
            part = changes[start : start + SLICE]
            cached = await self._find(part)
            events: list[bytes] = []
            size, last = 0, part[0]
            for change, found in zip(part, cached, strict=True):
                event = _event(change, found, condition, view)
                if event is None:
                    continue
                if events and size + len(event) > SLICE_BYTES:
                    yield last, b"".join(events)
                    events, size = [], 0
                events.append(event)
                size += len(event)
                last = change
            if events:
                yield part[-1], b"".join(events)

    async def prepare(self, tx: Tx, changes: Sequence[LoggedChange]) -> None:
        """Read the tasks of changes that streams are about to send, each task once."""
        uncached = [
            change
            for change in changes
            if change.resource_kind == ResourceKind.TASK and (change.id, change.time) not in self._cache
        ]
        size = 0
        for start in range(0, len(uncached), SLICE):
            part = uncached[start : start + SLICE]
            records = await tasks.read_many(tx, {_key(change) for change in part})
            size += sum(self._keep(change, records.get(_key(change))).size for change in part)
            if size > KEPT_BYTES // 2:
                # More tasks would evict these from the cache; streams read the rest themselves.
                return

    async def _find(self, changes: Sequence[LoggedChange]) -> list[_CachedChange]:
        found = {change.id: self._cache.get((change.id, change.time)) for change in changes}
        uncached = {_key(change) for change in changes if found[change.id] is None}
        if uncached:
            records = await self._read_shared(sorted(uncached))
            for change in changes:
                if found[change.id] is None:
                    found[change.id] = self._keep(change, records[_key(change)])
        return [cached for cached in found.values() if cached is not None]

    async def _read_shared(self, keys: Sequence[TaskKey]) -> dict[TaskKey, TaskRecord | None]:
        results = await self._records.submit_all(keys)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return dict(zip(keys, results, strict=True))  # type: ignore[arg-type]

    async def _read(self, keys: list[TaskKey]) -> list[TaskRecord | Exception | None]:
        async with self._pool.reading() as tx:
            records = await tasks.read_many(tx, set(keys))
        return [records.get(key) for key in keys]

    def _keep(self, change: LoggedChange, record: TaskRecord | None) -> _CachedChange:
        # Twice the size: the record, and the encoded event.
        size = 1000 if record is None else 1000 + 2 * (len(record.spec) + len(record.result or b""))
        cached = self._cache[change.id, change.time] = _CachedChange(record, size)
        self._kept_bytes += size
        while len(self._cache) > KEPT_EVENTS or self._kept_bytes > KEPT_BYTES:
            oldest = next(iter(self._cache))
            self._kept_bytes -= self._cache.pop(oldest).size
        return cached


def coalesced(changes: Sequence[LoggedChange]) -> list[LoggedChange]:
    """The changes without intermediate ones: the newest of each task, and each that ends a task."""
    newest = {_key(change): change.id for change in changes}
    return [
        change
        for change in changes
        if newest[_key(change)] == change.id
        or (change.phase >= Phase.SUCCEEDED and change.previous_phase != change.phase)
    ]


def _key(change: LoggedChange) -> TaskKey:
    return (change.tenant_id, change.resource_id)


def _event(
    change: LoggedChange, cached: _CachedChange, condition: filters.Filter | None, view: int
) -> bytes | None:
    """The encoded event of a change for a watch; None if the watch does not match it."""
    kind = _event_type(change, cached.record, condition)
    if kind is None:
        return None
    view = convert.NAME if kind == EXITED else view
    event = cached.events.get((kind, view))
    if event is None:
        response = Response(events=[_message(change, cached.record, kind, view)])
        event = cached.events[kind, view] = response.SerializeToString()
    return event


def _message(change: LoggedChange, record: TaskRecord | None, kind: EventType.ValueType, view: int) -> Event:
    event = Event(
        type=kind,
        resource_version=change.version,
        status=_status(change),
        event_type=ChangeEvent(change.event).word,
        actor=common_pb2.Actor(type=common_pb2.ActorType.ValueType(change.actor_type), id=change.actor_id),
    )
    set_time(event.time, change.time)
    if change.previous_phase != change.phase:
        event.previous_phase = task_pb2.TaskPhase.ValueType(change.previous_phase)
    if record is not None:
        event.task.CopyFrom(convert.task_message(record, view))
    else:
        event.task.name = task_name(change.tenant_id, change.resource_id)
        event.task.metadata.id = change.resource_id
    return event


def _event_type(
    change: LoggedChange, record: TaskRecord | None, condition: filters.Filter | None
) -> EventType.ValueType | None:
    if change.event == ChangeEvent.TASK_DELETED or (record is None and condition is not None):
        # A filter cannot be evaluated on a deleted task; clients that hold the task must drop it.
        return DELETED
    created = change.event == ChangeEvent.TASK_CREATED
    if condition is None or record is None:
        return ENTERED if created else UPDATED
    # Fields of the change have the values of that time; the other fields rarely change.
    fields = {**tasks.filter_fields(record), **_fields(change)}
    matches = condition.matches(fields)
    before = not created and condition.matches(
        {**fields, "status.phase": change.previous_phase or change.phase}
    )
    if not matches:
        return EXITED if before else None
    return UPDATED if before else ENTERED


def _fields(change: LoggedChange) -> dict[str, object]:
    return {
        "status.phase": change.phase,
        "status.attempt": change.attempt,
        "status.retry_count": change.retry_count,
    }


def _status(change: LoggedChange) -> task_pb2.TaskStatus:
    status = task_pb2.TaskStatus(
        phase=task_pb2.TaskPhase.ValueType(change.phase),
        pending_reason=task_pb2.PendingReason.ValueType(change.pending_reason),
        attempt=change.attempt,
        retry_count=change.retry_count,
        runner_loss_count=change.runner_loss_count,
        generation=change.generation,
        exit_code=change.exit_code,
    )
    if change.runner_id:
        status.runner = f"runners/{change.runner_id}"
    if change.error_code:
        status.error.code = change.error_code
    set_time(status.next_attempt_time, change.next_attempt_time)
    if change.phase >= Phase.SUCCEEDED:
        set_time(status.end_time, change.time)
    return status
