"""Every transition of a task, as one pure function over a table of rows."""

from datetime import datetime
from random import Random

from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition


def apply(task: TaskState, event: Event, now: datetime, rng: Random) -> Transition:
    """What `event` does to `task` at `now`.

    Raises PhaseConflict, TaskTerminal, LeaseNotHeld, StaleGeneration, LeaseExpired or CheckpointSequenceConflict
    when it is not allowed; the task is then unchanged.
    """
    raise NotImplementedError


def create(task: TaskState, now: datetime, *, slot_free: bool = False, event: Event) -> Transition:
    """The first state of a new task (its phase, reason and times are decided here), with the change TASK_CREATED.

    `slot_free`: the caller holds the lock on the task's slot and found no head.
    """
    raise NotImplementedError


def apply_all(task: TaskState, events: list[Event], now: datetime, rng: Random) -> Transition:
    """Several events at once, as start and outcome that arrive together; effects that cancel out are left out."""
    raise NotImplementedError
