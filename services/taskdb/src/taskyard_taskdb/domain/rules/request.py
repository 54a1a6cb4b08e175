"""Rows for what users ask for: cancel, pause, resume, retry, edit, delete."""

from datetime import timedelta

from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import Draft
from taskyard_taskdb.domain.event import (
    ActionDeadlinePassed,
    CancelRequested,
    Created,
    Deleted,
    Edited,
    Event,
    PauseRequested,
    Replaced,
    ResumeRequested,
    RetryRequested,
)
from taskyard_taskdb.domain.row import Row
from taskyard_taskdb.domain.rules.common import (
    both,
    cancel_requested,
    held_back,
    in_phases,
    pause_requested,
    pin,
)
from taskyard_taskdb.domain.task import RequestedAction
from taskyard_taskdb.domain.transition import DeleteTask, DiscardCheckpoints
from taskyard_taskdb.domain.words import LIVE, TERMINAL, Action, PendingReason, Phase, RunState

LEASED = in_phases(Phase.SCHEDULED, Phase.RUNNING)
HELD = LEASED | {Phase.REDISTRIBUTING}
WAITING = in_phases(Phase.PENDING, Phase.PAUSED)
CANCEL = (CancelRequested, Replaced)


def reason_of(event: Event) -> str:
    """The reason that the caller gave."""
    return f"replaced by {event.by_task_id}" if isinstance(event, Replaced) else getattr(event, "reason", "")


def ask(draft: Draft, event: Event, action: Action, grace: timedelta) -> None:
    """Requests an action from the holder; it replaces an earlier request."""
    reason = reason_of(event)
    draft.set_lease(action=RequestedAction(action, draft.now, draft.now + grace, reason, event.actor))
    draft.details = {"reason": reason} if reason else {}


def no_lease(draft: Draft, event: Event) -> bool:
    """Whether no holder could comply: the cancel takes effect at once."""
    return draft.task.lease is None


def cancel_now(draft: Draft, event: Event) -> None:
    """Ends the task."""
    reason = reason_of(event)
    draft.details = {"reason": reason} if reason else {}
    draft.finish(Phase.CANCELLED, draft.now)


def sooner(draft: Draft, event: CancelRequested | Replaced) -> bool:
    """Whether no requested cancel takes effect as early."""
    action = draft.lease.action
    return action is None or action.action is not Action.CANCEL or draft.now + event.grace < action.deadline


def request_cancel(draft: Draft, event: CancelRequested | Replaced) -> None:
    """Requests that the holder stops the run."""
    ask(draft, event, Action.CANCEL, event.grace)


def can_pause(draft: Draft, event: PauseRequested) -> bool:
    """Whether it is a task of runners that is not being cancelled."""
    return not draft.task.external and draft.task.requested is not Action.CANCEL


def pause_now(draft: Draft, event: PauseRequested) -> None:
    """Holds a task that does not run; a late outcome of its old holder is not waited for."""
    draft.details = {"reason": event.reason} if event.reason else {}
    draft.end_run(RunState.LOST, draft.now)
    draft.pause()


def request_pause(draft: Draft, event: PauseRequested) -> None:
    """Requests that the holder writes a checkpoint and releases the lease."""
    ask(draft, event, Action.PAUSE, event.grace)


def resume(draft: Draft, event: ResumeRequested) -> None:
    """PAUSED -> PENDING; a delay that is not over continues."""
    reason = PendingReason.BACKOFF if draft.task.attempt else PendingReason.DELAYED
    draft.pend_from(draft.task.next_attempt_time, reason)


def withdraw(draft: Draft, event: ResumeRequested) -> None:
    """Takes a pause back that has not taken effect."""
    draft.set_lease(action=None)


def retries_left(draft: Draft, event: RetryRequested) -> bool:
    """Whether the budget is renewed, or has something left."""
    return not event.keep_retry_count or draft.task.retry_count < draft.task.policy.max_retries


def retry(draft: Draft, event: RetryRequested) -> None:
    """Starts over with fresh budgets, unless they are to be kept, and a fresh total_timeout."""
    task, total = draft.task, draft.task.policy.total_timeout
    if event.discard_checkpoints:
        draft.emit(DiscardCheckpoints())
    draft.set(
        retry_count=task.retry_count if event.keep_retry_count else 0,
        runner_loss_count=0,
        retry_delay=None,
        error=None,
        exit_code=None,
        end_time=None,
        blocked=task.blocked if event.blocked is None else event.blocked,
        checkpoint_sequence=0 if event.discard_checkpoints else task.checkpoint_sequence,
        total_deadline=None if total is None else draft.now + total,
    )
    draft.pend_from(task.policy.not_before, PendingReason.DELAYED)


def light(draft: Draft, event: Edited) -> bool:
    """Whether only what is always mutable changes: labels, annotations, callback, retention."""
    return event.priority is None and not event.spec


def editable(draft: Draft, event: Edited) -> bool:
    """Whether priority, or with it the rest of the spec, may change now."""
    # A run that waited for children took its attempt back.
    return not event.spec or draft.task.start_time is None


def edit_light(draft: Draft, event: Edited) -> None:
    """Takes over whether there is a callback; the rest is none of the lifecycle's business."""
    draft.set(policy=event.policy or draft.task.policy)


def edit(draft: Draft, event: Edited) -> None:
    """Takes over lane and policy; what waits in the queue goes to the end of its new lane."""
    task = draft.task
    policy = event.policy or task.policy
    draft.set(
        priority=task.priority if event.priority is None else event.priority,
        class_id=task.class_id if event.class_id is None else event.class_id,
        pinned_runner=task.pinned_runner if event.pinned_runner is None else event.pinned_runner,
        policy=policy,
    )
    if policy.total_timeout != task.policy.total_timeout:
        total = policy.total_timeout
        draft.set(total_deadline=None if total is None else task.create_time + total)
    replan(draft, moved=policy.not_before != task.policy.not_before)


def replan(draft: Draft, moved: bool) -> None:
    """Puts an edited task where it waits now; `moved`: its not_before is another one."""
    task, not_before = draft.task, draft.task.policy.not_before
    if task.phase is Phase.PAUSED:
        draft.set(next_attempt_time=not_before if moved else task.next_attempt_time)
    elif task.external or task.blocked:
        return
    elif moved and not_before is not None and not_before > draft.now:
        draft.pend_from(not_before, PendingReason.DELAYED)
    elif task.claimable:
        draft.queue()
    elif moved and task.pending_reason is PendingReason.DELAYED:
        draft.pend()


def delete(draft: Draft, event: Deleted) -> None:
    """Removes an ended task."""
    draft.emit(DeleteTask())


def overdue(draft: Draft, event: ActionDeadlinePassed) -> bool:
    """Whether the holder has not complied in time."""
    action = draft.lease.action if draft.task.lease else None
    return action is not None and action.deadline <= draft.now


def overdue_early(draft: Draft, event: ActionDeadlinePassed) -> bool:
    """Whether the run's lease has to expire before the request is forced."""
    return overdue(draft, event) and held_back(draft)


def force_cancel(draft: Draft, event: ActionDeadlinePassed) -> None:
    """Ends the task over its holder's head."""
    lost = draft.task.phase is Phase.REDISTRIBUTING
    draft.details = {"forced": "true"}
    draft.end_run(RunState.LOST if lost else RunState.CANCELLED, draft.now)
    draft.finish(Phase.CANCELLED, draft.now)


def force_pause(draft: Draft, event: ActionDeadlinePassed) -> None:
    """Holds the task over its holder's head."""
    draft.details = {"forced": "true"}
    draft.end_run(RunState.LOST, draft.now)
    draft.pause()


ROWS = (
    # Decided by lifecycle.create: there is no phase before it.
    Row(
        "create", (Created,), frozenset(), Phase.PENDING,
        Word.TASK_CREATED, "U", "claimable, or waits for not_before, its slot or its owner",
        sql=("insert_tasks", "copy_tasks", "insert_eager_tasks"), also_python=False,
    ),
    Row(
        "cancel", CANCEL, WAITING | {Phase.RUNNING, Phase.REDISTRIBUTING}, Phase.CANCELLED,
        Word.TASK_CANCELLED, "U", "not leased: at once", no_lease, cancel_now,
    ),
    Row(
        "request_cancel", CANCEL, HELD, None,
        Word.TASK_CANCEL_REQUESTED, "U", "leased: the holder is notified; no new attempt starts from here on",
        sooner, request_cancel,
    ),
    Row(
        "cancel_repeated", CANCEL, HELD | {Phase.CANCELLED}, None,
        None, "U", "requested before",
    ),
    Row(
        "pause", (PauseRequested,), in_phases(Phase.PENDING, Phase.REDISTRIBUTING), Phase.PAUSED,
        Word.TASK_PAUSED, "U", "not external, no cancel requested: at once", can_pause, pause_now,
    ),
    Row(
        "pause_repeated", (PauseRequested,), LEASED, None,
        None, "U", "requested before", pause_requested,
    ),
    Row(
        "request_pause", (PauseRequested,), LEASED, None,
        Word.TASK_PAUSE_REQUESTED, "U", "not external, no cancel requested: the holder is notified",
        can_pause, request_pause,
    ),
    Row(
        "paused_already", (PauseRequested,), in_phases(Phase.PAUSED), None,
        None, "U", "paused already",
    ),
    Row(
        "resume", (ResumeRequested,), in_phases(Phase.PAUSED), Phase.PENDING,
        Word.TASK_RESUMED, "U", "a delay that is not over continues", act=resume,
    ),
    Row(
        "withdraw_pause", (ResumeRequested,), LEASED, None,
        Word.TASK_RESUMED, "U", "pause requested, not yet in effect: withdrawn", pause_requested, withdraw,
    ),
    Row(
        "resume_repeated", (ResumeRequested,), LIVE - {Phase.PAUSED}, None,
        None, "U", "not paused",
    ),
    Row(
        "retry_requested", (RetryRequested,), TERMINAL - {Phase.SUCCEEDED}, Phase.PENDING,
        Word.TASK_RETRIED, "U", "budgets and total_timeout start anew; with keep_retry_count a retry is left",
        retries_left, retry,
    ),
    Row(
        "edit_light", (Edited,), frozenset(Phase), None,
        Word.TASK_UPDATED, "U", "labels, annotations, callback, retention", light, edit_light,
    ),
    Row(
        "edit", (Edited,), WAITING, None,
        Word.TASK_UPDATED, "U",
        "priority; the rest of the spec if it never started; a new place in the queue", editable, edit,
    ),
    Row(
        "delete", (Deleted,), TERMINAL, None,
        Word.TASK_DELETED, "U,T", "removed with runs, logs and checkpoints", act=delete,
    ),
    Row(
        "force_pinned", (ActionDeadlinePassed,), LEASED, None,
        None, "T", "FORBID or a slot, lease not expired: it is not renewed any more", overdue_early, pin,
    ),
    Row(
        "force_cancel", (ActionDeadlinePassed,), HELD, Phase.CANCELLED,
        Word.TASK_CANCELLED, "T", "cancel requested, its deadline has passed",
        both(overdue, cancel_requested), force_cancel,
    ),
    Row(
        "force_pause", (ActionDeadlinePassed,), LEASED, Phase.PAUSED,
        Word.TASK_PAUSED, "T", "pause requested, its deadline has passed",
        both(overdue, pause_requested), force_pause,
    ),
)  # fmt: skip
