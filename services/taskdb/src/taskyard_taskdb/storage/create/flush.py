"""One transaction of the create path: request ids, prerequisites, replaced tasks, slots, then the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import compress
from typing import NamedTuple

from taskyard.errors import RequestIdReused, SlotQueueFull
from taskyard_taskdb.domain import admission
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.words import Kind, PendingReason, Phase, TimerKind
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import COPY_FROM, LOG_LOCK, TASK, ChangeRow, insert_changes
from taskyard_taskdb.storage.claim.lanes import Appended, LaneKey, merge_appended
from taskyard_taskdb.storage.create import (
    dependency_admission,
    limit_admission,
    request_ids,
    slot_admission,
)
from taskyard_taskdb.storage.create.eager import EagerLeases
from taskyard_taskdb.storage.create.new_task import (
    Created,
    CreateResult,
    Dropped,
    NewTask,
    Refused,
    Replayed,
)
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.create.slot_admission import Occupancy
from taskyard_taskdb.storage.dependency.edges import Judged
from taskyard_taskdb.storage.dependency.release import Released
from taskyard_taskdb.storage.group import joining
from taskyard_taskdb.storage.limit.book import Book
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters, quota
from taskyard_taskdb.storage.tenant.counters import Delta
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write as write_transitions

_MICROSECOND = timedelta(microseconds=1)


class _Planned(NamedTuple):
    """A task that is to be stored, its position in the batch and the state it begins in."""

    position: int
    task: NewTask
    reason: PendingReason
    # When a delayed task becomes due.
    due_time: datetime | None


def is_single(tasks: Sequence[NewTask]) -> bool:
    """Whether `write` needs one statement only, which commits by itself."""
    return len(tasks) < COPY_FROM and all(task.is_plain for task in tasks)


async def write(
    tx: Tx, tasks: Sequence[NewTask], eager: EagerLeases | None = None
) -> tuple[list[CreateResult], CommitNotice]:
    """Stores what is new, with leases where `eager` has a place.

    Raises Refused for tasks whose slot is full, that are beyond a limit of their tenant, that name an unknown
    prerequisite or limit or each other, that join a closed group, or that reuse a request id.

    Raises UniqueViolation for a taken task id, and DataError for values that the database cannot store.
    """
    results: dict[int, CreateResult] = {}
    await _claim_requests(tx, tasks, results)
    fresh = [(position, task) for position, task in enumerate(tasks) if position not in results]
    delta = Delta()
    replaced, notice = await slot_admission.cancel_live(
        tx, [task for _, task in fresh if task.replaces], delta
    )
    # After the replacement, which may end a prerequisite.
    judged = await dependency_admission.admit(tx, fresh)
    now = await _database_time(tx, fresh)
    heads: list[tuple[SlotKey, str]] = []
    dropped: list[Request] = []
    occupied = await _lock_slots(tx, fresh)
    slot_admission.check(replaced, occupied, [task for _, task in fresh])
    planned: list[_Planned] = []
    full: dict[int, Exception] = {}
    for position, task in fresh:
        blocked = bool(judged) and task.key in judged and judged[task.key].blocked
        verdict = _plan(position, task, now, occupied, heads, blocked=blocked)
        if isinstance(verdict, _Planned):
            planned.append(verdict)
        elif isinstance(verdict, Dropped):
            results[position] = verdict
            if task.request_id:
                dropped.append(Request(task.tenant_id, task.request_id, task.body_hash, verdict.task_id))
        else:
            full[position] = verdict
    if full:
        raise Refused(full)
    if dropped:
        await request_ids.redirect(tx, Method.CREATE_TASK, dropped)
    if heads:
        await slot_admission.set_heads(tx, heads)
    named_limits = await limit_admission.lock(tx, fresh)
    notice.tenants |= await counters.add(tx, delta)
    await _check_limits(tx, planned)
    if planned:
        results |= await _insert(tx, planned, replaced, eager)
        await joining.count(tx, (item.task for item in planned))
        notice.changed = True
        if judged:
            notice.dependencies |= await _store_dependencies(tx, planned, fresh, judged)
        if named_limits is not None:
            notice.add(await _store_limits(tx, named_limits, planned, results))
        merge_appended(notice.appended, _appended(results.values()))
    return [results[position] for position in range(len(tasks))], notice


async def _store_dependencies(
    tx: Tx, planned: Sequence[_Planned], fresh: Sequence[tuple[int, NewTask]], judged: Mapping[Key, Judged]
) -> bool:
    stored = [(item.position, item.task) for item in planned]
    dependency_admission.refuse_dropped(stored, fresh)
    return await dependency_admission.store(tx, stored, judged)


async def _store_limits(
    tx: Tx, book: Book, planned: Sequence[_Planned], results: dict[int, CreateResult]
) -> CommitNotice:
    """Store the limits of new tasks and admit those that may start, and others that wait for these limits."""
    settled = await limit_admission.store(tx, book, [(item.task, item.reason) for item in planned])
    notice = await write_transitions(tx, [], released=Released(settled.steps))
    notice.limits |= settled.left
    positions = {item.task.key: item.position for item in planned}
    for step in settled.steps:
        made = results[positions[step.key]] if step.key in positions else None
        if isinstance(made, Created):
            admitted = replace(made, pending_reason=PendingReason.QUEUED, admit_time=step.task.update_time)
            results[positions[step.key]] = admitted
    return notice


def _appended(results: Iterable[CreateResult]) -> Iterator[tuple[LaneKey, Appended]]:
    """What the new tasks among these add to their lanes."""
    for result in results:
        queued = (
            isinstance(result, Created)
            and result.pending_reason is PendingReason.QUEUED
            and result.leased is None
        )
        # An admitted task entered its lane as any other that waited.
        if isinstance(result, Created) and queued and result.admit_time is None:
            yield result.task.lane, Appended(result.create_time, 1)


async def _check_limits(tx: Tx, planned: Sequence[_Planned]) -> None:
    """Raises Refused for tasks beyond a limit of their tenant."""
    limited = {item.position: item.task.tenant_id for item in planned if item.task.limited}
    if limited and (refused := await quota.admit(tx, limited)):
        raise Refused(refused)


async def _claim_requests(tx: Tx, tasks: Sequence[NewTask], results: dict[int, CreateResult]) -> None:
    reused: dict[int, Exception] = {}
    for method in sorted({task.method for task in tasks if task.request_id}):
        positions = {
            (task.tenant_id, task.request_id): position
            for position, task in enumerate(tasks)
            if task.request_id and task.method == method
        }
        requests = [
            Request(tasks[at].tenant_id, tasks[at].request_id, tasks[at].body_hash, tasks[at].task_id)
            for at in positions.values()
        ]
        for key, found in (await request_ids.claim(tx, method, requests)).items():
            if isinstance(found, RequestIdReused):
                reused[positions[key]] = found
            else:
                results[positions[key]] = Replayed(key[0], found)
    if reused:
        raise Refused(reused)


async def _database_time(tx: Tx, fresh: Sequence[tuple[int, NewTask]]) -> datetime | None:
    # Only a task with not_before depends on the time before the insert.
    if all(task.policy.not_before is None for _, task in fresh):
        return None
    row = await tx.fetch_row("SELECT clock_timestamp()")
    assert row is not None
    now: datetime = row[0]
    return now


async def _lock_slots(tx: Tx, fresh: Sequence[tuple[int, NewTask]]) -> dict[SlotKey, Occupancy]:
    keys = {(task.tenant_id, task.slot) for _, task in fresh if task.slot is not None}
    return await slot_admission.lock_and_read(tx, keys) if keys else {}


def _plan(
    position: int,
    task: NewTask,
    now: datetime | None,
    occupied: Mapping[SlotKey, Occupancy],
    heads: list[tuple[SlotKey, str]],
    *,
    blocked: bool = False,
) -> _Planned | Dropped | SlotQueueFull:
    not_before = task.policy.not_before
    due_time = not_before if now is not None and not_before is not None and not_before > now else None
    if task.kind == Kind.EXTERNAL:
        return _Planned(position, task, PendingReason.EXTERNAL, None)
    waits = PendingReason.DELAYED if due_time is not None else PendingReason.QUEUED
    if blocked:
        waits, due_time = PendingReason.BLOCKED, None
    ready = waits is PendingReason.QUEUED
    if ready and task.limits:
        waits = PendingReason.LIMITED
    if task.slot is None:
        return _Planned(position, task, waits, due_time)
    slot = occupied[(task.tenant_id, task.slot)]
    try:
        verdict = admission.admit(task.admission, task.tenant_id, task.slot, slot.head, slot.live)
    except SlotQueueFull as error:
        return error
    if isinstance(verdict, admission.Dropped):
        return Dropped(task.tenant_id, verdict.task_id)
    if blocked:
        pass
    elif due_time is None and slot.head is None:
        slot.head = task.task_id
        heads.append(((task.tenant_id, task.slot), task.task_id))
    elif due_time is None:
        waits = PendingReason.SLOT_BUSY
    slot.live.append(task.task_id)
    return _Planned(position, task, waits, due_time)


async def _insert(
    tx: Tx,
    planned: Sequence[_Planned],
    replaced: Mapping[SlotKey, Sequence[str]],
    eager: EagerLeases | None,
) -> dict[int, CreateResult]:
    if eager is not None:
        times = await eager.insert(tx, [(item.position, item.task) for item in planned])
        return {
            item.position: Created(item.task, time, item.reason, leased=eager.lease(item.position))
            for item, time in zip(planned, times, strict=True)
        }
    times = await (_copy(tx, planned) if len(planned) >= COPY_FROM else _insert_together(tx, planned))
    await _set_timers(tx, planned, times)
    return {
        item.position: Created(item.task, time, item.reason, _replaced_by(item.task, replaced))
        for item, time in zip(planned, times, strict=True)
    }


async def _insert_together(tx: Tx, planned: Sequence[_Planned]) -> list[datetime]:
    """Tasks, queue rows and changes in one statement; returns when each task was created."""
    row = await tx.fetch_row(statement("insert_tasks"), _columns(planned))
    assert row is not None
    return _times(row[0], len(planned))


async def _copy(tx: Tx, planned: Sequence[_Planned]) -> list[datetime]:
    """The same for a large batch: a COPY for each table, which logs the rows of a page together."""
    times = _times(await database_time(tx), len(planned))
    columns = _copied_columns(planned, times)
    await tx.copy(statement("copy_tasks"), arrays.copy_data([columns[name] for name in _COPIED_TASK]))
    queued = [item.reason is PendingReason.QUEUED for item in planned]
    if any(queued):
        kept = [list(compress(columns[name], queued)) for name in _COPIED_QUEUE]
        await tx.copy(statement("copy_queue"), arrays.copy_data(kept))
    await insert_changes(tx, [_creation(item, time) for item, time in zip(planned, times, strict=True)])
    return times


def _times(last: datetime, count: int) -> list[datetime]:
    # A microsecond apart, so that a batch stays FIFO.
    return [last - (count - 1 - index) * _MICROSECOND for index in range(count)]


def _creation(item: _Planned, time: datetime) -> ChangeRow:
    task = item.task
    return ChangeRow(
        time=time,
        version=1,
        generation=0,
        next_attempt_time=item.due_time,
        attempt=0,
        retry_count=0,
        runner_loss_count=0,
        exit_code=None,
        resource_kind=TASK,
        event=ChangeEvent.TASK_CREATED,
        actor_type=task.creator_type,
        phase=Phase.PENDING,
        previous_phase=0,
        pending_reason=item.reason,
        tenant_id=task.tenant_id,
        resource_id=task.task_id,
        actor_id=task.creator_id,
        runner_id=None,
        error_code=None,
        request_id=task.request_id or None,
        details=None,
    )


def _replaced_by(task: NewTask, replaced: Mapping[SlotKey, Sequence[str]]) -> tuple[str, ...]:
    return tuple(replaced[(task.tenant_id, task.slot)]) if task.replaces and task.slot is not None else ()


async def _set_timers(tx: Tx, planned: Sequence[_Planned], times: Sequence[datetime]) -> None:
    rows: list[tuple[str, str, TimerKind, datetime]] = []
    for item, time in zip(planned, times, strict=True):
        policy = item.task.policy
        if item.due_time is not None:
            rows.append((*item.task.key, TimerKind.DUE, item.due_time))
        if policy.queue_timeout is not None and item.reason is PendingReason.QUEUED:
            rows.append((*item.task.key, TimerKind.QUEUE_TIMEOUT, time + policy.queue_timeout))
        if policy.total_timeout is not None:
            rows.append((*item.task.key, TimerKind.TOTAL_TIMEOUT, time + policy.total_timeout))
    if rows:
        tenants, ids, kinds, dues = zip(*rows, strict=True)
        columns = {
            "tenant_ids": arrays.texts(tenants),
            "task_ids": arrays.texts(ids),
            "kinds": arrays.smallints(kinds),
            "due_times": arrays.timestamps(dues),
        }
        await tx.execute(statement("set_timers"), columns)


# The leading fields of NewTask, by name, and how each becomes a column.
_TASK_COLUMNS: tuple[tuple[str, arrays.Encoder], ...] = (
    ("tenant_id", arrays.texts),
    ("task_id", arrays.texts),
    ("uid", arrays.uuids),
    ("kind", arrays.smallints),
    ("class_id", arrays.bigints),
    ("priority", arrays.smallints),
    ("pinned_runner", arrays.texts),
    ("task_type", arrays.texts),
    ("slot", arrays.texts),
    ("entity_type", arrays.texts),
    ("entity_id", arrays.texts),
    ("parent_task_id", arrays.texts),
    ("creator_type", arrays.smallints),
    ("creator_id", arrays.texts),
    ("traceparent", arrays.texts),
    ("spec", arrays.byteas),
    ("callback", arrays.byteas),
    ("annotations", arrays.byteas),
    ("labels", arrays.texts),
    ("task_type_tenant", arrays.texts),
    ("group_id", arrays.texts),
)


# The columns of copy_tasks and copy_queue, in their order.
_COPIED_TASK = (
    "create_time",
    "update_time",
    "ready_time",
    "not_before",
    "phase",
    "pending_reason",
    "class_id",
    "total_deadline",
    "uid",
    "max_retries",
    "kind",
    "priority",
    "creator_type",
    "restart",
    "overlap",
    "on_runner_lost",
    "timed",
    "tenant_id",
    "task_id",
    "task_type",
    "task_type_tenant",
    "pinned_runner",
    "slot",
    "entity_type",
    "entity_id",
    "parent_task_id",
    "creator_id",
    "traceparent",
    "spec",
    "policy",
    "callback",
    "annotations",
    "labels",
    "group_id",
)
_COPIED_QUEUE = ["class_id", "create_time", "priority", "tenant_id", "pinned_runner", "task_id"]


def _copied_columns(planned: Sequence[_Planned], times: Sequence[datetime]) -> dict[str, list[bytes]]:
    fields = list(zip(*(item.task for item in planned), strict=True))
    policies = [item.task.policy for item in planned]
    columns = {
        name: arrays.elements(encode, fields[index])
        for index, (name, encode) in enumerate(_TASK_COLUMNS)
        if name not in ("uid", "labels")
    }
    created = arrays.timestamps(times).elements
    deadlines = [
        None if policy.total_timeout is None else time + policy.total_timeout
        for policy, time in zip(policies, times, strict=True)
    ]
    ready = [
        time if item.reason is PendingReason.QUEUED else None
        for item, time in zip(planned, times, strict=True)
    ]
    # An id that was drawn with its task's name is not stored twice.
    uids = [
        None if t.uid.hex() == t.task_id.replace("-", "") else t.uid for t in (item.task for item in planned)
    ]
    return columns | {
        "uid": arrays.elements(arrays.uuids, uids),
        "labels": arrays.elements(arrays.jsonbs, [item.task.labels for item in planned]),
        "create_time": created,
        "update_time": created,
        "ready_time": arrays.elements(arrays.timestamps, ready),
        "not_before": arrays.elements(arrays.timestamps, [item.due_time for item in planned]),
        "phase": arrays.elements(arrays.smallints, [Phase.PENDING.value] * len(planned)),
        "pending_reason": arrays.elements(arrays.smallints, [item.reason for item in planned]),
        "total_deadline": arrays.elements(arrays.timestamps, deadlines),
        "max_retries": arrays.elements(arrays.integers, [policy.max_retries for policy in policies]),
        "restart": arrays.elements(arrays.smallints, [policy.restart for policy in policies]),
        "overlap": arrays.elements(arrays.smallints, [policy.overlap for policy in policies]),
        "on_runner_lost": arrays.elements(arrays.smallints, [policy.on_runner_lost for policy in policies]),
        "timed": arrays.elements(arrays.bools, [_is_timed(policy) for policy in policies]),
        "policy": arrays.elements(arrays.byteas, [item.task.packed_policy for item in planned]),
    }


def _is_timed(policy: TaskPolicy) -> bool:
    return policy.queue_timeout is not None or policy.total_timeout is not None


def _columns(planned: Sequence[_Planned]) -> dict[str, object]:
    fields = list(zip(*(item.task for item in planned), strict=True))
    columns = {name: encode(fields[index]) for index, (name, encode) in enumerate(_TASK_COLUMNS)}
    policies = [item.task.policy for item in planned]
    return columns | {
        "log": LOG_LOCK,
        "count": len(planned),
        "event": ChangeEvent.TASK_CREATED.value,
        "policy": arrays.byteas([item.task.packed_policy for item in planned]),
        "restart": arrays.smallints([policy.restart for policy in policies]),
        "overlap": arrays.smallints([policy.overlap for policy in policies]),
        "on_runner_lost": arrays.smallints([policy.on_runner_lost for policy in policies]),
        "max_retries": arrays.integers([policy.max_retries for policy in policies]),
        "timed": arrays.bools([_is_timed(policy) for policy in policies]),
        "pending_reason": arrays.smallints([item.reason for item in planned]),
        "not_before": arrays.timestamps([item.due_time for item in planned]),
        "total_timeout": arrays.intervals([policy.total_timeout for policy in policies]),
        "request_id": arrays.texts([item.task.request_id or None for item in planned]),
    }
