"""Loads tasks for a transition: locks their rows in the one lock order and reads them as lifecycle states.

The order is queue row, lease, task, slot, each in key order; only claims skip locked rows. The transaction
that loaded a task holds all of its rows to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from psycopg.errors import SerializationFailure

from taskyard_taskdb.domain.task import QueueKey, TaskState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, read_task, with_lease


class StateMoved(SerializationFailure):
    """A row changed between an unlocked read, or a guard, and its lock: the transaction starts over."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Locked tasks by key, without unknown ones, and the database's time after the last lock."""

    now: datetime
    tasks: Mapping[Key, TaskState]


async def load_for_update(tx: Tx, keys: Iterable[Key], *, damaged: bool = False) -> Loaded:
    """Lock tasks with their queue rows and leases, and return them as they are now.

    Raises StateMoved, which Pool.run answers with another attempt, if a queue row appeared or moved between
    the unlocked look at it and the locks. `damaged` tasks may lack theirs for good, or have one that the
    lifecycle does not expect; one that appeared meanwhile belongs to a claim that may already have locked it.
    """
    wanted = sorted(set(keys))
    params = {
        "tenant_ids": arrays.texts([k[0] for k in wanted]),
        "task_ids": arrays.texts([k[1] for k in wanted]),
    }
    queued = await _peek_queue(tx, params)
    locked = await _lock_queue(tx, queued)
    held = {(row[0], row[1]): row for row in await tx.fetch(statement("lock_leases"), params)}
    rows = await tx.fetch(statement("lock_tasks"), params)
    tasks = {(row[0], row[1]): _in_effect(row[:-1], held) for row in rows}
    if damaged and (await _peek_queue(tx, params)).keys() - locked:
        raise StateMoved("a task entered the queue before it was locked")
    for key, task in () if damaged else tasks.items():
        if task.queue_key is not None and (key not in locked or queued[key] != task.queue_key):
            raise StateMoved(f"the queue row of {task.name} moved")
    return Loaded(max(row[-1] for row in rows) if rows else await database_time(tx), tasks)


async def _peek_queue(tx: Tx, params: Mapping[str, object]) -> dict[Key, QueueKey]:
    """The queue rows that tasks have now, unlocked."""
    rows = await tx.fetch(statement("peek_queue_keys"), params)
    return {(row[0], row[1]): QueueKey(*row[2:]) for row in rows}


async def _lock_queue(tx: Tx, queued: Mapping[Key, QueueKey]) -> set[Key]:
    if not queued:
        return set()
    rows = await tx.fetch(statement("lock_queue"), queue_arrays(list(queued.items())))
    return {(row[0], row[1]) for row in rows}


def _in_effect(row: Row, held: Mapping[Key, Row]) -> TaskState:
    task = read_task(row)
    lease = held.get((row[0], row[1]))
    return task if lease is None else with_lease(task, lease)


async def database_time(tx: Tx) -> datetime:
    """The database's clock, which decides leases and schedules."""
    row = await tx.fetch_row("SELECT clock_timestamp()")
    assert row is not None
    now: datetime = row[0]
    return now


def queue_arrays(rows: list[tuple[Key, QueueKey | None]]) -> dict[str, object]:
    keys = [key for _, key in rows if key is not None]
    return {
        "tenant_ids": arrays.texts([task[0] for task, _ in rows]),
        "class_ids": arrays.bigints([key.class_id for key in keys]),
        "priorities": arrays.smallints([key.priority for key in keys]),
        "pinned_runners": arrays.texts([key.pinned_runner for key in keys]),
        "ready_times": arrays.timestamps([key.ready_time for key in keys]),
        "task_ids": arrays.texts([task[1] for task, _ in rows]),
    }
