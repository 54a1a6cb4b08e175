"""Reports for runs that have ended: which of them were applied before."""

from dataclasses import dataclass

from taskyard.errors import LeaseNotHeld, StaleGeneration, TaskTerminal, TaskyardError
from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    CheckpointStored,
    Failed,
    HolderEvent,
    HolderReturned,
    ProgressReported,
    Released,
    Started,
    Succeeded,
    TimedOut,
)
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.words import RunState

_ENDS: dict[type[HolderEvent], frozenset[RunState]] = {
    Succeeded: frozenset({RunState.SUCCEEDED}),
    Failed: frozenset({RunState.FAILED}),
    TimedOut: frozenset({RunState.TIMED_OUT}),
    CancelledByHolder: frozenset({RunState.CANCELLED, RunState.RELEASED}),
    Released: frozenset({RunState.RELEASED, RunState.LOST}),
}


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What `runs` knows about the generation that a report names."""

    lease_id: int
    runner_id: str
    state: RunState
    started: bool


def judge(task: TaskState, event: HolderEvent, run: EndedRun | None) -> TaskyardError | None:
    """What to answer a report that the lifecycle refused because its lease is over.

    None: it was applied before and is acknowledged as a duplicate. Otherwise the final rejection.
    """
    if (
        run is not None
        and (run.lease_id, run.runner_id) == (event.lease_id, event.runner_id)
        and _told(event, run)
    ):
        return None
    if event.generation < task.generation:
        return StaleGeneration(task.name, event.generation, task.generation)
    if task.phase.terminal and run is not None:
        return TaskTerminal(task.name, task.phase.name)
    return LeaseNotHeld(task.name, event.generation)


def _told(event: HolderEvent, run: EndedRun) -> bool:
    # What a run says on its way is over when its outcome was accepted; of a lost run nothing was.
    if isinstance(event, Started | ProgressReported | CheckpointStored):
        return run.started and run.state not in (RunState.LOST, RunState.RELEASED)
    return not isinstance(event, HolderReturned) and run.state in _ENDS[type(event)]
