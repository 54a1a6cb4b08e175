"""One row of the change log as the lifecycle decides it, and the words for what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import PendingReason, Phase


class ChangeEvent(IntEnum):
    """What happened (changes.event). Numbers are stored: append, never renumber."""

    TASK_CREATED = 1
    TASK_SCHEDULED = 2
    TASK_STARTED = 3
    TASK_PROGRESS_UPDATED = 4
    TASK_CHECKPOINT_CREATED = 5
    TASK_PAUSED = 6
    TASK_RESUMED = 7
    TASK_SUCCEEDED = 8
    TASK_FAILED = 9
    TASK_TIMED_OUT = 10
    TASK_EXHAUSTED = 11
    TASK_CANCELLED = 12
    TASK_CANCEL_REQUESTED = 13
    TASK_PAUSE_REQUESTED = 14
    TASK_RELEASED = 15
    TASK_REDISTRIBUTED = 16
    TASK_RECONNECTED = 17
    TASK_RETRIED = 18
    TASK_RETRY_SCHEDULED = 19
    TASK_UPDATED = 20
    TASK_DELETED = 21
    TASK_ARCHIVED = 22
    TASK_REPORT_REJECTED = 23
    # It became claimable, or waits for its slot, after a delay or behind another task.
    TASK_QUEUED = 24
    # Taken from its holder by a user.
    TASK_RESET = 25
    # Its holder was asked to stop it first.
    TASK_RESET_REQUESTED = 26
    # Its run has ended until children of it have.
    TASK_WAITING = 27

    RUNNER_REGISTERED = 40
    RUNNER_CONNECTED = 41
    RUNNER_DISCONNECTED = 42
    RUNNER_HEARTBEAT_MISSED = 43
    RUNNER_MARKED_DEAD = 44
    RUNNER_DRAIN_REQUESTED = 45
    RUNNER_DRAINED = 46
    RUNNER_UNDRAINED = 47
    RUNNER_UPDATED = 48
    RUNNER_DELETED = 49

    TENANT_CREATED = 60
    TENANT_UPDATED = 61
    TENANT_DELETED = 62
    # The secret that signs its webhooks.
    TENANT_SECRET_ROTATED = 63
    TASK_TYPE_CREATED = 70
    TASK_TYPE_UPDATED = 71
    TASK_TYPE_DELETED = 72
    API_KEY_CREATED = 80
    API_KEY_REVOKED = 81
    API_KEY_SIGN_IN_CODE_CREATED = 82
    QUARANTINE_CREATED = 90
    QUARANTINE_RELEASED = 91
    WEBHOOK_GIVEN_UP = 95
    AUDIT_DAMAGE_ACKNOWLEDGED = 96
    SCHEDULE_CREATED = 100
    SCHEDULE_UPDATED = 101
    SCHEDULE_DELETED = 102
    SCHEDULE_PAUSED = 103
    SCHEDULE_RESUMED = 104
    # Each due instant leaves exactly one of these three.
    SCHEDULE_FIRED = 105
    SCHEDULE_SKIPPED = 106
    SCHEDULE_MISSED = 107
    SCHEDULE_BACKFILLED = 108
    # A task that a user asked for, beside the instants.
    SCHEDULE_RUN = 109
    GROUP_CREATED = 120
    GROUP_CLOSED = 121
    GROUP_CANCELLED = 122
    GROUP_COMPLETED = 123
    GROUP_DELETED = 124
    LIMIT_CREATED = 130
    LIMIT_UPDATED = 131
    LIMIT_DELETED = 132

    @property
    def word(self) -> str:
        """AuditEvent.event_type: the resource, a dot, what happened."""
        for resource in ("TASK_TYPE", "API_KEY"):
            if self.name.startswith(resource):
                return f"{resource}.{self.name[len(resource) + 1 :]}".lower()
        resource, _, happened = self.name.partition("_")
        return f"{resource}.{happened}".lower()

    @property
    def resource_kind(self) -> "ResourceKind":
        """What it happens to."""
        return ResourceKind[self.word.partition(".")[0].upper()]


class ResourceKind(IntEnum):
    """What a row of the change log is about (changes.resource_kind)."""

    TASK = 1
    RUNNER = 2
    TENANT = 3
    TASK_TYPE = 4
    API_KEY = 5
    QUARANTINE = 6
    # A call of a task's callback, by the id of the task.
    WEBHOOK = 7
    # A range of the change log, from its first to its last id.
    AUDIT = 8
    SCHEDULE = 9
    GROUP = 11
    LIMIT = 12


BY_WORD: Mapping[str, ChangeEvent] = {event.word: event for event in ChangeEvent}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a task: its status right after it, and who caused it."""

    event: ChangeEvent
    actor: Actor
    time: datetime
    version: int
    phase: Phase
    # None when the phase did not change.
    previous_phase: Phase | None
    pending_reason: PendingReason
    generation: int
    attempt: int
    retry_count: int
    runner_loss_count: int
    exit_code: int | None = None
    next_attempt_time: datetime | None = None
    runner_id: str | None = None
    error_code: str | None = None
    request_id: str | None = None
    details: Mapping[str, str | int] = field(default_factory=dict)
