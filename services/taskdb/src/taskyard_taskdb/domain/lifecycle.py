"""Every transition of a task, as one pure function over a table of rows.

The table is the union of the rows in `rules`; docs/state_machine.md is generated from it. The first row whose
phase, event and guard fit is taken; where none fits, the event is refused with the documented reason.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from taskyard_taskdb.domain import derive
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
from taskyard_taskdb.domain.rules import external, holder, loss, outcome, request, timer
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import PendingReason, Phase

TABLE: tuple[Row, ...] = (
    *holder.ROWS,
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
    effects = derive.effects(task, draft.task, draft.effects)
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
    return Transition(task, draft.task, (change,), derive.effects(None, draft.task, ()), ("create",))


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
