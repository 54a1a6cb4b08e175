"""The writes that follow from two states of a task: queue row, slot, timers, webhook."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from taskyard_taskdb.domain.effect import (
    CallWebhook,
    ClearTimer,
    ClearTimers,
    Dequeue,
    Effect,
    Enqueue,
    FreeSlot,
    SetTimer,
    TakeSlot,
    WaitForSlot,
)
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.words import PendingReason, Phase, TimerKind

_DELAYS = (PendingReason.DELAYED, PendingReason.BACKOFF)


def effects(before: TaskState | None, after: TaskState, recorded: Sequence[Effect]) -> tuple[Effect, ...]:
    """All writes besides the rows of task and lease, in lock order; `recorded` are those of the rules.

    `before` is None for a new task.
    """
    if before is after and not recorded:
        return ()
    left, entered = _queue(before, after)
    ended = after.phase.terminal and not (before and before.phase.terminal)
    timers = [ClearTimers()] if ended else _timers(before, after)
    webhook = (CallWebhook(),) if ended and after.policy.has_callback else ()
    return (*left, *recorded, *entered, *timers, *_slot(before, after), *webhook)


def _queue(before: TaskState | None, after: TaskState) -> tuple[tuple[Effect, ...], tuple[Effect, ...]]:
    old, new = before.queue_key if before else None, after.queue_key
    if old == new:
        return (), ()
    return (Dequeue(old),) if old else (), (Enqueue(new),) if new else ()


def _slot(before: TaskState | None, after: TaskState) -> Iterator[Effect]:
    if after.slot is None:
        return
    held, waited = (before.heads_slot, _waits(before)) if before else (False, False)
    if held and not after.heads_slot:
        yield FreeSlot(after.slot)
    if after.heads_slot and not held:
        yield TakeSlot(after.slot)
    if _waits(after) and not waited:
        yield WaitForSlot(after.slot)


def _waits(task: TaskState) -> bool:
    return task.phase is Phase.PENDING and task.pending_reason is PendingReason.SLOT_BUSY


def _timers(before: TaskState | None, after: TaskState) -> Iterator[Effect]:
    if after.phase.terminal:
        return
    yield from _timer(TimerKind.DUE, _due(before), _due(after))
    # A claim leaves the queue timer, to write less: a timer that fires for no queued task is dropped.
    waiting_until = _queue_deadline(after)
    if waiting_until is not None and waiting_until != _queue_deadline(before):
        yield SetTimer(TimerKind.QUEUE_TIMEOUT, waiting_until)
    # An ended task has no timers left, regardless of its fields.
    former = before.total_deadline if before and not before.phase.terminal else None
    yield from _timer(TimerKind.TOTAL_TIMEOUT, former, after.total_deadline)


def _timer(kind: TimerKind, old: datetime | None, new: datetime | None) -> Iterator[Effect]:
    if new is not None and new != old:
        yield SetTimer(kind, new)
    elif new is None and old is not None:
        yield ClearTimer(kind)


def _due(task: TaskState | None) -> datetime | None:
    waits = task is not None and task.phase is Phase.PENDING and task.pending_reason in _DELAYS
    return task.next_attempt_time if task is not None and waits else None


def _queue_deadline(task: TaskState | None) -> datetime | None:
    if task is None or not task.claimable or task.ready_time is None or task.policy.queue_timeout is None:
        return None
    return task.ready_time + task.policy.queue_timeout
