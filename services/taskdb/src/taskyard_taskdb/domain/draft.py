"""The draft of a transition, which the rows of the table modify, and their common operations."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from taskyard_taskdb.domain.change import Change, ChangeEvent
from taskyard_taskdb.domain.event import Event, HolderEvent
from taskyard_taskdb.domain.task import LeaseState, RunError, TaskState, evolve
from taskyard_taskdb.domain.transition import Effect, EndRun
from taskyard_taskdb.domain.words import PendingReason, Phase, RunState


class Draft:
    """The task as it is after the rows applied so far. Nothing here outlives one call of the lifecycle."""

    __slots__ = ("before", "changes", "details", "effects", "exit_code", "now", "rng", "rows", "task")

    def __init__(self, task: TaskState, now: datetime, rng: Random) -> None:
        self.before = task
        self.task = task
        self.now = now
        self.rng = rng
        self.changes: list[Change] = []
        self.effects: list[Effect] = []
        self.rows: list[str] = []
        # For the current change.
        self.details: dict[str, str | int] = {}
        self.exit_code: int | None = None

    @property
    def lease(self) -> LeaseState:
        """The lease; only rows whose guard has seen one ask for it."""
        assert self.task.lease is not None
        return self.task.lease

    def set(self, **fields: Any) -> None:
        """Replaces fields of the task."""
        self.task = evolve(self.task, fields)

    def set_lease(self, **fields: Any) -> None:
        """Replaces fields of the lease."""
        self.set(lease=evolve(self.lease, fields))

    def emit(self, effect: Effect) -> None:
        """Adds a write that does not follow from the states."""
        self.effects.append(effect)

    def clamp(self, reported: datetime | None) -> datetime:
        """A holder's time, forced into the span of its run that has passed: [start or claim, now]."""
        earliest = self.lease.start_time or self.lease.schedule_time
        return self.now if reported is None else min(max(reported, earliest), self.now)

    def end_run(
        self, state: RunState, end: datetime, exit_code: int | None = None, error: RunError | None = None
    ) -> None:
        """Moves the lease, if there is one, to the runs."""
        if self.task.lease is None:
            return
        self.emit(EndRun(self.task.generation, self.lease.lease_id, state, end, exit_code, error))
        self.exit_code = exit_code
        result = {} if exit_code is None else {"exit_code": exit_code}
        self.set(lease=None, **result)

    def queue(self) -> None:
        """Makes the task claimable from now on, or makes it wait for its limits unless it holds its units."""
        if self.task.limited is False:
            reason = PendingReason.LIMITED
            self.set(phase=Phase.PENDING, pending_reason=reason, next_attempt_time=None)
            return
        self.set(
            phase=Phase.PENDING,
            pending_reason=PendingReason.QUEUED,
            ready_time=self.now,
            next_attempt_time=None,
        )

    def release_units(self) -> None:
        """Gives the units of its limits back: another attempt is admitted anew."""
        if self.task.limited:
            self.set(limited=False)

    def pend(self) -> None:
        """Makes the task wait for its turn: for prerequisites, slot, limits, a claim or its owner."""
        if self.task.blocked:
            self.set(phase=Phase.PENDING, pending_reason=PendingReason.BLOCKED, next_attempt_time=None)
        elif self.task.external or self.task.slot is not None:
            reason = PendingReason.EXTERNAL if self.task.external else PendingReason.SLOT_BUSY
            self.set(phase=Phase.PENDING, pending_reason=reason, next_attempt_time=None)
        else:
            self.queue()

    def pend_from(self, earliest: datetime | None, reason: PendingReason) -> None:
        """Makes the task wait until `earliest`, for that reason, or for its turn if that has passed."""
        if earliest is None or earliest <= self.now or self.task.external or self.task.blocked:
            self.pend()
        else:
            self.set(phase=Phase.PENDING, pending_reason=reason, next_attempt_time=earliest)

    def pause(self) -> None:
        """Holds the task; it remembers a delay that is not over."""
        self.set(phase=Phase.PAUSED, pending_reason=PendingReason.NONE)

    def finish(self, phase: Phase, end: datetime, error: RunError | None = None) -> None:
        """Ends the task; an error replaces the one of an earlier run."""
        self.set(
            phase=phase,
            pending_reason=PendingReason.NONE,
            next_attempt_time=None,
            end_time=end,
            error=error or self.task.error,
            blocked=False if self.task.blocked else self.task.blocked,
        )

    def refund_loss(self) -> None:
        """Refunds the loss that was counted when the lease expired: its runner has returned."""
        if self.task.phase is Phase.REDISTRIBUTING and self.task.lease is not None:
            self.set(runner_loss_count=max(0, self.task.runner_loss_count - 1))

    def record(self, word: ChangeEvent, event: Event, former: TaskState) -> None:
        """Closes one change: version, time, and the row of the log. `former` is the task before it."""
        self.set(version=self.task.version + 1, update_time=self.now)
        self.changes.append(change_of(self.task, former, word, event, self.now, self.exit_code, self.details))
        self.details, self.exit_code = {}, None


def change_of(
    task: TaskState,
    former: TaskState,
    word: ChangeEvent,
    event: Event,
    now: datetime,
    exit_code: int | None = None,
    details: Mapping[str, str | int] | None = None,
) -> Change:
    """The row of the log for the step from `former` to `task`; with an error only if it brought one."""
    lease = task.lease or former.lease
    error = task.error if task.error is not former.error else None
    return Change(
        event=word,
        actor=event.actor,
        time=now,
        version=task.version,
        phase=task.phase,
        previous_phase=former.phase if former.phase is not task.phase else None,
        pending_reason=task.pending_reason,
        generation=task.generation,
        attempt=task.attempt,
        retry_count=task.retry_count,
        runner_loss_count=task.runner_loss_count,
        exit_code=exit_code,
        next_attempt_time=task.next_attempt_time,
        runner_id=lease.runner_id if lease else None,
        error_code=error.code if error else None,
        request_id=event.request_id,
        details=details or {},
    )


def take_details(draft: Draft, event: HolderEvent) -> None:
    """Stores status.details that came with a report."""
    if event.details is not None:
        draft.set(details=event.details)


# Beyond the stop's grace: what a holder may take to report that it enforced a timeout.
REPORT_SLACK = timedelta(seconds=15)


def run_deadline(task: TaskState, lease: LeaseState) -> tuple[datetime, str] | None:
    """When taskdb itself ends a started run, and with which code: the backstop behind its holder.

    A runner on the link enforces silence itself, and most signs of its workload never reach taskdb; so only a
    pull worker's silence is judged here. Exclusive work has its total_timeout among them, so that a heartbeat
    does not renew a lease that has to expire first.
    """
    policy, found = task.policy, []
    if lease.start_time is not None and task.total_deadline is not None and task.exclusive:
        found.append((task.total_deadline, "TOTAL_TIMEOUT"))
    if lease.start_time is not None and policy.attempt_timeout is not None:
        found.append((lease.start_time + policy.attempt_timeout, "ATTEMPT_TIMEOUT"))
    if lease.sign_time is not None and policy.silence_timeout is not None and lease.session_epoch == 0:
        found.append((lease.sign_time + policy.silence_timeout, "SILENCE_TIMEOUT"))
    if not found:
        return None
    time, code = min(found)
    return time + policy.stop_grace_period + REPORT_SLACK, code
