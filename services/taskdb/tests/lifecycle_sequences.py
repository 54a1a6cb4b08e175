"""Random lives of tasks: events that mostly fit the state, and a clock that stops where something is due.

Everything is drawn from one Random, so a seed names a life, and Hypothesis can shrink one. The same lives
drive the property tests of the lifecycle and its comparison with SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from taskyard.errors import TaskyardError
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.draft import run_deadline
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.lifecycle import apply, create
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.task import Actor, RunError, TaskState
from taskyard_taskdb.domain.transition import DeleteTask, Transition
from taskyard_taskdb.domain.words import (
    Action,
    ActorType,
    ErrorClass,
    Jitter,
    Kind,
    Overlap,
    PendingReason,
    Phase,
    ReleaseReason,
    Restart,
    RunnerLostPolicy,
)

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
USER = Actor(ActorType.USER, "alice")
SCHEDULER = Actor(ActorType.SCHEDULER, "scheduler-1")
LEASE = timedelta(seconds=15)
RUNNERS = ("r1", "r2", "r3")


@dataclass(frozen=True)
class Step:
    """One event of a life. `transition` is None where it was refused, with `error`."""

    event: Event
    now: datetime
    # Seeds the Random that the lifecycle gets, so that the step can be repeated elsewhere.
    seed: int
    before: TaskState
    transition: Transition | None
    error: TaskyardError | None = None

    @property
    def after(self) -> TaskState:
        """The task after the step."""
        return self.transition.task if self.transition else self.before


@dataclass
class Life:
    """A task and what happened to it so far."""

    task: TaskState
    now: datetime
    created: Transition
    steps: list[Step] = field(default_factory=list)
    claims: int = 0

    @property
    def deleted(self) -> bool:
        """Whether the task is gone."""
        last = self.steps[-1].transition if self.steps else None
        return last is not None and DeleteTask() in last.effects


def seconds(rng: Random, *choices: float | None) -> timedelta | None:
    """One of these durations, or none."""
    chosen = rng.choice(choices)
    return None if chosen is None else timedelta(seconds=chosen)


def draw_policy(rng: Random, start: datetime = EPOCH) -> TaskPolicy:
    """A policy that makes every row of the table reachable soon."""
    initial = rng.choice((0.5, 1.0, 4.0))
    return TaskPolicy(
        restart=rng.choice((Restart.NEVER, Restart.ON_FAILURE, Restart.ON_FAILURE, Restart.ALWAYS)),
        max_retries=rng.choice((0, 1, 1, 2)),
        max_runner_losses=rng.choice((0, 1, 2)),
        retry_on_timeout=rng.random() < 0.6,
        backoff_initial=timedelta(seconds=initial),
        backoff_max=timedelta(seconds=initial * rng.choice((1, 4, 60))),
        backoff_factor=rng.choice((1.0, 2.0, 3.5)),
        jitter=rng.choice(tuple(Jitter)),
        attempt_timeout=seconds(rng, None, 5, 60),
        silence_timeout=seconds(rng, None, None, 5),
        queue_timeout=seconds(rng, None, None, 20, 120),
        total_timeout=seconds(rng, None, 100, 200, 3000),
        report_timeout=seconds(rng, None, 30),
        stop_grace_period=timedelta(seconds=rng.choice((0, 5, 30))),
        overlap=rng.choice(tuple(Overlap)),
        on_runner_lost=rng.choice((*RunnerLostPolicy, RunnerLostPolicy.WAIT)),
        not_before=start + timedelta(seconds=40) if rng.random() < 0.2 else None,
        has_callback=rng.random() < 0.3,
    )


def draw_task(rng: Random, task_id: str = "t1", start: datetime = EPOCH) -> TaskState:
    """A task to create."""
    external = rng.random() < 0.1
    task = TaskState(
        tenant_id="acme",
        task_id=task_id,
        create_time=start,
        kind=Kind.EXTERNAL if external else rng.choice((Kind.COMMAND, Kind.COMMAND, Kind.EMBEDDED)),
        class_id=rng.randrange(3),
        priority=rng.choice((0, 10, 1000)),
        pinned_runner=rng.choice(("", "", "r1")),
        slot=None if external or rng.random() < 0.6 else "lane",
        policy=draw_policy(rng, start),
        blocked=None if external or rng.random() < 0.85 else True,
    )
    # Decided by what is drawn, so that the lives of other tasks stay as they are.
    limited = not external and (task.class_id, task.priority) == (2, 1000)
    return replace(task, limited=False) if limited else task


def begin(rng: Random, task_id: str = "t1", start: datetime = EPOCH) -> Life:
    """A new life."""
    task = draw_task(rng, task_id, start)
    made = create(task, events.Created(actor=USER), start, slot_free=rng.random() < 0.7)
    return Life(made.task, start, made)


def live(rng: Random, length: int = 40, task_id: str = "t1", start: datetime = EPOCH) -> Life:
    """A lifecycle of at most `length` events; it usually ends soon after a success."""
    life = begin(rng, task_id, start)
    while len(life.steps) < length and not life.deleted:
        if life.task.phase is Phase.SUCCEEDED and rng.random() < 0.4:
            break
        advance(life, rng)
        step(life, draw_event(life, rng), rng.randrange(2**32))
    return life


def step(life: Life, event: Event, seed: int) -> Step:
    """Applies an event to the task."""
    try:
        made: Transition | None = apply(life.task, event, life.now, Random(seed))
        error = None
    except TaskyardError as refused:
        made, error = None, refused
    done = Step(event, life.now, seed, life.task, made, error)
    life.task = done.after
    life.steps.append(done)
    return done


def advance(life: Life, rng: Random) -> None:
    """Lets time pass: not at all, a little, or to just before or just after something is due."""
    kind = rng.random()
    if kind < 0.35:
        return
    if kind < 0.6:
        life.now += timedelta(seconds=rng.choice((0.1, 1, 5)))
        return
    ahead = [time for time in due_times(life.task) if time > life.now]
    if ahead:
        nearest = min(ahead) if rng.random() < 0.7 else rng.choice(ahead)
        life.now = nearest + timedelta(milliseconds=rng.choice((-1, 0, 1)))


def due_times(task: TaskState) -> Iterator[datetime]:
    """When something can become due for the task."""
    policy, lease = task.policy, task.lease
    if task.next_attempt_time is not None:
        yield task.next_attempt_time
    if task.total_deadline is not None:
        yield task.total_deadline
    if task.ready_time is not None and policy.queue_timeout is not None:
        yield task.ready_time + policy.queue_timeout
    if lease is not None:
        yield lease.expire_time
        if lease.action is not None:
            yield lease.action.deadline
        due = run_deadline(task, lease)
        if due is not None:
            yield due[0]


Draw = Callable[[Life, Random], Event]


def draw_event(life: Life, rng: Random) -> Event:
    """An event, mostly one that the task's phase has rows for."""
    return rng.choice(EVERYTHING if rng.random() < 0.06 else likely(life.task))(life, rng)


def likely(task: TaskState) -> tuple[Draw, ...]:
    """What fits the state, roughly as often as it is worth looking at."""
    if task.phase.terminal:
        return (*ENDED, *(_external,) * 8, _report_timeout) if task.external else ENDED
    if task.external:
        return EXTERNAL
    if task.kind is Kind.EMBEDDED and task.phase is Phase.REDISTRIBUTING:
        return (*LIKELY[task.phase], *(_queue_timeout,) * 8)
    if task.requested is Action.RESET:
        return RESETTING
    if task.requested is not None:
        return ASKED_LATE if task.phase is Phase.REDISTRIBUTING else ASKED
    if task.phase is Phase.RUNNING and task.exclusive and task.policy.attempt_timeout is not None:
        return (*LIKELY[task.phase], *(_returned,) * 8, *(_deadline,) * 8)
    if task.phase is Phase.PAUSED and task.blocked:
        return (*LIKELY[task.phase], *(_unblocked,) * 8, *(_dependency_failed,) * 8)
    return WAITING[task.pending_reason] if task.phase is Phase.PENDING else LIKELY[task.phase]


def _claim(life: Life, rng: Random) -> Event:
    life.claims += 1
    return events.Claimed(
        actor=SCHEDULER,
        claim_request_id=f"claim-{life.claims}",
        runner_id=life.task.pinned_runner or rng.choice(RUNNERS),
        lease_id=rng.randrange(-(2**63), 2**63),
        session_epoch=rng.choice((0, 1, 1, 1)),
        expire_time=life.now + LEASE,
    )


def _report(kind: Callable[..., Event], life: Life, rng: Random, **fields: object) -> Event:
    """A report, nearly always of who holds the lease; else one of the three things that prove it is wrong."""
    task, lease = life.task, life.task.lease
    ref: dict[str, Any] = {"runner_id": "r1", "generation": max(1, task.generation), "lease_id": 7}
    if lease is not None:
        ref |= {"runner_id": lease.runner_id, "lease_id": lease.lease_id}
    if rng.random() < 0.05:
        wrong = {"runner_id": "r4", "generation": max(1, task.generation - 1), "lease_id": 8}
        name = rng.choice(tuple(wrong))
        ref[name] = wrong[name]
    return kind(actor=events.runner(ref["runner_id"]), **ref, **fields)


def _reported_time(life: Life, rng: Random) -> datetime | None:
    return None if rng.random() < 0.5 else life.now - timedelta(seconds=rng.choice((-5, 0, 0.5, 3600)))


def _started(life: Life, rng: Random) -> Event:
    checkpoint = life.task.checkpoint_sequence
    return _report(events.Started, life, rng, time=_reported_time(life, rng), checkpoint_sequence=checkpoint)


def _progress(life: Life, rng: Random) -> Event:
    progress = rng.choice((b"10", b"20"))
    return _report(events.ProgressReported, life, rng, time=_reported_time(life, rng), progress=progress)


def _checkpoint(life: Life, rng: Random) -> Event:
    sequence = max(1, life.task.checkpoint_sequence + rng.choice((-1, 0, 1, 5)))
    repeated = sequence <= life.task.checkpoint_sequence and rng.random() < 0.7
    progress = rng.choice((None, b"30"))
    return _report(
        events.CheckpointStored, life, rng, sequence=sequence, progress=progress, repeated=repeated
    )


def _succeeded(life: Life, rng: Random) -> Event:
    exit_code = rng.choice((None, 0))
    return _report(
        events.Succeeded, life, rng, time=_reported_time(life, rng), result=b"42", exit_code=exit_code
    )


def _failed(life: Life, rng: Random) -> Event:
    kind = ErrorClass.PERMANENT if rng.random() < 0.2 else ErrorClass.TRANSIENT
    error = RunError("EXIT_NONZERO", kind, "exit code 1")
    later, details = seconds(rng, None, None, 30), rng.choice((None, b"details"))
    return _report(events.Failed, life, rng, error=error, exit_code=1, retry_after=later, details=details)


def _timed_out(life: Life, rng: Random) -> Event:
    code = rng.choice(("ATTEMPT_TIMEOUT", "SILENCE_TIMEOUT", "TOTAL_TIMEOUT"))
    return _report(
        events.TimedOut,
        life,
        rng,
        time=_reported_time(life, rng),
        code=code,
        exit_code=rng.choice((None, 137)),
    )


def _cancelled(life: Life, rng: Random) -> Event:
    return _report(events.CancelledByHolder, life, rng, time=_reported_time(life, rng), exit_code=143)


def _released(life: Life, rng: Random) -> Event:
    reason, message = rng.choice(tuple(ReleaseReason)), rng.choice(("", "shutting down"))
    if reason is ReleaseReason.WAITING:
        return _waiting(life, rng)
    return _report(events.Released, life, rng, reason=reason, message=message)


def _waiting(life: Life, rng: Random) -> Event:
    live = rng.choice(((), ("c1",), ("c1", "c2")))
    return _report(
        events.Released, life, rng, reason=ReleaseReason.WAITING, wait_for=("tenants/acme/tasks/c1",),
        live=live, cycle="c3" if live and rng.random() < 0.4 else "",
    )  # fmt: skip


def _returned(life: Life, rng: Random) -> Event:
    epoch, expiry = rng.choice((0, 1, 2)), life.now + rng.choice((2, 20)) * LEASE
    return _report(events.HolderReturned, life, rng, session_epoch=epoch, expire_time=expiry)


def _expired(life: Life, rng: Random) -> Event:
    return events.LeaseExpired(generation=life.task.generation - (rng.random() < 0.05))


def _lost(life: Life, rng: Random) -> Event:
    return events.RunnerLost(generation=life.task.generation, cause=rng.choice(tuple(events.LossCause)))


def _action_deadline(life: Life, rng: Random) -> Event:
    return events.ActionDeadlinePassed()


def _deadline(life: Life, rng: Random) -> Event:
    return events.DeadlinePassed()


def _queue_timeout(life: Life, rng: Random) -> Event:
    return events.QueueTimeoutPassed()


def _total_timeout(life: Life, rng: Random) -> Event:
    return events.TotalTimeoutPassed()


def _report_timeout(life: Life, rng: Random) -> Event:
    return events.ReportTimeoutPassed()


def _due(life: Life, rng: Random) -> Event:
    return events.Due()


def _promoted(life: Life, rng: Random) -> Event:
    return events.Promoted()


def _admitted(life: Life, rng: Random) -> Event:
    return events.Admitted()


def _unblocked(life: Life, rng: Random) -> Event:
    return events.Unblocked()


def _dependency_failed(life: Life, rng: Random) -> Event:
    return events.DependencyFailed(prerequisite="t0", phase=rng.choice((Phase.FAILED, Phase.CANCELLED)))


def _cancel(life: Life, rng: Random) -> Event:
    if rng.random() < 0.2:
        return events.Replaced(actor=USER, by_task_id="t2")
    grace = timedelta(seconds=rng.choice((0, 10, 30)))
    return events.CancelRequested(actor=USER, grace=grace, reason=rng.choice(("", "not needed")))


def _pause(life: Life, rng: Random) -> Event:
    grace = timedelta(seconds=rng.choice((0, 10, 60)))
    return events.PauseRequested(actor=USER, grace=grace, reason=rng.choice(("", "maintenance")))


def _resume(life: Life, rng: Random) -> Event:
    return events.ResumeRequested(actor=USER)


def _retry(life: Life, rng: Random) -> Event:
    blocked = None if life.task.blocked is None else rng.random() < 0.5
    return events.RetryRequested(
        actor=USER,
        discard_checkpoints=rng.random() < 0.3,
        keep_retry_count=rng.random() < 0.3,
        request_id="retry-1",
        blocked=blocked,
    )


def _reset(life: Life, rng: Random) -> Event:
    return events.ResetRequested(actor=USER, reason="it hangs")


def _edit(life: Life, rng: Random) -> Event:
    kind = rng.random()
    if kind < 0.3:
        return events.Edited(actor=USER)
    if kind < 0.6:
        return events.Edited(actor=USER, priority=rng.choice((5, 10, 20)))
    return events.Edited(actor=USER, spec=True, class_id=rng.randrange(3), policy=draw_policy(rng, life.now))


def _delete(life: Life, rng: Random) -> Event:
    return events.Deleted(actor=USER)


def _external(life: Life, rng: Random) -> Event:
    phase = rng.choice((None, Phase.RUNNING, Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED))
    return events.ExternalReported(
        actor=USER, phase=phase, progress=rng.choice((None, b"50")), details=rng.choice((None, b"d")),
        result=b"42" if phase is Phase.SUCCEEDED else None,
        error=rng.choice((None, RunError("BROKEN", ErrorClass.PERMANENT, "it broke"))),
    )  # fmt: skip


OUTCOMES: tuple[Draw, ...] = (_succeeded, _failed, _failed, _timed_out, _cancelled, _released, _waiting)
LEASE_TIMERS: tuple[Draw, ...] = (_expired, _expired, _lost, _deadline)
WAITING: dict[PendingReason, tuple[Draw, ...]] = {
    PendingReason.QUEUED: (*(_claim,) * 10, _cancel, _pause, _edit, _queue_timeout, _total_timeout),
    PendingReason.DELAYED: (*(_due,) * 4, _cancel, _pause, _resume, _edit, _edit, _total_timeout),
    PendingReason.BACKOFF: (*(_due,) * 8, _cancel, _pause, _edit, _total_timeout),
    PendingReason.SLOT_BUSY: (
        *(_promoted,) * 8,
        _cancel,
        _pause,
        _edit,
        _total_timeout,
        _due,
        _queue_timeout,
    ),
    PendingReason.LIMITED: (*(_admitted,) * 10, _cancel, _pause, _edit, _total_timeout, _due, _queue_timeout),
    PendingReason.BLOCKED: (
        *(_unblocked,) * 3, *(_dependency_failed,) * 2, *(_pause,) * 3, _cancel, _edit, _total_timeout, _due,
    ),
}  # fmt: skip
LIKELY: dict[Phase, tuple[Draw, ...]] = {
    Phase.SCHEDULED: (
        *(_started,) * 12, _succeeded, _failed, _timed_out, _cancelled, _released, _waiting, _returned,
        _expired, _lost,
        _cancel, _pause, _checkpoint, _reset,
    ),
    Phase.RUNNING: (
        *OUTCOMES, *LEASE_TIMERS, *LEASE_TIMERS, *(_progress,) * 4, *(_checkpoint,) * 2, *(_returned,) * 2,
        _started, _cancel, _pause, _pause, _total_timeout, *(_reset,) * 2,
    ),
    Phase.PAUSED: (*(_resume,) * 8, _cancel, _pause, _edit, _total_timeout, _due),
    Phase.REDISTRIBUTING: (
        *(_claim,) * 3, *OUTCOMES, *(_returned,) * 6, *(_progress,) * 4, *(_checkpoint,) * 4, _edit, _started,
        *(_cancel,) * 8, *(_released,) * 4, *(_waiting,) * 2, _pause, _queue_timeout, _total_timeout,
        *(_deadline,) * 4, _report_timeout,
    ),
}  # fmt: skip
ASKED: tuple[Draw, ...] = (
    *(_action_deadline,) * 6, _cancelled, _released, *(_waiting,) * 2, *(_succeeded,) * 3, _failed,
    *LEASE_TIMERS, _deadline, _cancel, _pause, _resume, _returned, _started, *(_total_timeout,) * 5,
)  # fmt: skip
RESETTING: tuple[Draw, ...] = (*(_cancelled,) * 2, *(_failed,) * 2, *(_reset,) * 3, *ASKED)
ASKED_LATE: tuple[Draw, ...] = (
    *(_released,) * 12, *(_action_deadline,) * 4, *OUTCOMES, *(_cancelled,) * 3, *(_cancel,) * 4, _returned,
    *(_total_timeout,) * 8,
)  # fmt: skip
ENDED: tuple[Draw, ...] = (
    *(_retry,) * 16, _edit, _delete, _cancel, _due, _queue_timeout, _total_timeout, _report_timeout,
    _succeeded,
)  # fmt: skip
EXTERNAL: tuple[Draw, ...] = (
    *(_external,) * 8, *(_report_timeout,) * 5, _total_timeout, _cancel, _edit, _pause, _resume,
)  # fmt: skip
EVERYTHING: tuple[Draw, ...] = (
    _claim, _started, _progress, _checkpoint, _succeeded, _failed, _timed_out, _cancelled, _released,
    _returned, _expired, _lost, _action_deadline, _deadline, _queue_timeout, _total_timeout, _report_timeout,
    _due, _promoted, _cancel, _pause, _resume, _retry, _edit, _delete, _external,
    _unblocked, _dependency_failed,
)  # fmt: skip


def lives(count: int, length: int = 40, first_seed: int = 0) -> Iterator[Life]:
    """`count` lifecycles, the same ones every time."""
    for seed in range(first_seed, first_seed + count):
        yield live(Random(seed), length)
