"""Every transition of a task, as one pure function over a table of rows.

The table is the union of the rows in `rules`; docs/state_machine.md is generated from it. The first row whose
phase, event and guard fit is taken; where none fits, the event is refused with the documented reason.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

from taskyard.errors import (
    CheckpointSequenceConflict,
    LeaseNotHeld,
    PhaseConflict,
    StaleGeneration,
    TaskTerminal,
    TaskyardError,
)
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.draft import Draft, change_of
from taskyard_taskdb.domain.event import (
    CheckpointStored,
    Created,
    Deleted,
    Event,
    HolderEvent,
    LeaseTimerEvent,
    RetryRequested,
    TimerEvent,
)
from taskyard_taskdb.domain.row import Row
from taskyard_taskdb.domain.rules import external, holder, loss, outcome, request, reset, timer
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import (
    CallWebhook,
    ClearTimer,
    ClearTimers,
    Dequeue,
    Effect,
    Enqueue,
    FreeSlot,
    SetTimer,
    TakeSlot,
    Transition,
    WaitForSlot,
)
from taskyard_taskdb.domain.words import PendingReason, Phase, TimerKind

_DELAYS = (PendingReason.DELAYED, PendingReason.BACKOFF)


def derive_effects(
    before: TaskState | None, after: TaskState, recorded: Sequence[Effect]
) -> tuple[Effect, ...]:
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


TABLE: tuple[Row, ...] = (
    *holder.ROWS,
    # Before outcomes and losses, which a requested reset makes its own.
    *reset.ROWS,
    *outcome.ROWS,
    *loss.ROWS,
    *request.ROWS,
    *timer.ROWS,
    *external.ROWS,
)


def _index(rows: Iterable[Row]) -> Mapping[tuple[type[Event], Phase], Sequence[Row]]:
    found: dict[tuple[type[Event], Phase], list[Row]] = {}
    for row in rows:
        for event in row.events:
            for phase in row.source:
                found.setdefault((event, phase), []).append(row)
    return found


_ROWS = _index(TABLE)


def apply(task: TaskState, event: Event, now: datetime, rng: Random) -> Transition:
    """What `event` does to `task` at `now`.

    Raises PhaseConflict, TaskTerminal, LeaseNotHeld, StaleGeneration, LeaseExpired or
    CheckpointSequenceConflict when it is not allowed; nothing is then to be written.
    """
    return apply_all(task, (event,), now, rng)


def apply_all(task: TaskState, events: Iterable[Event], now: datetime, rng: Random) -> Transition:
    """Several events as one transition, such as a start and an outcome that arrive together.

    The changes are those of each; the effects lead from the first state to the last. Raises as `apply`.
    """
    draft = Draft(task, now, rng)
    for event in events:
        following: Event | None = event
        while following is not None:
            following = _step(draft, following)
    if draft.task.limited and not draft.task.keeps_units:
        draft.release_units()
    effects = derive_effects(task, draft.task, draft.effects)
    return Transition(task, draft.task, tuple(draft.changes), effects, tuple(draft.rows))


def create(task: TaskState, event: Created, now: datetime, *, slot_free: bool = False) -> Transition:
    """The first state of a new task, whose identity, lane and policy are given; the change is TASK_CREATED.

    `slot_free`: the caller holds the lock on the task's slot and found no head.
    """
    draft = Draft(task, now, Random(0))
    total, not_before = task.policy.total_timeout, task.policy.not_before
    draft.set(create_time=now, update_time=now, version=1)
    draft.set(total_deadline=None if total is None else now + total)
    draft.pend_from(not_before, PendingReason.DELAYED)
    if slot_free and draft.task.pending_reason is PendingReason.SLOT_BUSY:
        draft.queue()
    change = replace(change_of(draft.task, task, ChangeEvent.TASK_CREATED, event, now), previous_phase=None)
    return Transition(task, draft.task, (change,), derive_effects(None, draft.task, ()), ("create",))


def _step(draft: Draft, event: Event) -> Event | None:
    """Applies one row; returns the event that follows from it."""
    former = draft.task
    if isinstance(event, HolderEvent):
        _check_holder(former, event)
    elif isinstance(event, LeaseTimerEvent) and former.lease is None:
        return None
    for row in _ROWS.get((type(event), former.phase), ()):
        if row.guard(draft, event):
            row.act(draft, event)
            draft.rows.append(row.name)
            if row.word is not None:
                draft.record(row.word, event, former)
            return row.then(draft, event) if row.then else None
    if not isinstance(event, TimerEvent):
        raise _refusal(former, event)
    return None


def _check_holder(task: TaskState, event: HolderEvent) -> None:
    """Only the holder of the current lease may report on it; `runs` answers for ended runs."""
    if event.generation < task.generation:
        raise StaleGeneration(task.name, event.generation, task.generation)
    lease = task.lease
    held = lease is not None and (lease.lease_id, lease.runner_id) == (event.lease_id, event.runner_id)
    if event.generation == task.generation and held:
        return
    if task.phase.terminal and event.generation == task.generation:
        raise TaskTerminal(task.name, task.phase.name)
    raise LeaseNotHeld(task.name, event.generation)


def _refusal(task: TaskState, event: Event) -> TaskyardError:
    if isinstance(event, CheckpointStored):
        return CheckpointSequenceConflict(task.name, event.sequence, task.checkpoint_sequence)
    if task.phase.terminal and not isinstance(event, RetryRequested):
        return TaskTerminal(task.name, task.phase.name)
    return PhaseConflict(task.name, task.phase.name, _needed(task, event))


def _needed(task: TaskState, event: Event) -> str:
    """What the task would have to be for the event to be allowed."""
    if isinstance(event, Deleted):
        return "an ended task; cancel it first"
    phases = sorted(phase for of, phase in _ROWS if of is type(event) and phase is not task.phase)
    kind = "" if not task.external else "a task that is not external, "
    if task.requested is not None:
        kind += f"no {task.requested.name} under way, "
    return f"{kind}{' or '.join(phase.name for phase in phases) or 'another state'}"
