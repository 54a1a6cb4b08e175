"""Every error that Taskyard raises, on a server and in a client, as one tree.

    TaskyardError                      code UNKNOWN; also used for unknown codes
    ├── InvalidArgument                INVALID_ARGUMENT: correct the request; never retry as it is
    │   ├── FieldInvalid                   a field breaks its rule
    │   ├── PayloadSchemaViolation         the payload does not match its task type's JSON Schema
    │   ├── FilterInvalid                  filter does not parse or names an unknown field
    │   ├── OrderByInvalid                 order_by names an unsupported field
    │   ├── PageTokenInvalid               damaged, or of another query
    │   ├── ResumeTokenInvalid             damaged, or of another watch
    │   ├── BatchTooLarge                  more items or bytes than one batch may have
    │   ├── FieldImmutable                 update_mask names a field that cannot change (now)
    │   └── TooLarge                       payload, checkpoint or script above its limit
    ├── Unauthenticated                UNAUTHENTICATED: no key, or an invalid one
    │   └── SignInCodeInvalid              the code is unknown, used or expired
    ├── PermissionDenied               PERMISSION_DENIED: this principal may not call the method
    ├── Unimplemented                  UNIMPLEMENTED: not in this version
    │   └── VersionUnsupported             the server does not serve taskyard.v1; found by the client
    ├── NotFound                       NOT_FOUND: missing, or another tenant's
    │   └── TaskTypeUnknown                neither in the tenant nor in "system"
    ├── AlreadyExists                  ALREADY_EXISTS: the id is taken
    │   ├── RequestIdReused                the same request_id with a different request
    │   └── RunnerIdInUse                  another live agent has this runner id
    ├── Aborted                        ABORTED: re-read, then decide
    │   ├── ResourceVersionMismatch        the resource changed meanwhile
    │   ├── StaleGeneration                a newer run exists; final for the sender
    │   └── SessionSuperseded              the runner has a newer session; this one is over
    ├── FailedPrecondition             FAILED_PRECONDITION: the state has to change first
    │   ├── PhaseConflict                  the task's phase does not allow this
    │   ├── TaskTerminal                   the task has ended; final for reports
    │   ├── LeaseNotHeld                   the caller does not hold this lease; final for reports
    │   ├── LeaseExpired                   a FORBID lease was not renewed in time; stop the work
    │   ├── TaskTypeDisabled
    │   ├── DeletionProtected
    │   ├── TenantSuspended
    │   ├── GroupClosed                    the group takes no more tasks
    │   ├── NotEmpty                       the resource still has children
    │   ├── CheckpointSequenceConflict     not above the latest one
    │   ├── RunnerBusy                     the runner still holds leases
    │   ├── ProtocolViolation              a message that the link's state does not allow
    │   └── ProtocolVersionUnsupported     no common version
    ├── OutOfRange                     OUT_OF_RANGE: list again, then watch from there
    │   ├── ResumeTokenExpired             older than the retained history
    │   └── LogEpochChanged                of a history that a restore or failover replaced
    ├── ResourceExhausted              RESOURCE_EXHAUSTED: retry after retry_after, if there is one
    │   ├── RateLimited                    submissions per second of the tenant
    │   ├── QueueDepthExceeded             waiting tasks of the tenant
    │   ├── SlotQueueFull                  waiting tasks behind one slot
    │   ├── StreamLimit                    open streams of the tenant
    │   ├── PlacementClassLimit            live placement classes of the tenant
    │   ├── Overloaded                     the server sheds load
    │   ├── StorageQuotaExceeded           bytes that the tenant stores
    │   ├── ConsumerStalled                the watcher did not read
    │   └── WindowExceeded                 the runner sent beyond its flow-control window
    ├── Unavailable                    UNAVAILABLE: retry with back-off
    │   ├── ServerDraining                 reconnect elsewhere
    │   ├── StorageUnavailable             the database cannot be reached
    │   ├── HeartbeatTimeout               silence on the runner's stream
    │   ├── ResultCheckPending             a result is being compared with its schema; report it again
    │   ├── ServerUnreachable              nothing answers at the address; found by the client
    │   └── CertificateUntrusted           TLS does not come about; found by the client, never retried
    ├── DataLoss                       DATA_LOSS
    │   └── DigestMismatch                 a checkpoint arrived damaged
    ├── DeadlineExceeded               DEADLINE_EXCEEDED: the outcome of a write is unknown
    ├── CallCancelled                  CANCELLED: the caller cancelled the call
    └── Internal                       INTERNAL: a bug; search the server's log for the correlation id

A class declares its canonical gRPC code, its reason (a name of taskyard.v1.ErrorReason without the
prefix), its data, and the template of its default message. The module imports only the standard library,
because domain code imports it; taskyard.status converts errors to and from google.rpc.Status.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Any, Self, dataclass_transform

DOMAIN = "taskyard.v1"


class Code(IntEnum):
    """The canonical gRPC status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


@dataclasses.dataclass(frozen=True)
class FieldViolation:
    """One broken rule: the path of the field in the request, what is wrong, and the rule's id."""

    field: str
    description: str
    rule: str = ""


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
class _DataError(Exception):
    """Makes a dataclass of each subclass, so that an error's data are its fields."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(eq=False, repr=False)(cls)


class TaskyardError(_DataError):
    """Any error of Taskyard; `code` and `reason` are for programs, `str()` is for people."""

    code = Code.UNKNOWN
    reason = ""
    # Template of the message: names the offending value and the remedy, filled in from the fields.
    sentence = ""

    message: str = dataclasses.field(default="", kw_only=True)
    retry_after: timedelta | None = dataclasses.field(default=None, kw_only=True)
    # Metadata beyond the declared fields, such as a newer server may send.
    extra: Mapping[str, str] = dataclasses.field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.message = self.message or self.describe()

    def describe(self) -> str:
        """The default message."""
        text = self.sentence.format_map(vars(self)) or self.reason or self.code.name
        return f"{text}; retry in {self.retry_after.total_seconds():g} s" if self.retry_after else text

    @property
    def data(self) -> dict[str, Any]:
        """The fields that this class declares beyond those every error has."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _COMMON}

    @property
    def metadata(self) -> dict[str, str]:
        """Every scalar field and every extra as text: the metadata of the ErrorInfo."""
        scalars = {k: str(v) for k, v in self.data.items() if isinstance(v, str | int)}
        return {**self.extra, **scalars}

    @property
    def retryable(self) -> bool:
        """Whether the same request may be sent again, after `retry_after` or a back-off."""
        exhausted = self.code == Code.RESOURCE_EXHAUSTED and self.retry_after is not None
        return exhausted or self.code == Code.UNAVAILABLE

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return _restore, (type(self), fields, self.code, self.reason)


_COMMON = frozenset({"message", "retry_after", "extra"})
# Violations beyond this number are only counted in the message.
_MAX_LISTED_VIOLATIONS = 5


def _restore(cls: type[TaskyardError], fields: dict[str, Any], code: Code, reason: str) -> TaskyardError:
    error = cls(**fields)
    if (error.code, error.reason) != (code, reason):
        error.code, error.reason = code, reason
    return error


class InvalidArgument(TaskyardError):
    """The request breaks a rule; `violations` names each field and what it must be."""

    code = Code.INVALID_ARGUMENT
    violations: tuple[FieldViolation, ...] = ()

    @classmethod
    def of(cls, field: str, description: str, rule: str = "") -> Self:
        """The error for one field; the description names the value and what is allowed."""
        return cls((FieldViolation(field, description, rule),))

    def describe(self) -> str:
        parts = [f"{v.field}: {v.description}" for v in self.violations[:_MAX_LISTED_VIOLATIONS]]
        if len(self.violations) > _MAX_LISTED_VIOLATIONS:
            parts.append(f"and {len(self.violations) - _MAX_LISTED_VIOLATIONS} more")
        return "; ".join(parts) or super().describe()


class FieldInvalid(InvalidArgument):
    reason = "FIELD_INVALID"


class PayloadSchemaViolation(InvalidArgument):
    reason = "PAYLOAD_SCHEMA_VIOLATION"
    task_type: str = ""


class FilterInvalid(InvalidArgument):
    reason = "FILTER_INVALID"


class OrderByInvalid(InvalidArgument):
    reason = "ORDER_BY_INVALID"


class PageTokenInvalid(InvalidArgument):
    reason = "PAGE_TOKEN_INVALID"


class ResumeTokenInvalid(InvalidArgument):
    reason = "RESUME_TOKEN_INVALID"


class FieldImmutable(InvalidArgument):
    reason = "FIELD_IMMUTABLE"


class BatchTooLarge(InvalidArgument):
    reason = "BATCH_TOO_LARGE"
    size: int = 0
    limit: int = 0

    @classmethod
    def sized(cls, field: str, size: int, limit: int, unit: str = "items") -> Self:
        """The error for a batch of `size` where `limit` is allowed."""
        description = f"{size} {unit} are more than the {limit} that one batch may have; split it"
        return cls((FieldViolation(field, description),), size, limit)


class TooLarge(InvalidArgument):
    reason = "TOO_LARGE"
    size: int = 0
    limit: int = 0

    @classmethod
    def sized(cls, field: str, size: int, limit: int) -> Self:
        """The error for a value of `size` bytes where `limit` bytes are allowed."""
        description = f"{size} bytes are more than the limit of {limit}; make it smaller"
        return cls((FieldViolation(field, description),), size, limit)


class Unauthenticated(TaskyardError):
    code = Code.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"
    problem: str = "no key was sent"
    sentence = "{problem}; send `authorization: Bearer ty_<id>_<secret>` with a key that is in force"


class SignInCodeInvalid(Unauthenticated):
    reason = "SIGN_IN_CODE_INVALID"
    problem: str = "the sign-in code is unknown, used or expired"
    sentence = "{problem}; make another with `taskyard open`"


class PermissionDenied(TaskyardError):
    code = Code.PERMISSION_DENIED
    reason = "PERMISSION_DENIED"
    principal: str = ""
    method: str = ""
    needed: str = ""
    sentence = "{principal} may not call {method}; use a key of {needed}"


class Unimplemented(TaskyardError):
    code = Code.UNIMPLEMENTED
    reason = "UNIMPLEMENTED"
    feature: str = "the method"
    sentence = "{feature} is not served by this version; upgrade the server"


class VersionUnsupported(Unimplemented):
    """The server does not serve the contract of this client."""

    reason = ""
    feature: str = "taskyard.v1"
    sentence = (
        "the server does not serve {feature}: it is of another major version than this client,"
        " or not Taskyard; use a client of its version, or correct the address"
    )


class NotFound(TaskyardError):
    """`kind` is the singular noun ("task"), `name` the resource name or id."""

    code = Code.NOT_FOUND
    reason = "NOT_FOUND"
    kind: str
    name: str
    sentence = '{kind} "{name}" does not exist or is not visible to this key; check the name'


class TaskTypeUnknown(NotFound):
    reason = "TASK_TYPE_UNKNOWN"
    sentence = '{kind} "{name}" is registered neither in the tenant nor in "system"; register it first'

    @classmethod
    def named(cls, name: str) -> Self:
        """The error for a task of the unregistered type `name`."""
        return cls("task type", name)


class AlreadyExists(TaskyardError):
    """`kind` is the singular noun ("task"), `name` the resource name or id that is taken."""

    code = Code.ALREADY_EXISTS
    reason = "ALREADY_EXISTS"
    kind: str
    name: str
    sentence = '{kind} "{name}" exists already; choose another id'


class RequestIdReused(AlreadyExists):
    """`kind` and `name` identify the resource that the first request created."""

    reason = "REQUEST_ID_REUSED"
    request_id: str
    sentence = (
        'request_id "{request_id}" created {kind} "{name}" from a different request; '
        "repeat that request unchanged or use a new request_id"
    )


class RunnerIdInUse(AlreadyExists):
    reason = "RUNNER_ID_IN_USE"
    sentence = '{kind} id "{name}" is used by another live agent; stop that one or choose another id'

    @classmethod
    def named(cls, runner: str) -> Self:
        """The error for a second live agent with the id `runner`."""
        return cls("runner", runner)


class Aborted(TaskyardError):
    code = Code.ABORTED


class ResourceVersionMismatch(Aborted):
    reason = "RESOURCE_VERSION_MISMATCH"
    name: str
    resource_version: str
    current_resource_version: str
    sentence = (
        '"{name}" is at version {current_resource_version}, not {resource_version}; '
        "read it again and repeat the change"
    )


class StaleGeneration(Aborted):
    reason = "STALE_GENERATION"
    task: str
    generation: int
    current_generation: int
    sentence = (
        'generation {generation} of task "{task}" was replaced by {current_generation}; '
        "stop the work and discard the report"
    )


class SessionSuperseded(Aborted):
    reason = "SESSION_SUPERSEDED"
    runner: str
    sentence = 'runner "{runner}" has a newer session; this one has ended, connect again'


class FailedPrecondition(TaskyardError):
    """The state has to change first; `subject` names what is in that state."""

    code = Code.FAILED_PRECONDITION
    subject: str


class PhaseConflict(FailedPrecondition):
    reason = "PHASE_CONFLICT"
    phase: str
    needed: str
    sentence = 'task "{subject}" is {phase}; this needs {needed}'


class TaskTerminal(FailedPrecondition):
    reason = "TASK_TERMINAL"
    phase: str
    sentence = 'task "{subject}" has ended as {phase} and can no longer change'


class LeaseNotHeld(FailedPrecondition):
    reason = "LEASE_NOT_HELD"
    generation: int
    sentence = 'generation {generation} of task "{subject}" is not leased to the caller; stop the work'


class LeaseExpired(FailedPrecondition):
    reason = "LEASE_EXPIRED"
    generation: int
    sentence = 'the lease of generation {generation} of task "{subject}" has expired; stop the work'


class TaskTypeDisabled(FailedPrecondition):
    reason = "TASK_TYPE_DISABLED"
    sentence = 'task type "{subject}" is disabled; enable it or use another'


class DeletionProtected(FailedPrecondition):
    reason = "DELETION_PROTECTED"
    task_type: str
    sentence = 'task "{subject}" may not be deleted: its type {task_type} has deletion_protection'


class TenantSuspended(FailedPrecondition):
    reason = "TENANT_SUSPENDED"
    sentence = 'tenant "{subject}" is suspended; an administrator can resume it'


class GroupClosed(FailedPrecondition):
    reason = "GROUP_CLOSED"
    sentence = 'group "{subject}" is closed and takes no more tasks; name another in metadata.group'


class NotEmpty(FailedPrecondition):
    reason = "NOT_EMPTY"
    child_count: int
    sentence = '"{subject}" still has {child_count} children; remove them or use force'


class CheckpointSequenceConflict(FailedPrecondition):
    reason = "CHECKPOINT_SEQUENCE_CONFLICT"
    sequence: int
    current_sequence: int
    sentence = 'checkpoint {sequence} of task "{subject}" is not above the latest, {current_sequence}'


class RunnerBusy(FailedPrecondition):
    reason = "RUNNER_BUSY"
    lease_count: int
    sentence = 'runner "{subject}" still holds {lease_count} leases; drain it first'


class ProtocolViolation(FailedPrecondition):
    reason = "PROTOCOL_VIOLATION"
    problem: str
    sentence = 'runner "{subject}" broke the protocol of the link: {problem}'


class ProtocolVersionUnsupported(FailedPrecondition):
    reason = "PROTOCOL_VERSION_UNSUPPORTED"
    offered: str
    supported: str
    sentence = "{subject} offers protocol version {offered}, not one of {supported}; upgrade the older side"


class OutOfRange(TaskyardError):
    code = Code.OUT_OF_RANGE


class ResumeTokenExpired(OutOfRange):
    reason = "RESUME_TOKEN_EXPIRED"
    token_time: str
    oldest_time: str
    sentence = (
        "the resume token is of {token_time}, the kept history begins at {oldest_time}; "
        "list again, then watch from there"
    )


class LogEpochChanged(OutOfRange):
    reason = "LOG_EPOCH_CHANGED"
    epoch: str
    current_epoch: str
    sentence = (
        "the resume token is of log epoch {epoch}, the database is at {current_epoch} since a backup was "
        "restored or a standby took over that may lack changes; list again, then watch from there"
    )


class ResourceExhausted(TaskyardError):
    """A limit is reached; `subject` names who it belongs to ("tenants/acme"), `limit` how much it is."""

    code = Code.RESOURCE_EXHAUSTED
    subject: str
    limit: str


class RateLimited(ResourceExhausted):
    reason = "RATE_LIMITED"
    sentence = "{subject} submits more than {limit} tasks per second; slow down"


class QueueDepthExceeded(ResourceExhausted):
    reason = "QUEUE_DEPTH_EXCEEDED"
    sentence = "{subject} has {limit} tasks waiting already; let some finish"


class SlotQueueFull(ResourceExhausted):
    reason = "SLOT_QUEUE_FULL"
    slot: str
    sentence = '{subject} has {limit} tasks waiting behind slot "{slot}" already; let some finish'


class StreamLimit(ResourceExhausted):
    reason = "STREAM_LIMIT"
    sentence = "{subject} has {limit} streams open already; close some or watch more with each"


class PlacementClassLimit(ResourceExhausted):
    reason = "PLACEMENT_CLASS_LIMIT"
    sentence = "{subject} has {limit} live placement classes already; use fewer distinct selectors and sizes"


class Overloaded(ResourceExhausted):
    reason = "OVERLOADED"
    sentence = "{subject} has reached {limit} and sheds this call"


class StorageQuotaExceeded(ResourceExhausted):
    reason = "STORAGE_QUOTA_EXCEEDED"
    sentence = "{subject} stores {limit} bytes already; delete tasks or shorten their retention"


class ConsumerStalled(ResourceExhausted):
    reason = "CONSUMER_STALLED"
    sentence = "{subject} did not read for {limit}; watch again from the last token"


class WindowExceeded(ResourceExhausted):
    reason = "WINDOW_EXCEEDED"
    sentence = "{subject} has more than {limit} unacknowledged; wait for acknowledgements"


class Unavailable(TaskyardError):
    code = Code.UNAVAILABLE


class ServerDraining(Unavailable):
    reason = "SERVER_DRAINING"
    sentence = "the server is shutting down; connect again, another replica answers"


class StorageUnavailable(Unavailable):
    """`outcome` of a write is "not applied" or "unknown"."""

    reason = "STORAGE_UNAVAILABLE"
    outcome: str = "not applied"
    sentence = "the database cannot be reached, a write is {outcome}; repeat it with the same request_id"


class HeartbeatTimeout(Unavailable):
    reason = "HEARTBEAT_TIMEOUT"
    runner: str
    timeout: str
    sentence = 'no heartbeat of runner "{runner}" for {timeout}; connect again'


class ResultCheckPending(Unavailable):
    reason = "RESULT_CHECK_PENDING"
    task: str
    sentence = 'the result of "{task}" is being compared with its schema; report it again'


class ServerUnreachable(Unavailable):
    """Nothing answers at the address; retried like any other outage."""

    address: str = ""
    problem: str = ""
    sentence = "no server answers at {address} ({problem}); start it or correct the address"


class CertificateUntrusted(Unavailable):
    """TLS does not come about: another authority, another name, or no TLS at all on the other side."""

    address: str = ""
    problem: str = ""
    sentence = (
        "the certificate of {address} is not accepted ({problem});"
        " set TASKYARD_TLS_CA to the authority that signed it, and use the name that it is for"
    )

    @property
    def retryable(self) -> bool:
        """Never: only another configuration helps."""
        return False


class DataLoss(TaskyardError):
    code = Code.DATA_LOSS


class DigestMismatch(DataLoss):
    reason = "DIGEST_MISMATCH"
    name: str
    expected: str
    actual: str
    sentence = '"{name}" has digest {actual}, not {expected}; send it again'


class DeadlineExceeded(TaskyardError):
    code = Code.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"
    method: str
    limit: str
    sentence = "{method} took longer than {limit}; the outcome of a write is unknown, repeat it unchanged"


class CallCancelled(TaskyardError):
    code = Code.CANCELLED


class Internal(TaskyardError):
    """A bug on the server; the detail is in its log under `correlation_id` only."""

    code = Code.INTERNAL
    reason = "INTERNAL"
    correlation_id: str
    sentence = "internal error; report it with correlation id {correlation_id}"


def _tree(cls: type[TaskyardError] = TaskyardError) -> list[type[TaskyardError]]:
    return [cls] + [found for sub in cls.__subclasses__() for found in _tree(sub)]


# The first class of a code, in tree order, is the base class of all others of that code.
_BY_CODE: Mapping[Code, type[TaskyardError]] = {c.code: c for c in reversed(_tree())}
BY_REASON: Mapping[str, type[TaskyardError]] = {c.reason: c for c in _tree() if c.reason}


def by_code(code: Code) -> type[TaskyardError]:
    """The most general class of a code; TaskyardError itself for UNKNOWN and undeclared codes."""
    return _BY_CODE.get(code, TaskyardError)


def rebuild(
    code: Code,
    reason: str,
    *,
    message: str = "",
    metadata: Mapping[str, str] | None = None,
    violations: tuple[FieldViolation, ...] = (),
    retry_after: timedelta | None = None,
) -> TaskyardError:
    """The error sent by a peer: by reason if this version has that reason, otherwise by code."""
    cls = BY_REASON.get(reason) or by_code(code)
    left = dict(metadata or {})
    data: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name == "violations":
            data["violations"] = violations
        elif field.name not in _COMMON:
            data[field.name] = _parse(left.pop(field.name, ""), field.type == "int")
    data |= {"message": message, "retry_after": retry_after, "extra": left}
    return _restore(cls, data, code, reason)


def _parse(text: str, is_int: bool) -> str | int:
    if not is_int:
        return text
    try:
        return int(text)
    except ValueError:
        return 0
