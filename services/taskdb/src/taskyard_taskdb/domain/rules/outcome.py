"""Rows for the outcome of a run: success, failure, timeout, stopped by its holder."""

from datetime import datetime

from taskyard_taskdb.domain import retry
from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import Draft, run_deadline, take_details
from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    DeadlinePassed,
    Event,
    Failed,
    HolderEvent,
    Succeeded,
    TimedOut,
)
from taskyard_taskdb.domain.row import Act, Row
from taskyard_taskdb.domain.rules.common import (
    both,
    cancel_requested,
    held_back,
    in_phases,
    pause_requested,
    pin,
)
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import Action, ErrorClass, PendingReason, Phase, Restart, RunState

SCHEDULED = in_phases(Phase.SCHEDULED)
RUNNING = in_phases(Phase.RUNNING)
STARTED = RUNNING | {Phase.REDISTRIBUTING}

RUN_STATES = {
    Failed: RunState.FAILED,
    TimedOut: RunState.TIMED_OUT,
    DeadlinePassed: RunState.TIMED_OUT,
    CancelledByHolder: RunState.CANCELLED,
}
TIMEOUTS = {
    "ATTEMPT_TIMEOUT": "the attempt took longer than attempt_timeout",
    "SILENCE_TIMEOUT": "the workload gave no sign for longer than silence_timeout",
    "TOTAL_TIMEOUT": "the task took longer than total_timeout",
    "QUEUE_TIMEOUT": "the task waited for a claim longer than queue_timeout",
}


def timeout_error(code: str) -> RunError:
    """The error of a timeout."""
    return RunError(code, ErrorClass.TRANSIENT, TIMEOUTS[code])


def error_of(draft: Draft, event: Event) -> RunError:
    """Why the run did not succeed."""
    if isinstance(event, Failed):
        return event.error
    if isinstance(event, TimedOut):
        return timeout_error(event.code)
    if isinstance(event, CancelledByHolder):
        return RunError("CANCELLED", ErrorClass.TRANSIENT, "the holder stopped the run without a request")
    due = run_deadline(draft.task, draft.lease)
    assert due is not None
    return timeout_error(due[1])


def end_badly(draft: Draft, event: Event) -> tuple[RunError, datetime]:
    """Ends the run of an unsuccessful outcome; returns why and when it ended."""
    error, end = error_of(draft, event), draft.now
    if isinstance(event, HolderEvent):
        take_details(draft, event)
        end = draft.clamp(event.time)
    draft.refund_loss()
    draft.end_run(RUN_STATES[type(event)], end, getattr(event, "exit_code", None), error)
    return error, end


def end_as(phase: Phase) -> Act:
    """Ends run and task."""

    def act(draft: Draft, event: Event) -> None:
        error, end = end_badly(draft, event)
        draft.finish(phase, end, error)

    return act


def final(draft: Draft, event: Failed | CancelledByHolder) -> bool:
    """Whether a failure can not be retried at all."""
    return not draft.task.policy.retries or error_of(draft, event).error_class is ErrorClass.PERMANENT


def final_timeout(draft: Draft, event: TimedOut | DeadlinePassed) -> bool:
    """Whether a timeout ends the task."""
    policy = draft.task.policy
    return not (policy.retries and policy.retry_on_timeout) or error_of(draft, event).code == "TOTAL_TIMEOUT"


def budget_left(draft: Draft, event: Event) -> bool:
    """Whether another attempt may follow a transient failure."""
    policy = draft.task.policy
    return policy.restart is Restart.ALWAYS or draft.task.retry_count < policy.max_retries


def charge(draft: Draft, event: Event) -> None:
    """Ends the run, uses up one retry and notes when the next attempt may start."""
    error, _ = end_badly(draft, event)
    task = draft.task
    wait = retry.delay(task.policy, task.retry_count, task.retry_delay, draft.rng)
    if isinstance(event, Failed) and event.retry_after is not None:
        wait = max(wait, event.retry_after)
    used = min(task.retry_count + 1, task.policy.max_retries)
    draft.release_units()
    draft.set(error=error, retry_count=used, retry_delay=wait, next_attempt_time=draft.now + wait)


def charge_and_pause(draft: Draft, event: Event) -> None:
    """As a retry, but held: a pause was requested."""
    charge(draft, event)
    draft.pause()


def charge_and_wait(draft: Draft, event: Event) -> None:
    """Waits for the next attempt."""
    charge(draft, event)
    draft.pend_from(draft.task.next_attempt_time, PendingReason.BACKOFF)


def restarts(draft: Draft, event: Succeeded) -> bool:
    """Whether a success is followed by another run; after a cancel none is."""
    return draft.task.policy.restart is Restart.ALWAYS and draft.task.requested is not Action.CANCEL


def end_well(draft: Draft, event: Succeeded) -> datetime:
    """Ends the run of a success and stores its result; returns when it ended."""
    take_details(draft, event)
    end = draft.clamp(event.time)
    draft.refund_loss()
    draft.end_run(RunState.SUCCEEDED, end, event.exit_code)
    draft.set(result=event.result, error=None)
    return end


def succeed(draft: Draft, event: Succeeded) -> None:
    """Ends run and task."""
    end = end_well(draft, event)
    draft.set(phase=Phase.SUCCEEDED, pending_reason=PendingReason.NONE, end_time=end, next_attempt_time=None)


def renew(draft: Draft, event: Succeeded) -> None:
    """Ends the run; the next one has fresh budgets and comes after the first delay."""
    end_well(draft, event)
    draft.release_units()
    later = draft.now + max(draft.task.policy.backoff_initial, retry.SHORTEST)
    draft.set(retry_count=0, runner_loss_count=0, retry_delay=None, next_attempt_time=later)


def renew_and_pause(draft: Draft, event: Succeeded) -> None:
    """As a restart, but held: a pause was requested."""
    renew(draft, event)
    draft.pause()


def renew_and_wait(draft: Draft, event: Succeeded) -> None:
    """Waits for the next run."""
    renew(draft, event)
    draft.pend_from(draft.task.next_attempt_time, PendingReason.BACKOFF)


def stop(draft: Draft, event: CancelledByHolder) -> None:
    """The holder has complied with the cancel."""
    take_details(draft, event)
    end = draft.clamp(event.time)
    draft.refund_loss()
    draft.end_run(RunState.CANCELLED, end, event.exit_code)
    draft.finish(Phase.CANCELLED, end)


def not_due(draft: Draft, event: DeadlinePassed) -> bool:
    """Whether the deadline of the run has moved since it was written down."""
    due = run_deadline(draft.task, draft.lease)
    return due is None or due[0] > draft.now


def forced_too_early(draft: Draft, event: Event) -> bool:
    """Whether the run's lease has to expire first."""
    return held_back(draft)


def rearm(draft: Draft, event: DeadlinePassed) -> None:
    """Writes down the deadline as it is now."""
    time, code = run_deadline(draft.task, draft.lease) or (None, None)
    draft.set_lease(deadline_time=time, deadline_code=code)


TIMEOUT = (TimedOut, DeadlinePassed)

ROWS = (
    Row(
        "succeed_restart_paused", (Succeeded,), RUNNING, Phase.PAUSED,
        Word.TASK_PAUSED, "R", "restart ALWAYS, pause requested", both(restarts, pause_requested),
        renew_and_pause,
    ),
    Row(
        "succeed_restart", (Succeeded,), STARTED, Phase.PENDING,
        Word.TASK_RETRY_SCHEDULED, "R", "restart ALWAYS, no cancel requested: next run after the first delay",
        restarts, renew_and_wait,
    ),
    Row(
        "succeed", (Succeeded,), STARTED, Phase.SUCCEEDED,
        Word.TASK_SUCCEEDED, "R", "otherwise, also when a cancel or pause was requested", act=succeed,
        sql=("complete_plain", "complete_runs_v1"),
    ),
    Row(
        "cancel_confirmed", (CancelledByHolder,), SCHEDULED | STARTED, Phase.CANCELLED,
        Word.TASK_CANCELLED, "R", "cancel requested: the holder has complied", cancel_requested, stop,
    ),
    Row(
        "deadline_stale", (DeadlinePassed,), in_phases(Phase.REDISTRIBUTING), None,
        None, "T", "the lease is over anyway",
    ),
    Row(
        "deadline_moved", (DeadlinePassed,), RUNNING, None,
        None, "T", "the deadline of the run has moved", not_due, rearm,
    ),
    Row(
        "deadline_pinned", (DeadlinePassed,), RUNNING, None,
        None, "T", "FORBID or a slot, lease not expired: it is not renewed any more", forced_too_early, pin,
    ),
    Row(
        "fail_cancelled", (Failed, *TIMEOUT), STARTED, Phase.CANCELLED,
        Word.TASK_CANCELLED, "R,T", "cancel requested: no retry", cancel_requested, end_as(Phase.CANCELLED),
    ),
    Row(
        "fail", (Failed, CancelledByHolder), STARTED, Phase.FAILED,
        Word.TASK_FAILED, "R", "permanent, or without retries", final, end_as(Phase.FAILED),
    ),
    Row(
        "time_out", TIMEOUT, STARTED, Phase.TIMED_OUT,
        Word.TASK_TIMED_OUT, "R,T", "total_timeout, or without retry_on_timeout and retries",
        final_timeout, end_as(Phase.TIMED_OUT),
    ),
    Row(
        "retry_paused", (Failed, CancelledByHolder, *TIMEOUT), RUNNING, Phase.PAUSED,
        Word.TASK_PAUSED, "R,T", "retries left, pause requested", both(pause_requested, budget_left),
        charge_and_pause,
    ),
    Row(
        "retry", (Failed, CancelledByHolder, *TIMEOUT), STARTED, Phase.PENDING,
        Word.TASK_RETRY_SCHEDULED, "R,T", "retries left: retry_count + 1, waits for next_attempt_time",
        budget_left, charge_and_wait,
    ),
    Row(
        "exhaust", (Failed, CancelledByHolder, *TIMEOUT), STARTED, Phase.EXHAUSTED,
        Word.TASK_EXHAUSTED, "R,T", "retries used up", act=end_as(Phase.EXHAUSTED),
    ),
)  # fmt: skip
