"""One transaction of the create path: request ids, prerequisites, replaced tasks, slots, then the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from taskyard.errors import RequestIdReused, SlotQueueFull
from taskyard_taskdb.domain import admission
from taskyard_taskdb.domain.words import Kind, PendingReason, TimerKind
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.claim.lanes import Appended, LaneKey, merge_appended
from taskyard_taskdb.storage.create import (
    dependency_admission,
    limit_admission,
    new_rows,
    request_ids,
    slot_admission,
)
from taskyard_taskdb.storage.create.eager import EagerLeases
from taskyard_taskdb.storage.create.new_rows import Beginnings
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
    """Whether `write_single` can store them: one statement, which commits by itself."""
    return new_rows.are_few(tasks) and all(task.is_plain for task in tasks)


async def write_single(
    tx: Tx, tasks: Sequence[NewTask], eager: EagerLeases | None = None
) -> tuple[dict[int, CreateResult], CommitNotice]:
    """Stores what is new, in one statement; tasks whose request ids are taken have no result.

    Raises UniqueViolation for a taken task id, and DataError for values that the database cannot store.
    """
    if eager is None:
        times = await new_rows.insert_unclaimed(tx, tasks)
    else:
        times = await eager.insert(tx, list(enumerate(tasks)), claim=True)
    notice = CommitNotice(changed=bool(times))
    return _stored(
        {position: (tasks[position], time) for position, time in times.items()}, notice, eager
    ), notice


async def find_requests(tx: Tx, tasks: Mapping[int, NewTask]) -> dict[int, CreateResult | RequestIdReused]:
    """What the requests of these tasks made before, by position; nothing for one that is not recorded."""
    found: dict[int, CreateResult | RequestIdReused] = {}
    for method, positions, requests in _by_method(tasks):
        for key, made in (await request_ids.find(tx, method, requests)).items():
            found[positions[key]] = made if isinstance(made, RequestIdReused) else Replayed(key[0], made)
    return found


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
    if all(task.is_plain for _, task in fresh):
        notice = CommitNotice(changed=bool(fresh))
        times: Iterable[datetime] = ()
        if fresh and eager is not None:
            times = (await eager.insert(tx, fresh)).values()
        elif fresh:
            times = await new_rows.insert(tx, Beginnings.queued([task for _, task in fresh]))
        stored = {position: (task, time) for (position, task), time in zip(fresh, times, strict=True)}
        results |= _stored(stored, notice, eager)
    else:
        notice = await _write_gated(tx, fresh, results)
    return [results[position] for position in range(len(tasks))], notice


def _stored(
    stored: dict[int, tuple[NewTask, datetime]], notice: CommitNotice, eager: EagerLeases | None
) -> dict[int, CreateResult]:
    """The results of tasks stored at these ascending times; the notice gets the lanes of those that queue."""
    if not stored:
        return {}
    tasks, times = zip(*stored.values(), strict=True)
    results: dict[int, CreateResult] = dict(zip(stored, Created.queued(tasks, times), strict=True))
    queued = list(stored.values())
    if eager is not None and eager.granted:
        queued = [made for position, made in stored.items() if position not in eager.granted]
        for position in eager.granted:
            task, time = stored[position]
            results[position] = Created(task, time, PendingReason.QUEUED, leased=eager.lease(position))
    lanes = [(t.tenant_id, t.class_id, t.priority, t.pinned_runner) for t, _ in queued]
    # The first time of a lane is the last that is set.
    first = dict(zip(reversed(lanes), (time for _, time in reversed(queued)), strict=True))
    counted = Counter(lanes).items()
    notice.appended = {LaneKey._make(lane): Appended(first[lane], count) for lane, count in counted}
    return results


async def _write_gated(
    tx: Tx,
    fresh: Sequence[tuple[int, NewTask]],
    results: dict[int, CreateResult],
) -> CommitNotice:
    """Stores tasks of all kinds, as their slots, limits, prerequisites and groups allow."""
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
        results |= await _insert(tx, planned, replaced)
        await joining.count(tx, (item.task for item in planned))
        notice.changed = True
        if judged:
            notice.dependencies |= await _store_dependencies(tx, planned, fresh, judged)
        if named_limits is not None:
            notice.add(await _store_limits(tx, named_limits, planned, results))
        merge_appended(notice.appended, _appended(results.values()))
    return notice


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
            admitted = made._replace(pending_reason=PendingReason.QUEUED, admit_time=step.task.update_time)
            results[positions[step.key]] = admitted
    return notice


def _appended(results: Iterable[CreateResult]) -> Iterator[tuple[LaneKey, Appended]]:
    """What the new tasks among these add to their lanes."""
    for result in results:
        queued = isinstance(result, Created) and result.pending_reason is PendingReason.QUEUED
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
    for method, positions, requests in _by_method(dict(enumerate(tasks))):
        for key, found in (await request_ids.claim(tx, method, requests)).items():
            if isinstance(found, RequestIdReused):
                reused[positions[key]] = found
            else:
                results[positions[key]] = Replayed(key[0], found)
    if reused:
        raise Refused(reused)


def _by_method(
    tasks: Mapping[int, NewTask],
) -> Iterator[tuple[Method, dict[tuple[str, str], int], list[Request]]]:
    """The request ids of tasks: for each method the positions of its keys, and the requests."""
    for method in sorted({task.method for task in tasks.values() if task.request_id}):
        own = {at: task for at, task in tasks.items() if task.request_id and task.method == method}
        requests = [Request(t.tenant_id, t.request_id, t.body_hash, t.task_id) for t in own.values()]
        yield method, {request.key: at for at, request in zip(own, requests, strict=True)}, requests


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
) -> dict[int, CreateResult]:
    new = Beginnings(
        [item.task for item in planned],
        [item.reason for item in planned],
        [item.due_time for item in planned],
    )
    times = await new_rows.insert(tx, new)
    await _set_timers(tx, planned, times)
    return {
        item.position: Created(item.task, time, item.reason, _replaced_by(item.task, replaced))
        for item, time in zip(planned, times, strict=True)
    }


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
