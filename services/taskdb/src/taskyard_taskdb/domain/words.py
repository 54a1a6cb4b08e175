"""The closed vocabularies of a task; the numbers are those of the contract and of the stored columns."""

from enum import IntEnum


class Phase(IntEnum):
    """Where a task is in its life (TaskPhase)."""

    PENDING = 1
    SCHEDULED = 2
    RUNNING = 3
    PAUSED = 4
    REDISTRIBUTING = 5
    SUCCEEDED = 10
    FAILED = 11
    TIMED_OUT = 12
    CANCELLED = 13
    EXHAUSTED = 14

    @property
    def terminal(self) -> bool:
        """Whether the task has ended; only RetryTask leads out of it, and never out of SUCCEEDED."""
        return self >= Phase.SUCCEEDED


LIVE = frozenset(phase for phase in Phase if not phase.terminal)
TERMINAL = frozenset(Phase) - LIVE
LEASED = frozenset({Phase.SCHEDULED, Phase.RUNNING})


class PendingReason(IntEnum):
    """Why a PENDING task does not run yet; NONE in every other phase."""

    NONE = 0
    QUEUED = 1
    DELAYED = 2
    BACKOFF = 3
    SLOT_BUSY = 4
    EXTERNAL = 5
    BLOCKED = 6
    LIMITED = 7


class Kind(IntEnum):
    """How the task is executed (ExecutionKind)."""

    COMMAND = 1
    SCRIPT = 2
    CONTAINER = 3
    WASM = 4
    FUNCTION = 5
    EXTERNAL = 6
    EMBEDDED = 7


class Restart(IntEnum):
    """Which outcomes of a run lead to another attempt (RestartPolicy)."""

    NEVER = 1
    ON_FAILURE = 2
    ALWAYS = 3


class Jitter(IntEnum):
    """How a delay is randomised (JitterPolicy)."""

    NONE = 1
    FULL = 2
    EQUAL = 3
    DECORRELATED = 4


class Overlap(IntEnum):
    """Whether two runs of a task may overlap in time (OverlapPolicy)."""

    FORBID = 1
    ALLOW = 2


class RunnerLostPolicy(IntEnum):
    """The policy for a task whose runner is lost."""

    WAIT = 1
    REDISTRIBUTE = 2
    FAIL = 3
    HOLD = 4


class Admission(IntEnum):
    """What to do with a new task whose slot has live tasks (AdmissionPolicy)."""

    DROP_IF_RUNNING = 1
    REPLACE = 2
    QUEUE = 3
    QUEUE_LATEST = 4


class Action(IntEnum):
    """An action that a user requests from the holder of a lease (TaskAction)."""

    CANCEL = 1
    PAUSE = 2
    RESET = 3


class RunState(IntEnum):
    """The state of a run."""

    SCHEDULED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    CANCELLED = 6
    LOST = 7
    RELEASED = 8


class ReleaseReason(IntEnum):
    """Why a holder gives its lease back."""

    PAUSED = 1
    DRAINED = 2
    NO_CAPACITY = 3
    UNSUPPORTED = 4
    LOST = 5
    WAITING = 6


class ErrorClass(IntEnum):
    """Whether trying again can help."""

    TRANSIENT = 1
    PERMANENT = 2


class ActorType(IntEnum):
    """Kinds of those who cause changes."""

    SCHEDULER = 1
    RUNNER = 2
    SYSTEM = 3
    USER = 4


class RunnerState(IntEnum):
    """Health of a runner."""

    HEALTHY = 1
    DRAINING = 2
    DEAD = 3
    STOPPED = 4


class Occupancy(IntEnum):
    """Whether a runner could take work (RunnerOccupancy)."""

    IDLE = 1
    BUSY = 2
    OFFLINE = 3


class TimerKind(IntEnum):
    """Rows of the timers table: at most one of each kind per task."""

    DUE = 1
    QUEUE_TIMEOUT = 2
    TOTAL_TIMEOUT = 3
    REPORT_TIMEOUT = 4
