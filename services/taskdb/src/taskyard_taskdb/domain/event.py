"""Everything that can happen to a task; each event names the actor that caused it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.task import SYSTEM, Actor, RunError
from taskyard_taskdb.domain.words import ActorType, Phase, ReleaseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries. request_id is the one of the call that caused it."""

    actor: Actor = SYSTEM
    request_id: str | None = None


# --- scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Event):
    """A runner claimed a claimable task; `claim_request_id` identifies repeats of the call."""

    runner_id: str
    claim_request_id: str = ""
    lease_id: int
    session_epoch: int
    expire_time: datetime
    task_type_revision: int = 0


# --- reports of the lease holder


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderEvent(Event):
    """The lease that it reports on, and the time by the holder's clock (clamped into [claim, now])."""

    runner_id: str
    generation: int
    lease_id: int
    time: datetime | None = None
    # status.details after the merge; None leaves them as they are.
    details: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(HolderEvent):
    """The workload was started."""

    checkpoint_sequence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReported(HolderEvent):
    """How far the run has come; `time` is its observe_time, and the newest wins."""

    progress: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStored(HolderEvent):
    """The holder stores a checkpoint. `repeated`: one with this sequence and content is stored already."""

    sequence: int
    # status.progress after the merge; None leaves it as it is.
    progress: bytes | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded(HolderEvent):
    """The run ended well."""

    result: bytes | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(HolderEvent):
    """The run ended with an error; not to be retried before retry_after has passed."""

    error: RunError
    exit_code: int | None = None
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut(HolderEvent):
    """The holder enforced ATTEMPT_TIMEOUT, SILENCE_TIMEOUT or TOTAL_TIMEOUT."""

    code: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledByHolder(HolderEvent):
    """The holder stopped the run because of a cancel."""

    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(HolderEvent):
    """The holder releases the lease without an outcome.

    Of reason WAITING: the names of the tasks that the run waits for. Storage sets the ids of those that are
    live children of the task, and of what one of them waits for that waits for the task, if there is such.
    """

    reason: ReleaseReason
    message: str = ""
    wait_for: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    cycle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderReturned(HolderEvent):
    """The holder lists the lease, in a hello or a renewal.

    From now on the lease follows this session. Epoch 0 is a pull worker, whose lease has the expiry given.
    """

    session_epoch: int
    expire_time: datetime


# --- timers and sweeps


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerEvent(Event):
    """Found by a sweep of taskdb. One that comes too late for the task's state changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimerEvent(TimerEvent):
    """It is about a lease; without one it changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExpired(LeaseTimerEvent):
    """The sweep found the lease of this generation past its expiry."""

    generation: int


class LossCause(Enum):
    """How taskdb detected that a runner no longer holds a lease."""

    DISCONNECTED = "its stream is gone for 10 s"
    NOT_LISTED = "its hello does not list the lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLost(LeaseTimerEvent):
    """The runner of this generation seems lost before the lease has expired."""

    generation: int
    cause: LossCause


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionDeadlinePassed(LeaseTimerEvent):
    """The holder has not complied with a cancel or pause in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed(LeaseTimerEvent):
    """leases.deadline_time has passed without a report: the backstop of attempt and silence timeouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimeoutPassed(TimerEvent):
    """The timer QUEUE_TIMEOUT is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalTimeoutPassed(TimerEvent):
    """The timer TOTAL_TIMEOUT is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTimeoutPassed(TimerEvent):
    """The timer REPORT_TIMEOUT of an external task is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due(TimerEvent):
    """The timer DUE: a delay or back-off is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCounted(Event):
    """Made by the lifecycle itself, right after a started run has lost its runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted(Event):
    """The task was chosen as the head of its slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted(TimerEvent):
    """The limits of a waiting task have room for its units, which it holds from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unblocked(TimerEvent):
    """Every prerequisite has ended as required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyFailed(TimerEvent):
    """A prerequisite has ended otherwise than required."""

    prerequisite: str
    phase: Phase


# --- users


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Event):
    """CreateTask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested(Event):
    """CancelTask; `grace` is the time for the workload to stop."""

    grace: timedelta = timedelta(seconds=30)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(Event):
    """Admission REPLACE: a new task takes the slot. Acts as a cancel."""

    by_task_id: str
    grace: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested(Event):
    """PauseTask; `grace` is the time for a checkpoint."""

    grace: timedelta = timedelta(seconds=60)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested(Event):
    """ResumeTask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequested(Event):
    """RetryTask. `blocked`: a prerequisite has not ended; None for a task without prerequisites."""

    discard_checkpoints: bool = False
    # The retries that were used up stay so.
    keep_retry_count: bool = False
    cascade: bool = False
    blocked: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRequested(Event):
    """BatchResetTasks: a run that hangs is taken from its holder."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited(Event):
    """UpdateTask; what is None stays. `spec`: a field changed that only a never started task may change."""

    priority: int | None = None
    spec: bool = False
    class_id: int | None = None
    pinned_runner: str | None = None
    policy: TaskPolicy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Event):
    """DeleteTask, or the end of the retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalReported(Event):
    """The owner of an external task reports; phase None leaves it unchanged."""

    phase: Phase | None = None
    details: bytes | None = None
    progress: bytes | None = None
    result: bytes | None = None
    error: RunError | None = None


def runner(runner_id: str) -> Actor:
    """The actor of a holder's report."""
    return Actor(ActorType.RUNNER, runner_id)
