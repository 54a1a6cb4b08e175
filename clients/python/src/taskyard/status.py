"""Errors on the wire: taskyard.errors to google.rpc.Status and back, by reason and never by message text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2 as details
from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.connection_errors import connection_error

DETAILS_KEY = "grpc-status-details-bin"
# Read by gRPC's own retries, which follow the service config.
PUSHBACK_KEY = "grpc-retry-pushback-ms"

CODE_NAME = {code.value: code.name for code in errors.Code}
GRPC_CODE = {code: found for found in grpc.StatusCode for code in errors.Code if code == found.value[0]}


# Clients may refuse trailers above 8 KiB, and base64 adds a third: what does not fit is cut.
_MESSAGE_LENGTH = 1000
_TEXT_LENGTH = 160
_NAME_LENGTH = 400
_VIOLATION_COUNT = 10


def clip(text: str, length: int = _MESSAGE_LENGTH) -> str:
    """The text, cut to the length that fits into a status."""
    return text if len(text) <= length else text[: length - 1] + "…"


def to_status(error: errors.TaskyardError) -> Status:
    """The status of an error: ErrorInfo first, then the standard details of its class."""
    status = Status(code=error.code, message=clip(error.message))
    metadata = {name: clip(value, _NAME_LENGTH) for name, value in error.metadata.items()}
    info = details.ErrorInfo(reason=error.reason, domain=errors.DOMAIN, metadata=metadata)
    for detail in (info, *_standard_details(error)):
        status.details.add().Pack(detail)
    return status


def _standard_details(error: errors.TaskyardError) -> Iterator[Any]:
    if isinstance(error, errors.InvalidArgument):
        fields = [
            details.BadRequest.FieldViolation(
                field=clip(v.field, _TEXT_LENGTH),
                description=clip(v.description, _TEXT_LENGTH),
                reason=v.rule,
            )
            for v in error.violations[:_VIOLATION_COUNT]
        ]
        yield details.BadRequest(field_violations=fields)
    elif isinstance(error, errors.NotFound | errors.AlreadyExists):
        yield details.ResourceInfo(
            resource_type=error.kind,
            resource_name=clip(error.name, _NAME_LENGTH),
            description=clip(error.message, _TEXT_LENGTH),
        )
    elif isinstance(error, errors.ResourceExhausted):
        quota = details.QuotaFailure.Violation(
            subject=clip(error.subject, _NAME_LENGTH), description=clip(error.message, _TEXT_LENGTH)
        )
        yield details.QuotaFailure(violations=[quota])
    elif isinstance(error, errors.FailedPrecondition):
        broken = details.PreconditionFailure.Violation(
            type=error.reason,
            subject=clip(error.subject, _NAME_LENGTH),
            description=clip(error.message, _TEXT_LENGTH),
        )
        yield details.PreconditionFailure(violations=[broken])
    if error.retry_after is not None:
        delay = Duration()
        delay.FromTimedelta(error.retry_after)
        yield details.RetryInfo(retry_delay=delay)


def trailing_metadata(error: errors.TaskyardError) -> tuple[tuple[str, str | bytes], ...]:
    """The trailers that carry the status, and the pushback for clients that retry by themselves."""
    carried: tuple[tuple[str, str | bytes], ...] = ((DETAILS_KEY, to_status(error).SerializeToString()),)
    if error.retry_after is not None and error.code == errors.Code.UNAVAILABLE:
        carried += ((PUSHBACK_KEY, str(int(error.retry_after.total_seconds() * 1000))),)
    return carried


def from_status(status: Status) -> errors.TaskyardError:
    """The error of a status: of a batch item, of a rejected report, or of a call."""
    info, bad_request, retry = details.ErrorInfo(), details.BadRequest(), details.RetryInfo()
    retry_after: timedelta | None = None
    for detail in status.details:
        if detail.Unpack(retry):
            retry_after = retry.retry_delay.ToTimedelta()
        elif not detail.Unpack(info):
            detail.Unpack(bad_request)
    ours = info.domain == errors.DOMAIN
    return errors.rebuild(
        _code(status.code),
        info.reason if ours else "",
        message=status.message,
        metadata=dict(info.metadata),
        violations=tuple(
            errors.FieldViolation(v.field, v.description, v.reason) for v in bad_request.field_violations
        ),
        retry_after=retry_after,
    )


def from_rpc_error(error: grpc.RpcError) -> errors.TaskyardError:
    """The error of a failed call; only the code is set if gRPC itself raised it without details."""
    code, message = error.code(), error.details() or ""
    trailers: Any = error.trailing_metadata() or ()
    for key, value in trailers:
        if key == DETAILS_KEY:
            with contextlib.suppress(DecodeError):
                return from_status(Status.FromString(value))
    found = connection_error(_code(code.value[0]), message)
    return found or from_status(Status(code=code.value[0], message=message))


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Calls made inside raise taskyard.errors in place of grpc.RpcError, which stays as the cause."""
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error


def _code(number: int) -> errors.Code:
    try:
        return errors.Code(number)
    except ValueError:
        return errors.Code.UNKNOWN
