"""Durations and timestamps of messages as Python values, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_timedelta(value: Duration) -> timedelta:
    """The duration, in whole microseconds."""
    return timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def set_duration(field: Duration, value: timedelta) -> None:
    """Fill in a duration."""
    field.seconds = value.days * 86400 + value.seconds
    field.nanos = value.microseconds * 1000


def to_datetime(value: Timestamp) -> datetime:
    """The time, in whole microseconds; a time outside of the years 1 to 9999 is the nearest within."""
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        return (datetime.max if value.seconds > 0 else datetime.min).replace(tzinfo=UTC)


def set_time(field: Timestamp, value: datetime | None) -> None:
    """Fill in a timestamp; None leaves it unset."""
    if value is not None:
        since = value - _EPOCH
        field.seconds = since.days * 86400 + since.seconds
        field.nanos = since.microseconds * 1000


def timestamp(value: datetime) -> Timestamp:
    """The time as a new message."""
    message = Timestamp()
    set_time(message, value)
    return message
