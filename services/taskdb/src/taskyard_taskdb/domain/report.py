"""Reports for runs that have ended: which of them repeat one that was applied."""

from typing import NamedTuple

from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    Failed,
    HolderEvent,
    ProgressReported,
    Released,
    Started,
    Succeeded,
    TimedOut,
)
from taskyard_taskdb.domain.words import RunState

_OUTCOMES = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED})
_STATES: dict[type[HolderEvent], frozenset[RunState]] = {
    Succeeded: frozenset({RunState.SUCCEEDED}),
    Failed: frozenset({RunState.FAILED}),
    TimedOut: frozenset({RunState.TIMED_OUT}),
    CancelledByHolder: frozenset({RunState.CANCELLED}),
    Released: frozenset({RunState.RELEASED, RunState.LOST}),
}


class EndedRun(NamedTuple):
    """How a run ended, and who held its lease."""

    lease_id: int
    runner_id: str
    state: RunState
    started: bool


def applied_before(event: HolderEvent, run: EndedRun) -> bool:
    """Whether a report that the lifecycle rejected, because its run has ended, repeats one that was applied.

    Such a report is acknowledged as a duplicate. `run` is the run of the generation that the report names.
    """
    if (event.lease_id, event.runner_id) != (run.lease_id, run.runner_id):
        return False
    if isinstance(event, Started):
        return run.started
    if isinstance(event, ProgressReported):
        # A call that carried progress and outcome is repeated as a whole. Behind a lost or released lease the
        # report may be a new one of a holder that has to stop, so the fence rejects it.
        return run.started and run.state in _OUTCOMES
    if isinstance(event, CancelledByHolder) and not run.started:
        # Before the start, and unless a cancel was requested, a stop releases the lease.
        return run.state in (RunState.CANCELLED, RunState.RELEASED)
    return run.state in _STATES.get(type(event), ())
