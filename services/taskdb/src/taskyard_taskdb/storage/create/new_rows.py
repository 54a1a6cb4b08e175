"""The rows of new tasks, queue rows and changes: one statement for a few tasks, COPY for many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.words import PendingReason, Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.arrays import Column, Repeated
from taskyard_taskdb.storage.change_log.append import COPY_FROM, LOG_LOCK
from taskyard_taskdb.storage.create.new_task import NewTask
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import database_time

_MICROSECOND = timedelta(microseconds=1)


class Beginnings(NamedTuple):
    """Tasks that are to be stored, and of each the state it begins in and when it becomes due if delayed."""

    tasks: Sequence[NewTask]
    reasons: Sequence[PendingReason]
    due_times: Sequence[datetime | None]

    @classmethod
    def queued(cls, tasks: Sequence[NewTask]) -> Beginnings:
        """Tasks that are claimable at once."""
        return cls(tasks, [PendingReason.QUEUED] * len(tasks), [None] * len(tasks))


def are_few(tasks: Sequence[NewTask]) -> bool:
    """Whether `insert` stores them in one statement."""
    return len(tasks) < COPY_FROM


async def insert(tx: Tx, new: Beginnings) -> list[datetime]:
    """Store tasks, queue rows and changes; returns when each task was created.

    Raises UniqueViolation for a taken task id, and DataError for values that the database cannot store.
    """
    if not are_few(new.tasks):
        return await _copy(tx, new)
    row = await tx.fetch_row(statement("insert_tasks"), _arrays(new) | request_keys(new.tasks, claim=False))
    assert row is not None
    return _times(row[0], len(new.tasks))


async def insert_unclaimed(tx: Tx, tasks: Sequence[NewTask]) -> dict[int, datetime]:
    """Store a few tasks that are queued at once, with their request ids; returns when each was created.

    A task whose request id is taken is left out. Raises as `insert` does.
    """
    new = Beginnings.queued(tasks)
    row = await tx.fetch_row(statement("insert_tasks"), _arrays(new) | request_keys(tasks, claim=True))
    assert row is not None
    times = _times(row[0], len(tasks))
    return dict(enumerate(times)) if row[1] is None else {position: times[position] for position in row[1]}


async def _copy(tx: Tx, new: Beginnings) -> list[datetime]:
    """A COPY for each table, which logs the rows of a page together."""
    last = await database_time(tx)
    times = _times(last, len(new.tasks))
    columns = _columns(new, times, arrays.timestamp_series(last, len(times)))
    await tx.copy(statement("copy_tasks"), arrays.copy_data([columns[name] for name in _COPIED_TASK]))
    queued = [columns[name] for name in _COPIED_QUEUE]
    selected = [reason is PendingReason.QUEUED for reason in new.reasons]
    if not all(selected):
        queued = [arrays.chosen(column, selected) for column in queued]
    if any(selected):
        await tx.copy(statement("copy_queue"), arrays.copy_data(queued))
    # A statement before the COPY, which draws the ids.
    await tx.execute(statement("lock_log"), (LOG_LOCK,))
    await tx.copy(statement("copy_creations"), arrays.copy_data([columns[name] for name in _COPIED_CHANGE]))
    return times


def _times(last: datetime, count: int) -> list[datetime]:
    # A microsecond apart, so that a batch stays FIFO.
    return [last - before * _MICROSECOND for before in range(count - 1, -1, -1)]


# The fields of NewTask that are columns, and how each is encoded.
_FIELDS: dict[str, arrays.Encoder] = {
    "tenant_id": arrays.texts,
    "task_id": arrays.texts,
    "uid": arrays.uuids,
    "kind": arrays.smallints,
    "class_id": arrays.bigints,
    "priority": arrays.smallints,
    "pinned_runner": arrays.texts,
    "task_type": arrays.texts,
    "slot": arrays.texts,
    "entity_type": arrays.texts,
    "entity_id": arrays.texts,
    "parent_task_id": arrays.texts,
    "creator_type": arrays.smallints,
    "creator_id": arrays.texts,
    "traceparent": arrays.texts,
    "spec": arrays.byteas,
    "callback": arrays.byteas,
    "annotations": arrays.byteas,
    "labels": arrays.texts,
    "task_type_tenant": arrays.texts,
    "group_id": arrays.texts,
    "packed_policy": arrays.byteas,
}


# Fields that no two tasks share.
_VARIED = ("task_id", "uid", "spec")


def _is_timed(policy: TaskPolicy) -> bool:
    return policy.queue_timeout is not None or policy.total_timeout is not None


# Columns that are read from the policy.
_OF_POLICY: dict[str, tuple[arrays.Encoder, Callable[[TaskPolicy], Any]]] = {
    "restart": (arrays.smallints, lambda policy: policy.restart),
    "overlap": (arrays.smallints, lambda policy: policy.overlap),
    "on_runner_lost": (arrays.smallints, lambda policy: policy.on_runner_lost),
    "max_retries": (arrays.integers, lambda policy: policy.max_retries),
    "timed": (arrays.bools, _is_timed),
}

# The columns of copy_tasks, copy_queue and copy_creations, in their order: first those that differ between
# the tasks of a batch, so that the others are joined once for all rows.
_COPIED_TASK = (
    "create_time",
    "create_time",
    "ready_time",
    "task_id",
    "spec",
    "uid",
    "total_deadline",
    "due_time",
    "phase",
    "pending_reason",
    "class_id",
    "max_retries",
    "kind",
    "priority",
    "creator_type",
    "restart",
    "overlap",
    "on_runner_lost",
    "timed",
    "tenant_id",
    "task_type",
    "task_type_tenant",
    "pinned_runner",
    "slot",
    "entity_type",
    "entity_id",
    "parent_task_id",
    "creator_id",
    "traceparent",
    "packed_policy",
    "callback",
    "annotations",
    "labels",
    "group_id",
)
_COPIED_QUEUE = ("create_time", "task_id", "class_id", "priority", "tenant_id", "pinned_runner")
_COPIED_CHANGE = (
    "create_time",
    "task_id",
    "request_id",
    "due_time",
    "version",
    "event",
    "creator_type",
    "phase",
    "pending_reason",
    "tenant_id",
    "creator_id",
)


def _columns(new: Beginnings, times: Sequence[datetime], created: list[bytes]) -> dict[str, Column]:
    """The columns of COPY by name; `created` has the elements of `times`."""
    count = len(times)
    fields = dict(zip(NewTask._fields, zip(*new.tasks, strict=True), strict=True))
    columns: dict[str, Column] = {
        name: arrays.elements(encode, fields[name]) for name, encode in _FIELDS.items()
    }
    policies: Sequence[TaskPolicy] = fields["policy"]
    if policies.count(policies[0]) == count:
        for name, (encode, read) in _OF_POLICY.items():
            columns[name] = Repeated(encode((read(policies[0]),)).elements[0], count)
    else:
        for name, (encode, read) in _OF_POLICY.items():
            columns[name] = arrays.elements(encode, [read(policy) for policy in policies])
    if new.reasons.count(PendingReason.QUEUED) == count:
        columns["ready_time"] = created
    else:
        ready = [
            time if reason is PendingReason.QUEUED else None
            for reason, time in zip(new.reasons, times, strict=True)
        ]
        columns["ready_time"] = arrays.elements(arrays.timestamps, ready)
    return columns | {
        "labels": arrays.elements(arrays.jsonbs, fields["labels"]),
        "request_id": arrays.elements(arrays.texts, [id or None for id in fields["request_id"]]),
        "create_time": created,
        "due_time": arrays.elements(arrays.timestamps, new.due_times),
        "pending_reason": arrays.elements(arrays.smallints, new.reasons),
        "total_deadline": arrays.elements(arrays.timestamps, _deadlines(policies, times)),
        "phase": Repeated(arrays.smallints((Phase.PENDING.value,)).elements[0], count),
        "version": Repeated(arrays.integers((1,)).elements[0], count),
        "event": Repeated(arrays.smallints((ChangeEvent.TASK_CREATED.value,)).elements[0], count),
    }


def _deadlines(policies: Sequence[TaskPolicy], times: Sequence[datetime]) -> list[datetime | None]:
    return [
        None if policy.total_timeout is None else time + policy.total_timeout
        for policy, time in zip(policies, times, strict=True)
    ]


def _arrays(new: Beginnings) -> dict[str, object]:
    """The parameters of insert_tasks."""
    fields = dict(zip(NewTask._fields, zip(*new.tasks, strict=True), strict=True))
    policies: Sequence[TaskPolicy] = fields["policy"]
    columns = {
        name: encode(fields[name]) if name in _VARIED else arrays.array(encode, fields[name])
        for name, encode in _FIELDS.items()
    }
    of_policy = {
        name: arrays.array(encode, [read(policy) for policy in policies])
        for name, (encode, read) in _OF_POLICY.items()
    }
    return {
        **columns,
        **of_policy,
        "log": LOG_LOCK,
        "count": len(new.tasks),
        "event": ChangeEvent.TASK_CREATED.value,
        "pending_reason": arrays.array(arrays.smallints, new.reasons),
        "due_time": arrays.array(arrays.timestamps, new.due_times),
        "total_timeout": arrays.array(arrays.intervals, [policy.total_timeout for policy in policies]),
        "request_id": arrays.texts([id or None for id in fields["request_id"]]),
    }


def request_keys(tasks: Sequence[NewTask], *, claim: bool) -> dict[str, object]:
    """The parameters of a statement that claim the request ids of tasks, if that is to be done."""
    return {
        "key": arrays.texts([(task.request_id or None) if claim else None for task in tasks]),
        "method": arrays.array(arrays.smallints, [task.method for task in tasks]),
        "body_hash": arrays.byteas([task.body_hash for task in tasks]),
    }
