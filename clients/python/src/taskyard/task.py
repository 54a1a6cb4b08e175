"""Tasks, runs, events and log entries as user code reads them: thin views on the proto messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Self

from taskyard.convert import from_payload, to_datetime
from taskyard.names import last_segment
from taskyard.v1 import common_pb2, log_pb2, task_pb2, task_service_pb2


class _OpenEnum(IntEnum):
    """An enum of the contract that accepts values of newer versions."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"{cls.__name__.upper()}_{value}", value
        return member

    def __str__(self) -> str:
        return self.name


class Phase(_OpenEnum):
    """The phase of a task; an unknown phase counts as live."""

    UNSPECIFIED = 0
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
        """Whether the task has ended."""
        return Phase.SUCCEEDED <= self <= Phase.EXHAUSTED


class RunState(_OpenEnum):
    """The state of one run."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    CANCELLED = 6
    LOST = 7
    RELEASED = 8


class Outcome(_OpenEnum):
    """The outcome of a create."""

    UNSPECIFIED = 0
    CREATED = 1
    REPLAYED = 2
    DROPPED = 3
    REPLACED = 4


class EventType(_OpenEnum):
    """The kind of change that an event reports; GAP is made by the client where history was lost."""

    GAP = -1
    BOOKMARK = 0
    SNAPSHOT = 1
    ENTERED = 2
    UPDATED = 3
    EXITED = 4
    DELETED = 5


class LogLevel(_OpenEnum):
    """Severity of a log entry."""

    UNSPECIFIED = 0
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    CRITICAL = 5


class LogSource(_OpenEnum):
    """Where a log entry comes from."""

    UNSPECIFIED = 0
    STDOUT = 1
    STDERR = 2
    WORKLOAD = 3
    RUNNER = 4


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a run or a task did not succeed: `code` is for programs, `message` for people."""

    code: str
    message: str
    permanent: bool
    details: Any


def _failure(error: common_pb2.TaskError) -> TaskFailure:
    permanent = error.error_class == common_pb2.ERROR_CLASS_PERMANENT
    return TaskFailure(error.code, error.message, permanent, dict(error.details.items()))


class TaskFailed(Exception):
    """A task ended without success: `task` is the task, `failure` why, `traceback` that of its exception."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.failure = task.error or TaskFailure("", "", False, {})
        self.traceback = str(self.failure.details.get("traceback", ""))
        reason = f"{self.failure.code}: {self.failure.message}".strip(": ")
        remote = f"\n\nTraceback of the task:\n{self.traceback}" if self.traceback else ""
        super().__init__(f"task {task.id} {task.phase}{f': {reason}' if reason else ''}{remote}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.task,)


@dataclass(frozen=True, slots=True)
class Task:
    """A task as the server returned it; `proto` has every field, the properties are the common ones."""

    proto: task_pb2.Task

    @property
    def name(self) -> str:
        """tenants/{tenant}/tasks/{task}"""
        return self.proto.name

    @property
    def id(self) -> str:
        return last_segment(self.proto.name)

    @property
    def phase(self) -> Phase:
        return Phase(self.proto.status.phase)

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self.proto.metadata.resource_version

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.proto.metadata.labels)

    @property
    def payload(self) -> Any:
        """The input; None if there is none or the view omits it."""
        return from_payload(self.proto.spec.payload)

    @property
    def output(self) -> Any:
        """The document a successful run returned; None if there is none or the view omits it."""
        return from_payload(self.proto.status.result.output)

    @property
    def succeeded(self) -> bool:
        """Whether it has ended with success."""
        return self.phase is Phase.SUCCEEDED

    @property
    def result(self) -> Any:
        """The output of a task that has succeeded; None if there is none, or if a list left it out.

        Raises TaskFailed if it ended otherwise, and RuntimeError while it is live.
        """
        if not self.phase.terminal:
            raise RuntimeError(f"task {self.id} is {self.phase} and has no result yet; wait for its end")
        if not self.succeeded:
            raise TaskFailed(self)
        return self.output

    @property
    def error(self) -> TaskFailure | None:
        """Why the last unsuccessful run failed."""
        status = self.proto.status
        return _failure(status.error) if status.HasField("error") else None

    @property
    def exit_code(self) -> int | None:
        """Of the last run, if it had one."""
        status = self.proto.status
        return status.exit_code if status.HasField("exit_code") else None

    @property
    def attempt(self) -> int:
        return self.proto.status.attempt

    @property
    def runner(self) -> str:
        """The id of the runner that holds the task or ran it last; empty if none has yet."""
        return last_segment(self.proto.status.runner or self.proto.status.last_runner)

    @property
    def create_time(self) -> datetime | None:
        return to_datetime(self.proto.metadata.create_time)

    @property
    def start_time(self) -> datetime | None:
        return to_datetime(self.proto.status.start_time)

    @property
    def end_time(self) -> datetime | None:
        return to_datetime(self.proto.status.end_time)


@dataclass(frozen=True, slots=True)
class Created(Task):
    """The task that a create returned: a new one, or an existing one according to `outcome`."""

    outcome: Outcome = Outcome.CREATED
    replaced: tuple[str, ...] = ()

    @classmethod
    def of(cls, response: task_service_pb2.CreateTaskResponse) -> Self:
        """The result of one create."""
        return cls(response.task, Outcome(response.outcome), tuple(response.replaced_tasks))


@dataclass(frozen=True, slots=True)
class Run:
    """One claim of a task and its outcome."""

    proto: task_pb2.TaskRun

    @property
    def generation(self) -> int:
        """Names the run within its task."""
        return self.proto.generation

    @property
    def attempt(self) -> int:
        """0 if the run never started."""
        return self.proto.attempt

    @property
    def state(self) -> RunState:
        return RunState(self.proto.state)

    @property
    def runner(self) -> str:
        return last_segment(self.proto.runner)

    @property
    def exit_code(self) -> int | None:
        return self.proto.exit_code if self.proto.HasField("exit_code") else None

    @property
    def error(self) -> TaskFailure | None:
        return _failure(self.proto.error) if self.proto.HasField("error") else None

    @property
    def start_time(self) -> datetime | None:
        return to_datetime(self.proto.start_time)

    @property
    def end_time(self) -> datetime | None:
        return to_datetime(self.proto.end_time)


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a task; a watch resumed from `resume_token` continues after this event."""

    proto: task_service_pb2.TaskEvent
    resume_token: str
    gap: bool = False

    @property
    def type(self) -> EventType:
        return EventType.GAP if self.gap else EventType(self.proto.type)

    @property
    def task(self) -> Task:
        """As it is at delivery, possibly newer than the change."""
        return Task(self.proto.task)

    @property
    def version(self) -> int:
        """Of the task, after this change."""
        return self.proto.resource_version

    @property
    def phase(self) -> Phase:
        """Right after this change."""
        return Phase(self.proto.status.phase or self.proto.task.status.phase)

    @property
    def previous_phase(self) -> Phase:
        """UNSPECIFIED if the phase did not change."""
        return Phase(self.proto.previous_phase)

    @property
    def time(self) -> datetime | None:
        return to_datetime(self.proto.time)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line that a run wrote."""

    proto: log_pb2.LogEntry

    @property
    def message(self) -> str:
        return self.proto.message

    @property
    def generation(self) -> int:
        """The run that wrote it."""
        return self.proto.generation

    @property
    def sequence(self) -> int:
        return self.proto.sequence

    @property
    def level(self) -> LogLevel:
        return LogLevel(self.proto.level)

    @property
    def source(self) -> LogSource:
        return LogSource(self.proto.source)

    @property
    def time(self) -> datetime | None:
        return to_datetime(self.proto.time)
