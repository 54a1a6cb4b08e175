"""Answers as JSON: messages by protobuf's own rules, errors as google.rpc.Status or in Connect's form."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from starlette.responses import Response

from taskyard import errors
from taskyard.errors import Code, TaskyardError
from taskyard.status import DETAILS_KEY, to_status

JSON = "application/json"
PROTO = "application/proto"

HTTP_STATUS: Mapping[int, int] = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}


class Refusal(Exception):
    """A call that ends with an error: its status, the HTTP status, and headers that go with it."""

    def __init__(self, status: Status, http: int = 0, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status.message)
        self.status = status
        self.http = http or HTTP_STATUS.get(status.code, 500)
        self.headers = dict(headers or {})

    @classmethod
    def of(cls, error: TaskyardError, http: int = 0, headers: Mapping[str, str] | None = None) -> Refusal:
        return cls(to_status(error), http, headers)


def refuse(
    http: int, code: Code, reason: str, message: str, headers: Mapping[str, str] | None = None
) -> Refusal:
    """What the gateway itself refuses, by a status that only HTTP has."""
    status = Status(code=code, message=message)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain=errors.DOMAIN))
    return Refusal(status, http, headers)


def refusal_of(error: Any) -> Refusal:
    """The refusal of a failed RPC, a grpc.aio.AioRpcError."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY:
            try:
                return Refusal(Status.FromString(value))
            except DecodeError:
                break
    return Refusal(Status(code=error.code().value[0], message=error.details() or ""))


def to_json(message: Message, flat: bool) -> bytes:
    """The message as JSON; `flat` has the proto's own names and shows every field."""
    members = json_format.MessageToDict(
        message, preserving_proto_field_name=flat, always_print_fields_with_no_presence=flat
    )
    return _dump(members)


def rendered(message: Message, flat: bool) -> Response:
    return Response(to_json(message, flat), media_type=JSON)


def failed(refusal: Refusal, *, connect: bool = False) -> Response:
    """The answer to a call that failed."""
    headers = dict(refusal.headers)
    retry_after = _retry_after(refusal.status)
    if retry_after is not None:
        headers.setdefault("retry-after", str(retry_after))
    if refusal.http == 401:
        headers.setdefault("www-authenticate", 'Bearer realm="taskyard"')
    content = connect_json(refusal.status) if connect else status_json(refusal.status)
    return Response(_dump(content), refusal.http, headers, JSON)


def status_json(status: Status) -> dict[str, Any]:
    """google.rpc.Status; a detail of a type that is not in the contract is left out."""
    members: dict[str, Any] = {"code": status.code, "message": status.message, "details": []}
    for detail in status.details:
        try:
            members["details"].append(json_format.MessageToDict(detail))
        except (TypeError, ValueError, DecodeError):
            continue
    return members


def connect_json(status: Status) -> dict[str, Any]:
    """The error of the Connect protocol."""
    details = [
        {
            "type": detail.type_url.rpartition("/")[2],
            "value": base64.b64encode(detail.value).decode().rstrip("="),
        }
        for detail in status.details
    ]
    return {"code": _connect_code(status.code), "message": status.message, "details": details}


def _connect_code(code: int) -> str:
    try:
        name = Code(code).name.lower()
    except ValueError:
        name = "unknown"
    return "canceled" if name == "cancelled" else name


def _retry_after(status: Status) -> int | None:
    """The delay of RetryInfo in whole seconds, rounded up as HTTP has no fractions."""
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(retry):
            return max(1, math.ceil(retry.retry_delay.ToTimedelta().total_seconds()))
    return None


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _dump(members: Any) -> bytes:
    return _encode(members).encode()
