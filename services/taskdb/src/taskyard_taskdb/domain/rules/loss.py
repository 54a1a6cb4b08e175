"""Rows for a lease that ends without an outcome: expired, released, or its runner lost."""

from taskyard_taskdb.domain.change import ChangeEvent as Word
from taskyard_taskdb.domain.draft import Draft, run_deadline, take_details
from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    DeadlinePassed,
    Event,
    HolderEvent,
    LeaseExpired,
    LossCause,
    LossCounted,
    Released,
    RunnerLost,
)
from taskyard_taskdb.domain.group import prerequisite_name
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.row import Act, Row
from taskyard_taskdb.domain.rules.common import both, cancel_requested, in_phases, pause_requested, pin
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import ErrorClass, Phase, ReleaseReason, RunnerLostPolicy, RunState

SCHEDULED = in_phases(Phase.SCHEDULED)
RUNNING = in_phases(Phase.RUNNING)
REDISTRIBUTING = in_phases(Phase.REDISTRIBUTING)
LEASED = SCHEDULED | RUNNING
LOST = (LeaseExpired, RunnerLost)


def gone(draft: Draft, event: LeaseExpired | RunnerLost) -> bool:
    """Whether the lease has ended for the event's generation.

    Before it expires only work that may overlap is taken away: at once when the runner itself does not list
    it, and under on_runner_lost REDISTRIBUTE when the runner is merely not connected.
    """
    task = draft.task
    if task.lease is None or event.generation != task.generation:
        return False
    if isinstance(event, LeaseExpired) or task.lease.expire_time <= draft.now:
        return task.lease.expire_time <= draft.now
    policy = task.policy.on_runner_lost
    believed = policy is RunnerLostPolicy.WAIT and event.cause is LossCause.NOT_LISTED
    return not task.exclusive and (believed or policy is RunnerLostPolicy.REDISTRIBUTE)


def ended(draft: Draft, event: Event) -> bool:
    """Whether the lease has ended: its holder released it, or it is gone."""
    return not isinstance(event, LeaseExpired | RunnerLost) or gone(draft, event)


def unlisted(draft: Draft, event: RunnerLost) -> bool:
    """Whether the lease has to keep the expiry that its former session had."""
    return event.generation == draft.task.generation and event.cause is LossCause.NOT_LISTED


def past_deadline(draft: Draft, event: Event) -> bool:
    """Whether the run should have ended by itself before its lease did."""
    due = run_deadline(draft.task, draft.lease)
    return due is not None and due[0] <= draft.now


def to_deadline(draft: Draft, event: Event) -> Event | None:
    """Goes on as if the deadline had been found first."""
    return DeadlinePassed(actor=event.actor)


def ended_state(event: Event) -> RunState:
    """The state of a run that ended with this event."""
    given_back = isinstance(event, HolderEvent) and getattr(event, "reason", None) is not ReleaseReason.LOST
    return RunState.RELEASED if given_back else RunState.LOST


def survives(draft: Draft, event: Event) -> bool:
    """Whether the end of the lease, even if it is the loss of a runner, leaves the task alive."""
    task = draft.task
    spared = task.policy.on_runner_lost is not RunnerLostPolicy.FAIL
    left = task.runner_loss_count < task.policy.max_runner_losses
    return ended_state(event) is RunState.RELEASED or (spared and left)


def end_lease(draft: Draft, event: Event) -> None:
    """Moves the lease to the runs and logs the reason."""
    end = draft.now
    if isinstance(event, HolderEvent):
        take_details(draft, event)
        end = draft.clamp(event.time)
    if isinstance(event, Released):
        details = {"reason": event.reason.name, "message": event.message}
        draft.details = {key: value for key, value in details.items() if value}
    elif isinstance(event, RunnerLost):
        draft.details = {"reason": event.cause.name}
    draft.end_run(ended_state(event), end)


def count_loss(draft: Draft) -> None:
    """Uses up one of the runner losses, which are apart from the retries."""
    draft.set(runner_loss_count=draft.task.runner_loss_count + 1)


def cancel(draft: Draft, event: Event) -> None:
    """No holder is left that could comply with the cancel."""
    end_lease(draft, event)
    draft.finish(Phase.CANCELLED, draft.now)


def hold(draft: Draft, event: Event) -> None:
    """The pause takes effect; a started run that lost its runner counts."""
    if draft.task.phase is Phase.RUNNING and ended_state(event) is RunState.LOST:
        count_loss(draft)
    end_lease(draft, event)
    draft.pause()


def give_back(draft: Draft, event: Event) -> None:
    """SCHEDULED -> PENDING: claimable again at once, still the head of its slot."""
    end_lease(draft, event)
    draft.queue()


def redistribute(draft: Draft, event: Event) -> None:
    """RUNNING -> REDISTRIBUTING. The lease stays for a late outcome, with the expiry that it has."""
    count_loss(draft)
    cause = event.cause.name if isinstance(event, RunnerLost) else "HEARTBEAT_TIMEOUT"
    draft.details = {"from_runner": draft.lease.runner_id, "reason": cause}
    if draft.task.checkpoint_sequence:
        draft.details["checkpoint_sequence"] = str(draft.task.checkpoint_sequence)
    draft.set_lease(follows_session=False, deadline_time=None, deadline_code=None)
    draft.set(phase=Phase.REDISTRIBUTING, ready_time=draft.now)


def redistribute_given_back(draft: Draft, event: Released) -> None:
    """RUNNING -> REDISTRIBUTING without a lease: its holder expects nothing any more."""
    if event.reason is ReleaseReason.LOST:
        count_loss(draft)
    end_lease(draft, event)
    draft.set(phase=Phase.REDISTRIBUTING, ready_time=draft.now)


def waits(draft: Draft, event: Event) -> bool:
    """Whether the run has ended to wait for children of the task."""
    return isinstance(event, Released) and event.reason is ReleaseReason.WAITING


def waits_in_circle(draft: Draft, event: Event) -> bool:
    """Whether a child waits for the task that waits for it."""
    return waits(draft, event) and bool(getattr(event, "cycle", ""))


def end_waiting(draft: Draft, event: Released) -> None:
    """Ends a run that waits: the next one continues the same attempt from the start."""
    draft.refund_loss()
    started = draft.lease.start_time is not None
    end_lease(draft, event)
    draft.details = {"live_children": len(event.live)}
    if event.live:
        draft.details["first"] = task_name(draft.task.tenant_id, event.live[0])
    draft.set(attempt=draft.task.attempt - started, blocked=True if event.live else draft.task.blocked)
    draft.release_units()


def wait(draft: Draft, event: Released) -> None:
    """Blocked until the children have ended; if they have, it waits for its turn at once."""
    end_waiting(draft, event)
    draft.pend()


def wait_paused(draft: Draft, event: Released) -> None:
    """As a wait, but held: a pause was requested."""
    end_waiting(draft, event)
    draft.pause()


def fail_circle(draft: Draft, event: Released) -> None:
    """Ends a task whose wait would never end."""
    blocker = prerequisite_name(draft.task.tenant_id, event.cycle)
    message = f"its wait would never end: {blocker} waits for this task; remove that dependency"
    error = RunError("WAIT_CYCLE", ErrorClass.PERMANENT, message)
    draft.refund_loss()
    take_details(draft, event)
    draft.details = {"blocker": blocker}
    draft.end_run(RunState.RELEASED, draft.clamp(event.time), error=error)
    draft.finish(Phase.FAILED, draft.now, error)


def settle(draft: Draft, event: Event) -> Event | None:
    """A loss may end or hold the task; a lease that was handed back is none."""
    counted = not isinstance(event, Released) or event.reason is ReleaseReason.LOST
    return LossCounted(actor=event.actor) if counted else None


def give_back_late(draft: Draft, event: Released) -> None:
    """The old holder of a task that is redistributed forgoes a late outcome."""
    if event.reason is not ReleaseReason.LOST:
        draft.refund_loss()
    end_lease(draft, event)


def fails(draft: Draft, event: Event) -> bool:
    """on_runner_lost FAIL."""
    return draft.task.policy.on_runner_lost is RunnerLostPolicy.FAIL


def holds(draft: Draft, event: Event) -> bool:
    """on_runner_lost HOLD."""
    return draft.task.policy.on_runner_lost is RunnerLostPolicy.HOLD


def used_up(draft: Draft, event: Event) -> bool:
    """Whether the task has lost more runners than it may."""
    return draft.task.runner_loss_count > draft.task.policy.max_runner_losses


def end_lost(phase: Phase, error: RunError) -> Act:
    """Ends the task for the loss of its runner."""

    def act(draft: Draft, event: Event) -> None:
        draft.end_run(RunState.LOST, draft.now, error=error)
        draft.finish(phase, draft.now, error)

    return act


def hold_lost(draft: Draft, event: Event) -> None:
    """An operator decides."""
    draft.end_run(RunState.LOST, draft.now)
    draft.pause()


RUNNER_LOST = RunError("RUNNER_LOST", ErrorClass.TRANSIENT, "the runner was lost and on_runner_lost is FAIL")
QUARANTINED = RunError(
    "QUARANTINED", ErrorClass.PERMANENT, "the task lost its runner more often than max_runner_losses allows"
)
GIVEN_UP = (*LOST, Released, CancelledByHolder)

ROWS = (
    Row(
        "lease_end_cancelled", (*LOST, Released), SCHEDULED | RUNNING, Phase.CANCELLED,
        Word.TASK_CANCELLED, "R,T", "cancel requested", both(cancel_requested, ended), cancel,
    ),
    Row(
        "release_late_cancelled", (Released,), REDISTRIBUTING, Phase.CANCELLED,
        Word.TASK_CANCELLED, "R", "cancel requested", cancel_requested, cancel,
    ),
    Row(
        "wait_in_circle", (Released,), LEASED | REDISTRIBUTING, Phase.FAILED,
        Word.TASK_FAILED, "R", "one of the children waits for the task itself (error code WAIT_CYCLE)",
        waits_in_circle, fail_circle,
    ),
    Row(
        "wait_paused", (Released,), LEASED, Phase.PAUSED,
        Word.TASK_PAUSED, "R", "it waits for children, pause requested: attempt - 1 if it had started",
        both(waits, pause_requested), wait_paused,
    ),
    Row(
        "wait", (Released,), LEASED | REDISTRIBUTING, Phase.PENDING,
        Word.TASK_WAITING, "R",
        "it waits for children: attempt - 1 if it had started; claimable once they have ended",
        waits, wait,
    ),
    Row(
        "lease_end_paused", GIVEN_UP, SCHEDULED, Phase.PAUSED,
        Word.TASK_PAUSED, "R,T", "pause requested", both(pause_requested, ended), hold,
    ),
    Row(
        "give_back", GIVEN_UP, SCHEDULED, Phase.PENDING,
        Word.TASK_RELEASED, "R,T",
        "given back, or its first lease ran out, before the start; uses up no budget", ended, give_back,
    ),
    Row(
        "lease_end_late", LOST, RUNNING, None,
        None, "T", "the run's deadline has passed: as DeadlinePassed", both(gone, past_deadline),
        then=to_deadline,
    ),
    Row(
        "run_end_paused", (*LOST, Released), RUNNING, Phase.PAUSED,
        Word.TASK_PAUSED, "R,T", "pause requested; a lost runner counts, and must not be one too many",
        both(pause_requested, ended, survives), hold,
    ),
    Row(
        "lose", LOST, RUNNING, Phase.REDISTRIBUTING,
        Word.TASK_REDISTRIBUTED, "T", "runner_loss_count + 1; the lease stays for a late outcome",
        gone, redistribute, settle,
    ),
    Row(
        "unlisted", (RunnerLost,), LEASED, None,
        None, "T", "its hello does not list it, but it may still run: the lease keeps its recorded expiry",
        unlisted, pin,
    ),
    Row(
        "release", (Released,), RUNNING, Phase.REDISTRIBUTING,
        Word.TASK_REDISTRIBUTED, "R", "given back after the start; reason LOST adds one to runner_loss_count",
        act=redistribute_given_back, then=settle,
    ),
    Row(
        "release_late", (Released,), REDISTRIBUTING, None,
        Word.TASK_RELEASED, "R", "the old holder gives up its late outcome", act=give_back_late,
    ),
    Row(
        "loss_fails", (LossCounted,), REDISTRIBUTING, Phase.FAILED,
        Word.TASK_FAILED, "T", "on_runner_lost FAIL (error code RUNNER_LOST)",
        fails, end_lost(Phase.FAILED, RUNNER_LOST),
    ),
    Row(
        "quarantine", (LossCounted,), REDISTRIBUTING, Phase.EXHAUSTED,
        Word.TASK_EXHAUSTED, "T", "runner losses used up (error code QUARANTINED)",
        used_up, end_lost(Phase.EXHAUSTED, QUARANTINED),
    ),
    Row(
        "loss_holds", (LossCounted,), REDISTRIBUTING, Phase.PAUSED,
        Word.TASK_PAUSED, "T", "on_runner_lost HOLD", holds, hold_lost,
    ),
    Row(
        "loss_counted", (LossCounted,), REDISTRIBUTING, None,
        None, "T", "otherwise it waits for the next claim",
    ),
)  # fmt: skip
