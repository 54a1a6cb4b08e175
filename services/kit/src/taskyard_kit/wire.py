"""Protobuf's wire format where a message of its own would cost too much, or would not be as deep."""

from __future__ import annotations

from taskyard.v1.lease_service_pb2 import ReportRunsRequest
from taskyard.v1.task_pb2 import TaskResult

_SHORT = [bytes((n,)) for n in range(128)]


def varint(value: int) -> bytes:
    """A number that is not negative."""
    if value < 128:
        return _SHORT[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(key: bytes, value: bytes) -> bytes:
    """A field of bytes, text or a message, with its key."""
    return b"".join((key, varint(len(value)), value))


def in_report(result: bytes) -> TaskResult:
    """An encoded TaskResult, read as deep as it lies in a call of reports; raises DecodeError.

    One that is nested deeper could be stored, but neither reported by itself nor read in a list or a watch.
    """
    call = field(b"\x0a", field(b"\x12", field(b"\x62", field(b"\x0a", result))))
    return ReportRunsRequest.FromString(call).reports[0].report.succeeded.result
