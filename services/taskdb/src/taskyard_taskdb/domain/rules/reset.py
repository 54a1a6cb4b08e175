"""Rows for BatchResetTasks: a run that hangs is taken from its holder, or its holder is asked to stop it."""

from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import REPORT_SLACK, Draft, take_details
from taskyard_taskdb.domain.event import (
    ActionDeadlinePassed,
    CancelledByHolder,
    Event,
    Failed,
    HolderEvent,
    LeaseExpired,
    Released,
    ResetRequested,
    RunnerLost,
)
from taskyard_taskdb.domain.row import Row
from taskyard_taskdb.domain.rules.common import both, held_back, in_phases
from taskyard_taskdb.domain.rules.loss import ended, ended_state
from taskyard_taskdb.domain.task import RequestedAction, RunError
from taskyard_taskdb.domain.words import Action, ErrorClass, Phase, RunState

LEASED = in_phases(Phase.SCHEDULED, Phase.RUNNING)
RUNNING = in_phases(Phase.RUNNING)
# The run is over: its holder has stopped it, it failed meanwhile, or its lease has ended.
OVER = (CancelledByHolder, Failed, Released, LeaseExpired, RunnerLost, ActionDeadlinePassed)
STATES = {CancelledByHolder: RunState.CANCELLED, Failed: RunState.FAILED}


def resettable(draft: Draft, event: ResetRequested) -> bool:
    """Whether a holder has it that was not asked to cancel."""
    return draft.task.lease is not None and draft.task.requested is not Action.CANCEL


def resettable_late(draft: Draft, event: ResetRequested) -> bool:
    """Whether its holder has to stop the run first: the work may not overlap."""
    return resettable(draft, event) and held_back(draft)


def reset_requested(draft: Draft, event: Event) -> bool:
    """Whether its holder was asked to stop the run for a reset."""
    return draft.task.requested is Action.RESET


def requested_before(draft: Draft, event: ResetRequested) -> bool:
    """Whether an earlier reset has not taken effect."""
    return reset_requested(draft, event) and held_back(draft)


def over(draft: Draft, event: Event) -> bool:
    """Whether the run that was to be stopped is over."""
    action = draft.lease.action if draft.task.lease else None
    if action is None or action.action is not Action.RESET:
        return False
    if isinstance(event, ActionDeadlinePassed):
        return action.deadline <= draft.now and not held_back(draft)
    return ended(draft, event)


def used_up(draft: Draft, event: Event) -> bool:
    """Whether a started run is reset more often than it may lose its runner."""
    return draft.task.runner_loss_count >= draft.task.policy.max_runner_losses


def request(draft: Draft, event: ResetRequested) -> None:
    """Asks the holder to stop the run; after the deadline its lease is not renewed any more."""
    deadline = draft.now + draft.task.policy.stop_grace_period + REPORT_SLACK
    draft.set_lease(action=RequestedAction(Action.RESET, draft.now, deadline, event.reason, event.actor))
    draft.set(error=reset_error(event.reason))
    draft.details = {"reason": event.reason}


def reset(draft: Draft, event: Event) -> None:
    """Queues the task again."""
    loss = draft.task.phase is Phase.RUNNING
    error = end_run(draft, event)
    draft.set(error=error, runner_loss_count=draft.task.runner_loss_count + loss)
    draft.pend()


def exhaust(draft: Draft, event: Event) -> None:
    """Ends a task that has hung on every runner."""
    draft.finish(Phase.EXHAUSTED, draft.now, end_run(draft, event))


def end_run(draft: Draft, event: Event) -> RunError:
    """Moves the lease to the runs; returns why."""
    action = draft.lease.action
    reason = event.reason if isinstance(event, ResetRequested) else action.reason if action else ""
    error, end = reset_error(reason), draft.now
    draft.details = {"reason": reason, "from_runner": draft.lease.runner_id}
    if isinstance(event, HolderEvent):
        take_details(draft, event)
        end = draft.clamp(event.time)
    state = STATES.get(type(event)) or ended_state(event)
    draft.end_run(state, end, getattr(event, "exit_code", None), error)
    return error


def reset_error(reason: str) -> RunError:
    """Why the last run counts as lost."""
    return RunError("RESET", ErrorClass.TRANSIENT, reason)


ROWS = (
    Row(
        "reset_repeated", (ResetRequested,), LEASED, None,
        None, "U", "requested before", requested_before,
    ),
    Row(
        "request_reset", (ResetRequested,), LEASED, None,
        Word.TASK_RESET_REQUESTED, "U",
        "FORBID or a slot, lease not expired: the holder is asked to stop the run", resettable_late, request,
    ),
    Row(
        "reset_exhausts", (ResetRequested,), RUNNING, Phase.EXHAUSTED,
        Word.TASK_EXHAUSTED, "U", "runner losses used up (error code RESET)", both(resettable, used_up),
        exhaust,
    ),
    Row(
        "reset", (ResetRequested,), LEASED, Phase.PENDING,
        Word.TASK_RESET, "U", "leased, no cancel requested: runner_loss_count + 1 if it had started",
        resettable, reset,
    ),
    Row(
        "reset_late_exhausts", OVER, RUNNING, Phase.EXHAUSTED,
        Word.TASK_EXHAUSTED, "R,T", "reset requested, runner losses used up (error code RESET)",
        both(over, used_up), exhaust,
    ),
    Row(
        "reset_late", OVER, LEASED, Phase.PENDING,
        Word.TASK_RESET, "R,T", "reset requested: the holder has stopped the run, or its lease has expired",
        over, reset,
    ),
)  # fmt: skip
