"""Rows for events of the scheduler and the lease holder: claim, start, progress, outcome, return."""

from datetime import datetime

from taskyard.errors import LeaseExpired as LeaseExpiredError
from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import Draft, run_deadline, take_details
from taskyard_taskdb.domain.event import (
    CheckpointStored,
    Claimed,
    Event,
    Failed,
    HolderEvent,
    HolderReturned,
    ProgressReported,
    Started,
    Succeeded,
    TimedOut,
)
from taskyard_taskdb.domain.row import Row, again
from taskyard_taskdb.domain.rules.common import in_phases
from taskyard_taskdb.domain.task import LeaseState
from taskyard_taskdb.domain.words import Action, Overlap, PendingReason, Phase, RunState

SCHEDULED = frozenset({Phase.SCHEDULED})
RUNNING = frozenset({Phase.RUNNING})
REDISTRIBUTING = frozenset({Phase.REDISTRIBUTING})
STARTED = RUNNING | REDISTRIBUTING


def claimable(draft: Draft, event: Event) -> bool:
    """Whether the task has a queue row."""
    return draft.task.claimable


def claim(draft: Draft, event: Claimed) -> None:
    """Grants the lease of the next generation; a former, expired one becomes a lost run."""
    draft.end_run(RunState.LOST, draft.now)
    lease = LeaseState(
        lease_id=event.lease_id,
        runner_id=event.runner_id,
        session_epoch=event.session_epoch,
        claim_request_id=event.claim_request_id,
        schedule_time=draft.now,
        expire_time=event.expire_time,
        task_type_revision=event.task_type_revision,
    )
    draft.set(
        phase=Phase.SCHEDULED,
        pending_reason=PendingReason.NONE,
        generation=draft.task.generation + 1,
        schedule_time=draft.now,
        last_runner_id=event.runner_id,
        progress=None,
        lease=lease,
    )


def start(draft: Draft, event: Started) -> None:
    """Counts the attempt; from now on the lease follows its session."""
    take_details(draft, event)
    begin(draft, draft.clamp(event.time), event.checkpoint_sequence)


def imply_start(draft: Draft, event: HolderEvent) -> None:
    """Counts the attempt of a run whose outcome came without a start; it cannot precede the claim."""
    begin(draft, draft.lease.schedule_time, 0)


def begin(draft: Draft, time: datetime, checkpoint: int) -> None:
    """SCHEDULED -> RUNNING. A run that starts after a cancel was acknowledged charges no attempt."""
    charged = draft.task.requested is not Action.CANCEL
    pinned = draft.lease.action is not None and draft.lease.action.deadline <= draft.now
    # A superseded session has no expiry to follow: the lease keeps its own until a session lists it.
    follows = draft.lease.session_epoch > 0 and draft.lease.in_session and not pinned
    draft.set(phase=Phase.RUNNING, attempt=draft.task.attempt + charged, start_time=time)
    draft.set_lease(
        start_time=time,
        sign_time=draft.now,
        start_checkpoint=checkpoint,
        follows_session=follows,
    )
    set_deadline(draft)


def set_deadline(draft: Draft) -> None:
    """Writes down when the backstop of the run is due."""
    time, code = run_deadline(draft.task, draft.lease) or (None, None)
    draft.set_lease(deadline_time=time, deadline_code=code)


def newer_progress(draft: Draft, event: ProgressReported) -> bool:
    """Whether no newer progress is stored."""
    known = draft.lease.progress_time
    return known is None or draft.clamp(event.time) > known


def progress(draft: Draft, event: ProgressReported) -> None:
    """Stores the progress; it is a sign of the workload."""
    take_details(draft, event)
    draft.set(progress=event.progress)
    draft.set_lease(progress_time=draft.clamp(event.time), sign_time=draft.now)


def newer_checkpoint(draft: Draft, event: CheckpointStored) -> bool:
    """Whether it is above the newest one."""
    return event.sequence > draft.task.checkpoint_sequence


def same_checkpoint(draft: Draft, event: CheckpointStored) -> bool:
    """Whether it is stored already; storage has compared the digests."""
    return event.repeated


def start_by_checkpoint(draft: Draft, event: CheckpointStored) -> None:
    """Counts the attempt of a run whose checkpoint arrives before its start: now at the latest.

    An earlier time would let taskdb end the run before its holder enforces the timeout.
    """
    begin(draft, draft.now, draft.task.checkpoint_sequence)


def checkpoint(draft: Draft, event: CheckpointStored) -> None:
    """Names the newest checkpoint, with the progress that came along."""
    draft.details = {"checkpoint_sequence": event.sequence}
    draft.set(checkpoint_sequence=event.sequence, progress=event.progress or draft.task.progress)
    draft.set_lease(sign_time=draft.now)


def may_return(draft: Draft, event: HolderReturned) -> bool:
    """Whether the holder may keep the lease; FORBID work ends when its lease expires.

    Raises LeaseExpired, on which the holder stops the run.
    """
    task, lease = draft.task, draft.lease
    if task.policy.overlap is Overlap.FORBID and lease.expire_time <= draft.now:
        raise LeaseExpiredError(task.name, task.generation)
    return True


def follow(draft: Draft, event: HolderReturned) -> None:
    """Ties the lease to the session that lists it, unless taskdb is about to end the run."""
    lease, due = draft.lease, run_deadline(draft.task, draft.lease)
    forced = lease.action is not None and lease.action.deadline <= draft.now
    if forced or (due is not None and due[0] <= draft.now):
        return
    draft.set_lease(
        session_epoch=event.session_epoch,
        in_session=True,
        follows_session=event.session_epoch > 0,
        expire_time=event.expire_time,
    )


def reconnect(draft: Draft, event: HolderReturned) -> None:
    """REDISTRIBUTING -> RUNNING, generation unchanged."""
    draft.refund_loss()
    draft.set(phase=Phase.RUNNING)
    follow(draft, event)
    set_deadline(draft)


ROWS = (
    Row(
        "claim", (Claimed,), frozenset({Phase.PENDING, Phase.REDISTRIBUTING}), Phase.SCHEDULED,
        Word.TASK_SCHEDULED, "S",
        "claimable: generation + 1, lease granted; an expired one becomes a lost run", claimable, claim,
        sql=("claim_tasks_v1", "insert_claimed_leases", "end_expired_leases", "insert_eager_tasks"),
        also_python=False,
    ),
    Row(
        "start", (Started,), SCHEDULED, Phase.RUNNING,
        Word.TASK_STARTED, "R", "attempt + 1, unless a cancel was requested",
        act=start, sql=("complete_plain", "complete_runs_v1"),
    ),
    Row(
        "start_repeated", (Started,), STARTED, None,
        None, "R", "reported before",
    ),
    Row(
        "start_implied", (Succeeded, Failed, TimedOut), SCHEDULED, Phase.RUNNING,
        Word.TASK_STARTED, "R", "the outcome came without a start: as after start, then as from RUNNING",
        act=imply_start, then=again,
    ),
    Row(
        "progress", (ProgressReported,), STARTED, None,
        Word.TASK_PROGRESS_UPDATED, "R", "newer than the stored one", newer_progress, progress,
    ),
    Row(
        "progress_old", (ProgressReported,), STARTED, None,
        None, "R", "not newer than the stored one",
    ),
    Row(
        "start_by_checkpoint", (CheckpointStored,), SCHEDULED, Phase.RUNNING,
        Word.TASK_STARTED, "R", "the checkpoint came without a start: as after start, then as from RUNNING",
        act=start_by_checkpoint, then=again,
    ),
    Row(
        "checkpoint", (CheckpointStored,), STARTED, None,
        Word.TASK_CHECKPOINT_CREATED, "R", "above the newest one", newer_checkpoint, checkpoint,
    ),
    Row(
        "checkpoint_repeated", (CheckpointStored,), STARTED, None,
        None, "R", "stored before, with the same content", same_checkpoint,
    ),
    Row(
        "reconnect", (HolderReturned,), REDISTRIBUTING, Phase.RUNNING,
        Word.TASK_RECONNECTED, "S", "overlap ALLOW: the old holder came back, generation unchanged",
        may_return, reconnect,
    ),
    Row(
        "listed", (HolderReturned,), in_phases(Phase.SCHEDULED, Phase.RUNNING), None,
        None, "S", "the lease follows the session that lists it", may_return, follow,
        sql=("follow_sessions", "renew_leases"),
    ),
)  # fmt: skip
