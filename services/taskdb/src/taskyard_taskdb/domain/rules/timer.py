"""Rows for what time does to a task: delays, back-off, promotion, queue and total timeouts."""

from datetime import datetime

from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.dependency import failure
from taskyard_taskdb.domain.draft import REPORT_SLACK, Draft
from taskyard_taskdb.domain.event import (
    Admitted,
    DependencyFailed,
    Due,
    Event,
    Promoted,
    QueueTimeoutPassed,
    TotalTimeoutPassed,
    Unblocked,
)
from taskyard_taskdb.domain.group import prerequisite_name
from taskyard_taskdb.domain.row import Act, Row
from taskyard_taskdb.domain.rules.common import both, cancel_requested, held_back, in_phases
from taskyard_taskdb.domain.rules.outcome import timeout_error
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.transition import ClearTimer, SetTimer
from taskyard_taskdb.domain.words import LIVE, ErrorClass, Kind, PendingReason, Phase, RunState, TimerKind

DELAYS = (PendingReason.DELAYED, PendingReason.BACKOFF)
PENDING = in_phases(Phase.PENDING)
QUEUED = in_phases(Phase.PENDING, Phase.REDISTRIBUTING)
HELD = in_phases(Phase.SCHEDULED, Phase.RUNNING, Phase.REDISTRIBUTING)
ANY = frozenset(Phase)


def delayed(draft: Draft, event: Event) -> bool:
    """Whether the task waits for a time."""
    return draft.task.phase is Phase.PENDING and draft.task.pending_reason in DELAYS


def due(draft: Draft, event: Due) -> bool:
    """Whether the wait is over."""
    later = draft.task.next_attempt_time
    return delayed(draft, event) and (later is None or later <= draft.now)


def set_due(draft: Draft, event: Due) -> None:
    """The timer was early: it stays."""
    assert draft.task.next_attempt_time is not None
    draft.emit(SetTimer(TimerKind.DUE, draft.task.next_attempt_time))


def ready(draft: Draft, event: Due) -> None:
    """The wait is over."""
    draft.pend()


def waits_for_slot(draft: Draft, event: Promoted) -> bool:
    """Whether the task is a candidate of its slot."""
    return draft.task.pending_reason is PendingReason.SLOT_BUSY


def promote(draft: Draft, event: Promoted) -> None:
    """The task is the head of its slot now."""
    draft.queue()


def awaits_limits(draft: Draft, event: Admitted) -> bool:
    """Whether its limits hold the task back."""
    return draft.task.awaits_limits


def admit(draft: Draft, event: Admitted) -> None:
    """The task holds its units now."""
    draft.set(limited=True)
    draft.queue()


def blocked(draft: Draft, event: Event) -> bool:
    """Whether the task waits for prerequisites, paused or not."""
    return bool(draft.task.blocked)


def unblock(draft: Draft, event: Unblocked) -> None:
    """The prerequisites have ended; not_before counts from here on."""
    draft.set(blocked=False)
    draft.pend_from(draft.task.policy.not_before, PendingReason.DELAYED)


def unblock_paused(draft: Draft, event: Unblocked) -> None:
    """The prerequisites have ended; the task stays paused."""
    draft.set(blocked=False, next_attempt_time=draft.task.policy.not_before)


def fail_dependent(draft: Draft, event: DependencyFailed) -> None:
    """Ends a task that can never start."""
    name = prerequisite_name(draft.task.tenant_id, event.prerequisite)
    message = failure(name, event.phase)
    draft.details = {"reason": message, "prerequisite": name}
    draft.finish(Phase.CANCELLED, draft.now, RunError("DEPENDENCY_FAILED", ErrorClass.PERMANENT, message))


def queue_deadline(draft: Draft) -> datetime | None:
    """When the wait for a claim ends, if it does."""
    task = draft.task
    if not task.claimable or task.ready_time is None or task.policy.queue_timeout is None:
        return None
    return task.ready_time + task.policy.queue_timeout


def waited_too_long(draft: Draft, event: QueueTimeoutPassed) -> bool:
    """Whether queue_timeout has passed since ready_time."""
    deadline = queue_deadline(draft)
    return deadline is not None and deadline <= draft.now


def embedded(draft: Draft, event: QueueTimeoutPassed) -> bool:
    """Whether only the process that created the task claims it."""
    return draft.task.kind is Kind.EMBEDDED


def lose_process(draft: Draft, event: QueueTimeoutPassed) -> None:
    """Ends an embedded task whose process is gone."""
    error = RunError("RUNNER_LOST", ErrorClass.TRANSIENT, "the process that created the task was lost")
    draft.end_run(RunState.LOST, draft.now, error=error)
    draft.finish(Phase.FAILED, draft.now, error)


def still_waits(draft: Draft, event: QueueTimeoutPassed) -> bool:
    """Whether it waits again, since a later time."""
    return queue_deadline(draft) is not None


def set_queue_timer(draft: Draft, event: QueueTimeoutPassed) -> None:
    """The timer was early: it moves."""
    deadline = queue_deadline(draft)
    assert deadline is not None
    draft.emit(SetTimer(TimerKind.QUEUE_TIMEOUT, deadline))


def drop(kind: TimerKind) -> Act:
    """The timer no longer applies."""
    return lambda draft, event: draft.emit(ClearTimer(kind))


def time_out(code: str) -> Act:
    """Ends task and run."""

    def act(draft: Draft, event: Event) -> None:
        active = draft.task.phase in (Phase.SCHEDULED, Phase.RUNNING)
        error = timeout_error(code)
        draft.end_run(RunState.TIMED_OUT if active else RunState.LOST, draft.now, error=error)
        draft.finish(Phase.TIMED_OUT, draft.now, error)

    return act


def cancel_instead(draft: Draft, event: Event) -> None:
    """A task that is being cancelled ends as CANCELLED."""
    draft.end_run(RunState.CANCELLED, draft.now)
    draft.finish(Phase.CANCELLED, draft.now)


def total_deadline(draft: Draft) -> datetime | None:
    """When taskdb ends the task; the holder of a run enforces total_timeout itself first."""
    task = draft.task
    if (
        task.total_deadline is None
        or task.phase not in (Phase.SCHEDULED, Phase.RUNNING)
        or task.lease is None
    ):
        return task.total_deadline
    later = task.total_deadline + task.policy.stop_grace_period + REPORT_SLACK
    return max(later, task.lease.expire_time) if task.exclusive and later <= draft.now else later


def total_passed(draft: Draft, event: TotalTimeoutPassed) -> bool:
    """Whether the task's time is up, its holder's grace included."""
    deadline = total_deadline(draft)
    return deadline is not None and deadline <= draft.now


def total_ahead(draft: Draft, event: TotalTimeoutPassed) -> bool:
    """Whether it is to come."""
    return total_deadline(draft) is not None


def wait_for_holder(draft: Draft, event: TotalTimeoutPassed) -> None:
    """Moves the timer; a lease that has to expire first is not renewed any more."""
    deadline = total_deadline(draft)
    assert deadline is not None
    task = draft.task
    if held_back(draft) and task.lease is not None and deadline == task.lease.expire_time:
        draft.set_lease(follows_session=False)
    draft.emit(SetTimer(TimerKind.TOTAL_TIMEOUT, deadline))


ROWS = (
    Row(
        "due", (Due,), PENDING, None,
        Word.TASK_QUEUED, "T", "not_before or the back-off is over: claimable, or waits for its slot",
        due, ready,
    ),
    Row(
        "due_early", (Due,), PENDING, None,
        None, "T", "the time has not come: the timer stays", delayed, set_due,
    ),
    Row(
        "due_stale", (Due,), ANY, None,
        None, "T", "it does not wait for a time: the timer goes", act=drop(TimerKind.DUE),
    ),
    Row(
        "promote", (Promoted,), PENDING, None,
        Word.TASK_QUEUED, "T", "chosen as head of its slot: claimable", waits_for_slot, promote,
    ),
    Row(
        "admit", (Admitted,), PENDING, None,
        Word.TASK_QUEUED, "T", "every limit of spec.limits has room for its units: claimable",
        awaits_limits, admit,
    ),
    Row(
        "embedded_lost", (QueueTimeoutPassed,), QUEUED, Phase.FAILED,
        Word.TASK_FAILED, "T", "embedded: its process has not claimed it within queue_timeout (RUNNER_LOST)",
        both(embedded, waited_too_long), lose_process,
    ),
    Row(
        "unblock", (Unblocked,), PENDING, None,
        Word.TASK_QUEUED, "T",
        "every task of spec.after ended as required: claimable, or waits for not_before or its slot",
        blocked, unblock,
    ),
    Row(
        "unblock_paused", (Unblocked,), in_phases(Phase.PAUSED), None,
        None, "T", "every task of spec.after ended as required: it stays paused", blocked, unblock_paused,
    ),
    Row(
        "dependency_failed", (DependencyFailed,), in_phases(Phase.PENDING, Phase.PAUSED), Phase.CANCELLED,
        Word.TASK_CANCELLED, "T", "a task of spec.after ended otherwise than required (DEPENDENCY_FAILED)",
        blocked, fail_dependent,
    ),
    Row(
        "queue_timeout", (QueueTimeoutPassed,), QUEUED, Phase.TIMED_OUT,
        Word.TASK_TIMED_OUT, "T", "claimable since longer than queue_timeout",
        waited_too_long, time_out("QUEUE_TIMEOUT"),
    ),
    Row(
        "queue_timeout_early", (QueueTimeoutPassed,), QUEUED, None,
        None, "T", "claimable since a later time: the timer moves", still_waits, set_queue_timer,
    ),
    Row(
        "queue_timeout_stale", (QueueTimeoutPassed,), ANY, None,
        None, "T", "it is not claimable: the timer goes", act=drop(TimerKind.QUEUE_TIMEOUT),
    ),
    Row(
        "total_timeout_cancelled", (TotalTimeoutPassed,), HELD, Phase.CANCELLED,
        Word.TASK_CANCELLED, "T", "cancel requested", both(total_passed, cancel_requested), cancel_instead,
    ),
    Row(
        "total_timeout", (TotalTimeoutPassed,), LIVE, Phase.TIMED_OUT,
        Word.TASK_TIMED_OUT, "T", "total_timeout has passed, with a lease also the holder's grace",
        total_passed, time_out("TOTAL_TIMEOUT"),
    ),
    Row(
        "total_timeout_early", (TotalTimeoutPassed,), LIVE, None,
        None, "T", "the holder enforces it first: the timer moves", total_ahead, wait_for_holder,
    ),
    Row(
        "total_timeout_stale", (TotalTimeoutPassed,), ANY, None,
        None, "T", "it has ended, or has no total_timeout: the timer goes", act=drop(TimerKind.TOTAL_TIMEOUT),
    ),
)  # fmt: skip
