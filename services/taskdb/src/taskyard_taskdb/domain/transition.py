"""A transition: the new state of a task, its changes in the log, and the other writes that storage makes."""

from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.domain.change import Change, ChangeEvent
from taskyard_taskdb.domain.task import QueueKey, RunError, TaskState
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


@dataclass(frozen=True, slots=True)
class Transition:
    """`before` as it was given, `task` as it is now.

    The version grows by one per change. Without a change nothing a user sees has changed: either nothing is
    to be written at all (`duplicate`: the event had been applied before, or asks for what is so already), or
    only the lease's expiry, session or deadline, or a timer. `rows` names the rows of the table.
    """

    before: TaskState
    task: TaskState
    changes: tuple[Change, ...] = ()
    effects: tuple[Effect, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def duplicate(self) -> bool:
        """Whether there is nothing to write."""
        return not self.changes and not self.effects and self.task == self.before

    @property
    def starts(self) -> bool:
        """Whether the run starts, if only because its outcome implies it."""
        return any(change.event is ChangeEvent.TASK_STARTED for change in self.changes)
