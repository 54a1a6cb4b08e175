"""The writes of storage besides the rows of the task and its lease.

The rows themselves follow from the states: a lease that is new in `Transition.task` is inserted (after EndRun
has removed a former one), one that differs is updated, and EndRun alone deletes. Effects are in the order in
which they are to be written.
"""

from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.domain.task import QueueKey, RunError
from taskyard_taskdb.domain.words import RunState, TimerKind


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Insert this queue row."""

    key: QueueKey


@dataclass(frozen=True, slots=True)
class Dequeue:
    """Delete this queue row."""

    key: QueueKey


@dataclass(frozen=True, slots=True)
class EndRun:
    """Move the lease row of this generation to `runs`; runs.attempt is 0 if it never started."""

    generation: int
    lease_id: int
    state: RunState
    end_time: datetime
    exit_code: int | None = None
    error: RunError | None = None


@dataclass(frozen=True, slots=True)
class TakeSlot:
    """The task becomes the head of its slot, which the caller found free under its lock."""

    slot: str


@dataclass(frozen=True, slots=True)
class WaitForSlot:
    """The task is a due candidate for its slot.

    Lock the slot; if it has no head, choose one in the next statement and apply Promoted to it.
    """

    slot: str


@dataclass(frozen=True, slots=True)
class FreeSlot:
    """The task is no longer the head of its slot: lock the slot, clear its head, choose the next one."""

    slot: str


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Insert or move the task's timer of this kind."""

    kind: TimerKind
    due_time: datetime


@dataclass(frozen=True, slots=True)
class ClearTimer:
    """Delete the task's timer of this kind, if there is one."""

    kind: TimerKind


@dataclass(frozen=True, slots=True)
class ClearTimers:
    """Delete every timer of the task."""


@dataclass(frozen=True, slots=True)
class CallWebhook:
    """Store the call of spec.callback."""


@dataclass(frozen=True, slots=True)
class DiscardCheckpoints:
    """Delete the task's checkpoints."""


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Delete the task with its runs, logs and checkpoints."""


Effect = (
    Enqueue
    | Dequeue
    | EndRun
    | TakeSlot
    | WaitForSlot
    | FreeSlot
    | SetTimer
    | ClearTimer
    | ClearTimers
    | CallWebhook
    | DiscardCheckpoints
    | DeleteTask
)
