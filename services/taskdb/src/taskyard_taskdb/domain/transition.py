"""What an event does to a task: the new state, the rows of the change log, the other writes."""

from dataclasses import dataclass

from taskyard_taskdb.domain.change import Change, ChangeEvent
from taskyard_taskdb.domain.effect import Effect
from taskyard_taskdb.domain.task import TaskState


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
