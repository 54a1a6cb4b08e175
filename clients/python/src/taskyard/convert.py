"""Python values to and from the well-known protos: times, durations, JSON documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1.common_pb2 import Payload

Seconds = timedelta | float
"""A duration as people write it: a timedelta, or a number of seconds."""

JSON_TYPE = "application/json"
BYTES_TYPE = "application/octet-stream"


def to_timedelta(value: Seconds) -> timedelta:
    """The duration as a timedelta."""
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def to_duration(value: Seconds) -> Duration:
    """The duration as its proto."""
    duration = Duration()
    duration.FromTimedelta(to_timedelta(value))
    return duration


def to_timestamp(value: datetime) -> Timestamp:
    """The moment as its proto; a time without a zone is local time, as everywhere in Python."""
    timestamp = Timestamp()
    timestamp.FromDatetime(value.astimezone(UTC))
    return timestamp


def to_datetime(value: Timestamp) -> datetime | None:
    """The moment in UTC; None for the unset timestamp."""
    return value.ToDatetime(tzinfo=UTC) if value.seconds or value.nanos else None


def to_payload(value: Any) -> Payload:
    """Bytes unchanged, anything else as JSON; raises TypeError or ValueError if JSON cannot represent it."""
    if isinstance(value, Payload):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return Payload(raw=bytes(value), content_type=BYTES_TYPE)
    # Raw and not Struct: exact for integers above 2^53, and the server never has to parse it.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Payload(raw=text.encode(), content_type=JSON_TYPE)


def from_struct(message: Struct) -> dict[str, Any]:
    """The document of a Struct, whose numbers are doubles; whole ones become integers again."""
    document: dict[str, Any] = _whole(MessageToDict(message))
    return document


# Beyond it a double no longer holds every integer, and its digits are not the ones that were written.
_MAX_EXACT = 2.0**53


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _MAX_EXACT else value
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def from_payload(payload: Payload) -> Any:
    """The document of a JSON payload, the bytes of another; None if there is none."""
    form = payload.WhichOneof("value")
    if form is None:
        return None
    if form == "json":
        return from_struct(payload.json)
    media_type = payload.content_type.partition(";")[0].strip() or JSON_TYPE
    return json.loads(payload.raw) if media_type == JSON_TYPE else payload.raw
