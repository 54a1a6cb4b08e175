"""A task as the lifecycle sees it: identity, policy, state, and the lease if there is one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy
from taskyard_taskdb.domain.words import (
    Action,
    ActorType,
    ErrorClass,
    Kind,
    Overlap,
    PendingReason,
    Phase,
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who causes a change."""

    type: ActorType
    id: str = ""


SYSTEM = Actor(ActorType.SYSTEM)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run did not succeed.

    `encoded` is the TaskError as it was reported or stored; it is empty for an error that the lifecycle
    makes, which code, class and message describe completely. One that was read back may lack the latter two.
    """

    code: str
    error_class: ErrorClass = ErrorClass.TRANSIENT
    message: str = ""
    encoded: bytes = b""


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """A cancel or pause that was requested from the holder and has not taken effect."""

    action: Action
    request_time: datetime
    deadline: datetime
    reason: str
    actor: Actor


@dataclass(frozen=True)
class LeaseState:
    """The current run: the row of `leases`. Phase, version, generation, attempt and progress are the task's.

    `expire_time` is the expiry in force: the lease's own, or that of its session if `follows_session` (then
    the column is null). To pin a lease, read the session's expiry under a lock on the session.
    """

    lease_id: int
    runner_id: str
    session_epoch: int
    claim_request_id: str
    schedule_time: datetime
    expire_time: datetime
    follows_session: bool = False
    # The session of session_epoch is the current one of its runner; a pull worker has none.
    in_session: bool = True
    start_time: datetime | None = None
    # Last sign of the workload that reached taskdb, and the observe_time of the stored progress.
    sign_time: datetime | None = None
    progress_time: datetime | None = None
    # When taskdb ends the run itself if its holder has not, and with which error code.
    deadline_time: datetime | None = None
    deadline_code: str | None = None
    action: RequestedAction | None = None
    start_checkpoint: int = 0
    task_type_revision: int = 0


@dataclass(frozen=True, slots=True)
class QueueKey:
    """The primary key of a queue row within its tenant, without the task id."""

    class_id: int
    priority: int
    pinned_runner: str
    ready_time: datetime


@dataclass(frozen=True)
class TaskState:
    """A task in effect: a lease's phase, version, generation, attempt, times, progress and runner win."""

    tenant_id: str
    task_id: str
    create_time: datetime
    kind: Kind = Kind.COMMAND
    class_id: int = 0
    priority: int = 10
    pinned_runner: str = ""
    slot: str | None = None
    policy: TaskPolicy = DEFAULT_POLICY

    version: int = 1
    phase: Phase = Phase.PENDING
    pending_reason: PendingReason = PendingReason.QUEUED
    generation: int = 0
    attempt: int = 0
    retry_count: int = 0
    runner_loss_count: int = 0
    # The delay before the current attempt, which decorrelated jitter builds on.
    retry_delay: timedelta | None = None
    checkpoint_sequence: int = 0
    update_time: datetime | None = None
    ready_time: datetime | None = None
    next_attempt_time: datetime | None = None
    schedule_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    total_deadline: datetime | None = None
    last_runner_id: str | None = None
    exit_code: int | None = None
    error: RunError | None = None
    # Serialised messages: never looked into.
    result: bytes | None = None
    progress: bytes | None = None
    details: bytes | None = None
    # Of a task with spec.after, or that has waited for children: whether it waits for one of them.
    blocked: bool | None = None
    # Some task names it in spec.after.
    has_dependents: bool = False
    # The group that counts it.
    group_id: str | None = None
    # Of a task with spec.limits: whether it holds its units.
    limited: bool | None = None
    lease: LeaseState | None = None

    @property
    def name(self) -> str:
        """The resource name."""
        return f"tenants/{self.tenant_id}/tasks/{self.task_id}"

    @property
    def external(self) -> bool:
        """Whether its owner does the work; such a task has no queue row, no lease and no slot."""
        return self.kind is Kind.EXTERNAL

    @property
    def requested(self) -> Action | None:
        """The action requested from its holder."""
        return self.lease.action.action if self.lease and self.lease.action else None

    @property
    def claimable(self) -> bool:
        """Whether a queue row exists for it."""
        if self.phase is Phase.REDISTRIBUTING:
            return self.requested is None
        return self.phase is Phase.PENDING and self.pending_reason is PendingReason.QUEUED

    @property
    def heads_slot(self) -> bool:
        """Whether it is the head of its slot: queued, before its limits, leased, or to be redistributed."""
        held = self.phase in (Phase.SCHEDULED, Phase.RUNNING, Phase.REDISTRIBUTING)
        return self.slot is not None and not self.external and (held or self.claimable or self.awaits_limits)

    @property
    def awaits_limits(self) -> bool:
        """Whether nothing but its limits holds it back."""
        return self.phase is Phase.PENDING and self.pending_reason is PendingReason.LIMITED

    @property
    def keeps_units(self) -> bool:
        """Whether it may hold the units of its limits: queued, leased, or about to be redistributed."""
        return self.claimable or self.phase in (Phase.SCHEDULED, Phase.RUNNING, Phase.REDISTRIBUTING)

    @property
    def queue_key(self) -> QueueKey | None:
        """The key of its queue row, if there is one."""
        if not self.claimable or self.ready_time is None:
            return None
        return QueueKey(self.class_id, self.priority, self.pinned_runner, self.ready_time)

    @property
    def exclusive(self) -> bool:
        """Whether no run may start before the lease of the previous one has expired or been released."""
        return self.policy.overlap is Overlap.FORBID or self.slot is not None


State = TypeVar("State", TaskState, LeaseState)


def evolve(state: State, fields: dict[str, Any]) -> State:
    """A copy with some fields replaced; several times as fast as dataclasses.replace on this many fields.

    This is why these two classes have no slots.
    """
    made = object.__new__(type(state))
    made.__dict__.update(state.__dict__)
    made.__dict__.update(fields)
    return made
