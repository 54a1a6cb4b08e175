"""Rows of `tasks` and `leases` as states of the lifecycle, and the steps of one transaction per task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from taskyard_taskdb.domain.change import Change
from taskyard_taskdb.domain.policy import unpack
from taskyard_taskdb.domain.task import Actor, LeaseState, RequestedAction, RunError, TaskState
from taskyard_taskdb.domain.transition import Effect, Transition
from taskyard_taskdb.domain.words import Action, ActorType, ErrorClass, Kind, PendingReason, Phase
from taskyard_taskdb.storage.pool import Row

Key = tuple[str, str]


def key_of(task: TaskState) -> Key:
    """Tenant and task id."""
    return task.tenant_id, task.task_id


def read_task(row: Row) -> TaskState:
    """A row of lock_tasks as the state of a task without a lease."""
    (
        tenant_id, task_id, create_time, kind, class_id, priority, pinned_runner, slot, policy, version,
        phase, pending_reason, generation, attempt, retry_count, runner_loss_count, retry_delay,
        checkpoint_sequence, update_time, ready_time, next_attempt_time, schedule_time, start_time,
        end_time, total_deadline, last_runner_id, exit_code, error_code, error, result, progress, details,
        blocked, has_dependents, group_id, limited,
    ) = row  # fmt: skip
    return TaskState(
        tenant_id=tenant_id,
        task_id=task_id,
        create_time=create_time,
        kind=Kind(kind),
        class_id=class_id,
        priority=priority,
        pinned_runner=pinned_runner,
        slot=slot,
        policy=unpack(policy),
        version=version,
        phase=Phase(phase),
        pending_reason=PendingReason(pending_reason),
        generation=generation,
        attempt=attempt,
        retry_count=retry_count,
        runner_loss_count=runner_loss_count,
        retry_delay=retry_delay,
        checkpoint_sequence=checkpoint_sequence,
        update_time=update_time,
        ready_time=ready_time,
        next_attempt_time=next_attempt_time,
        schedule_time=schedule_time,
        start_time=start_time,
        end_time=end_time,
        total_deadline=total_deadline,
        last_runner_id=last_runner_id,
        exit_code=exit_code,
        error=RunError(error_code, encoded=error) if error_code is not None else None,
        result=result,
        progress=progress,
        details=details,
        blocked=blocked,
        has_dependents=has_dependents,
        group_id=group_id,
        limited=limited,
    )


def with_lease(task: TaskState, row: Row) -> TaskState:
    """The task in effect: the state of its own row with that of its lease, a row of lock_leases."""
    generation, version, phase, attempt, progress, details = row[2:8]
    lease = _read_lease(row[8:])
    return replace(
        task,
        generation=generation,
        version=version,
        phase=Phase(phase),
        pending_reason=PendingReason.NONE,
        attempt=attempt,
        progress=progress,
        details=task.details if details is None else details,
        schedule_time=lease.schedule_time,
        start_time=lease.start_time or task.start_time,
        last_runner_id=lease.runner_id,
        lease=lease,
    )


def _read_lease(columns: Sequence[Any]) -> LeaseState:
    (
        lease_id, runner_id, session_epoch, claim_request_id, schedule_time, expire_time, follows_session,
        start_time, sign_time, progress_time, deadline_time, deadline_code, requested_action,
        action_deadline, action, start_checkpoint, task_type_revision, in_session,
    ) = columns  # fmt: skip
    return LeaseState(
        lease_id=lease_id,
        runner_id=runner_id,
        session_epoch=session_epoch,
        claim_request_id=claim_request_id,
        schedule_time=schedule_time,
        expire_time=expire_time,
        follows_session=follows_session,
        in_session=in_session,
        start_time=start_time,
        sign_time=sign_time,
        progress_time=progress_time,
        deadline_time=deadline_time,
        deadline_code=deadline_code,
        action=_read_action(requested_action, action_deadline, action) if requested_action else None,
        start_checkpoint=start_checkpoint,
        task_type_revision=task_type_revision,
    )


def _read_action(action: int, deadline: datetime, stored: dict[str, Any]) -> RequestedAction:
    return RequestedAction(
        action=Action(action),
        request_time=datetime.fromisoformat(stored["request_time"]),
        deadline=deadline,
        reason=stored["reason"],
        actor=Actor(ActorType(stored["actor_type"]), stored["actor_id"]),
    )


def pack_action(action: RequestedAction | None) -> str | None:
    """The JSON of leases.action: what requested_action and action_deadline do not hold."""
    if action is None:
        return None
    return json.dumps(
        {
            "request_time": action.request_time.isoformat(),
            "reason": action.reason,
            "actor_type": int(action.actor.type),
            "actor_id": action.actor.id,
        }
    )


def encode_error(error: RunError | None) -> bytes | None:
    """The serialised TaskError: as it was reported, or made of class, code and message."""
    if error is None:
        return None
    return error.encoded or _encode_task_error(error.error_class, error.code, error.message)


def _encode_task_error(error_class: ErrorClass, code: str, message: str) -> bytes:
    # The wire format of three fields; storage has no stubs.
    encoded = bytes((0x08, int(error_class)))
    for tag, text in ((0x12, code), (0x1A, message)):
        if data := text.encode():
            encoded += bytes((tag,)) + _varint(len(data)) + data
    return encoded


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@dataclass(frozen=True, slots=True)
class Steps:
    """The transitions of one task, in their order; there is at least one."""

    transitions: list[Transition]

    @property
    def before(self) -> TaskState:
        """The task as it was loaded."""
        return self.transitions[0].before

    @property
    def task(self) -> TaskState:
        """The task as it is to be."""
        return self.transitions[-1].task

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return key_of(self.before)

    def changes(self) -> Iterator[Change]:
        """The changes of all transitions."""
        for transition in self.transitions:
            yield from transition.changes

    def effects(self) -> Iterator[Effect]:
        """The effects of all transitions."""
        for transition in self.transitions:
            yield from transition.effects


def collect(transitions: Iterable[Transition]) -> list[Steps]:
    """Steps per task in key order, without what changes nothing."""
    found: dict[Key, Steps] = {}
    for transition in transitions:
        if not transition.duplicate:
            found.setdefault(key_of(transition.before), Steps([])).transitions.append(transition)
    return [found[key] for key in sorted(found)]
