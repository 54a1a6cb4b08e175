"""Leases that new tasks get in the transaction that creates them, on credit of schedulers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.credit import CreditBook, Grant, Wanted
from taskyard_taskdb.domain.words import ActorType, Kind, Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import draw_lease_ids
from taskyard_taskdb.storage.claim.claims import ClaimedTask
from taskyard_taskdb.storage.claim.lanes import BEGINNING
from taskyard_taskdb.storage.create.new_rows import request_keys
from taskyard_taskdb.storage.create.new_task import FirstLease, NewTask
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

# Flushes with more tasks than this are a backlog: they fill the queue, which claims empty in large steps.
MOST_TASKS = 32

# Fields of NewTask that insert_eager_tasks stores, and how each becomes a column.
_COLUMNS: tuple[tuple[str, arrays.Encoder], ...] = (
    ("tenant_id", arrays.texts),
    ("task_id", arrays.texts),
    ("uid", arrays.uuids),
    ("kind", arrays.smallints),
    ("class_id", arrays.bigints),
    ("priority", arrays.smallints),
    ("task_type", arrays.texts),
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
)
_INDEX = {name: NewTask._fields.index(name) for name, _ in _COLUMNS}


def has_no_gate(task: NewTask) -> bool:
    """Whether nothing but a free place can hold the task back, as far as it says itself."""
    return task.is_plain and not task.pinned_runner and task.kind != Kind.EMBEDDED


class EagerCreates:
    """Takes places for new tasks from the credit of this replica."""

    def __init__(self, book: CreditBook, bounds: Bounds) -> None:
        self._book = book
        self._bounds = bounds

    def take(self, tasks: Sequence[NewTask]) -> EagerLeases | None:
        """Places for these tasks, whose transaction is about to begin; None if there is not one.

        Tasks that lock something of their own are stored in the ordinary way together with their neighbours:
        a session is locked before a slot or a limit, never after it.
        """
        if len(tasks) > MOST_TASKS or not all(map(has_no_gate, tasks)):
            return None
        grants = self._book.take([Wanted(task.tenant_id, task.class_id, task.priority) for task in tasks])
        return EagerLeases(grants, self._bounds) if any(grants) else None


class EagerLeases:
    """The places of one transaction by the positions of its tasks, and the leases that it has granted."""

    def __init__(self, grants: Sequence[Grant | None], bounds: Bounds) -> None:
        self._grants = grants
        self._bounds = bounds
        self.granted: dict[int, ClaimedTask] = {}

    async def insert(
        self, tx: Tx, tasks: Sequence[tuple[int, NewTask]], *, claim: bool = False
    ) -> dict[int, datetime]:
        """Tasks, leases or queue rows, and changes in one statement; returns when each task was created.

        With `claim` their request ids as well; a task whose request id is taken is left out.
        """
        self.granted = {}
        lease_ids = draw_lease_ids(len(tasks))
        parameters = self._parameters(tasks, lease_ids) | request_keys(
            [task for _, task in tasks], claim=claim
        )
        rows = await tx.fetch(statement("insert_eager_tasks"), parameters)
        times: dict[int, datetime] = {}
        for place, time, granted, revision in rows:
            position, task = tasks[place - 1]
            times[position] = time
            grant = self._grants[position]
            if granted and grant is not None:
                self.granted[position] = _leased(task, lease_ids[place - 1], revision, grant)
        return times

    def lease(self, position: int) -> FirstLease | None:
        """The lease of a task, if the transaction has granted one."""
        grant = self._grants[position]
        if grant is None or position not in self.granted:
            return None
        return FirstLease(grant.terms.runner_id, grant.terms.lease_duration)

    def settle(self, *, committed: bool) -> None:
        """The transaction has ended: hand over what it has leased, and put back the other places."""
        for position, grant in enumerate(self._grants):
            if grant is not None:
                grant.line.decide(grant, self.granted.get(position) if committed else None)

    def _parameters(
        self, tasks: Sequence[tuple[int, NewTask]], lease_ids: Sequence[int]
    ) -> dict[str, object]:
        fields: list[tuple[Any, ...]] = list(zip(*(task for _, task in tasks), strict=True))
        policies = [task.policy for _, task in tasks]
        grants = [self._grants[position] for position, _ in tasks]
        terms = [grant.terms if grant is not None else None for grant in grants]
        after = [self._bounds.by_lane.get(task.lane, BEGINNING) for _, task in tasks]
        return {name: encode(fields[_INDEX[name]]) for name, encode in _COLUMNS} | {
            "log": LOG_LOCK,
            "count": len(tasks),
            "created": ChangeEvent.TASK_CREATED.value,
            "scheduled_event": ChangeEvent.TASK_SCHEDULED.value,
            "scheduled": Phase.SCHEDULED.value,
            "actor_type": ActorType.SCHEDULER.value,
            "policy": arrays.byteas([task.packed_policy for _, task in tasks]),
            "restart": arrays.smallints([policy.restart for policy in policies]),
            "overlap": arrays.smallints([policy.overlap for policy in policies]),
            "on_runner_lost": arrays.smallints([policy.on_runner_lost for policy in policies]),
            "max_retries": arrays.integers([policy.max_retries for policy in policies]),
            "request_id": arrays.texts([task.request_id or None for _, task in tasks]),
            "runner_id": arrays.texts([found.runner_id if found else None for found in terms]),
            "session_epoch": arrays.bigints([found.session_epoch if found else None for found in terms]),
            "lease_id": arrays.bigints(lease_ids),
            "lease_duration": arrays.intervals([found.lease_duration if found else None for found in terms]),
            "scheduler_id": arrays.texts([grant.line.scheduler_id if grant else None for grant in grants]),
            "after_time": arrays.timestamps(after),
        }


def _leased(task: NewTask, lease_id: int, revision: int, grant: Grant) -> ClaimedTask:
    """The task as a claim would return it."""
    return ClaimedTask(
        tenant_id=task.tenant_id,
        task_id=task.task_id,
        lease_id=lease_id,
        generation=1,
        attempt=0,
        spec=task.spec,
        labels=json.loads(task.labels) if task.labels else None,
        total_left=None,
        traceparent=task.traceparent,
        checkpoint_sequence=0,
        task_type_revision=revision,
        task_type=task.task_type,
        task_type_tenant=task.task_type_tenant,
        lease_ttl=grant.terms.lease_duration,
    )
