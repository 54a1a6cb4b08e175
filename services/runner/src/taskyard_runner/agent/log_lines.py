"""From a journal's records to numbered log entries; the same journal always gives the same entries.

That is what lets the next agent send a run's logs again: the server drops the repeated numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1.log_pb2 import (
    LOG_LEVEL_CRITICAL,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_SOURCE_RUNNER,
    LOG_SOURCE_STDERR,
    LOG_SOURCE_STDOUT,
    LOG_SOURCE_WORKLOAD,
    LogEntry,
    LogLevel,
)
from taskyard_runner.agent.outcome import cut
from taskyard_runner.warden.journal import Kind, Record, read_journal

MAX_MESSAGE_BYTES = 65536
# Room for the note on how much of a line was cut.
_KEPT_BYTES = MAX_MESSAGE_BYTES - 64
_MAX_DETAILS_BYTES = 16384
_MAX_INT32 = 2**31 - 1
_CUT = "the runner was killed while the task ran; output that it had not read yet is missing"

LEVELS: dict[str, LogLevel.ValueType] = {
    "trace": LOG_LEVEL_DEBUG,
    "debug": LOG_LEVEL_DEBUG,
    "info": LOG_LEVEL_INFO,
    "notice": LOG_LEVEL_INFO,
    "warn": LOG_LEVEL_WARNING,
    "warning": LOG_LEVEL_WARNING,
    "error": LOG_LEVEL_ERROR,
    "err": LOG_LEVEL_ERROR,
    "fatal": LOG_LEVEL_CRITICAL,
    "critical": LOG_LEVEL_CRITICAL,
}
_LEVEL_KEYS = ("level", "severity", "levelname")
_MESSAGE_KEYS = ("message", "msg", "event")
_SOURCES = {Kind.STDOUT: LOG_SOURCE_STDOUT, Kind.STDERR: LOG_SOURCE_STDERR}


class _Line:
    """The line that a stream is in the middle of."""

    __slots__ = ("length", "text", "time")

    def __init__(self) -> None:
        self.text = bytearray()
        self.length = 0
        self.time = 0.0

    def add(self, piece: bytes, time: float) -> None:
        if not self.length:
            self.time = time
        self.length += len(piece)
        self.text += piece[: max(0, _KEPT_BYTES - len(self.text))]

    def finish(self) -> str:
        """The line as a message, and a fresh start."""
        text = bytes(self.text).decode(errors="replace").removesuffix("\r")
        dropped = self.length - len(self.text)
        note = f" [{dropped} bytes of this line cut]" if dropped else ""
        self.text.clear()
        self.length = 0
        return cut(text, _KEPT_BYTES) + note


class LineReader:
    """Numbers the entries of one run."""

    def __init__(self) -> None:
        self._sequence = 0
        self._lines = {Kind.STDOUT: _Line(), Kind.STDERR: _Line()}

    def read(self, record: Record) -> Iterator[LogEntry]:
        """The entries that this record completes."""
        if record.kind == Kind.MESSAGE:
            yield from self._parse_message(record)
        elif record.kind == Kind.DROPPED:
            dropped = record.data.decode()
            yield self._notice(f"output limit reached: {dropped} bytes after this were dropped", record)
        elif record.kind == Kind.CUT:
            yield self._notice(_CUT, record)
        elif record.kind != Kind.RUN:
            yield from self._split(record)

    def finish(self) -> Iterator[LogEntry]:
        """The last lines, where no newline came."""
        for kind, line in self._lines.items():
            if line.length:
                time = line.time
                yield self._number(_parse_line(line.finish(), kind), time)

    def _notice(self, message: str, record: Record) -> LogEntry:
        entry = LogEntry(message=message, level=LOG_LEVEL_WARNING, source=LOG_SOURCE_RUNNER)
        return self._number(entry, record.time)

    def _split(self, record: Record) -> Iterator[LogEntry]:
        line = self._lines[record.kind]
        *complete, rest = record.data.split(b"\n")
        for piece in complete:
            line.add(piece, record.time)
            time = line.time or record.time
            yield self._number(_parse_line(line.finish(), record.kind), time)
        if rest:
            line.add(rest, record.time)

    def _parse_message(self, record: Record) -> Iterator[LogEntry]:
        try:
            fields = json.loads(record.data)
        except (ValueError, RecursionError):
            return
        yield self._number(_structured(fields, LOG_SOURCE_WORKLOAD), record.time)

    def _number(self, entry: LogEntry, time: float) -> LogEntry:
        self._sequence += 1
        entry.sequence = self._sequence
        entry.time.CopyFrom(timestamp(time))
        return entry


def count_entries(journal: Path) -> int:
    """How many entries a complete journal gives, without making them."""
    count = 0
    unfinished = {Kind.STDOUT: False, Kind.STDERR: False}
    for record in read_journal(journal):
        if record.kind in (Kind.DROPPED, Kind.CUT):
            count += 1
        elif record.kind == Kind.MESSAGE:
            count += _is_json(record.data)
        elif record.kind != Kind.RUN and record.data:
            count += record.data.count(b"\n")
            unfinished[record.kind] = not record.data.endswith(b"\n")
    return count + sum(unfinished.values())


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_line(text: str, kind: Kind) -> LogEntry:
    source = _SOURCES[kind]
    if text.startswith("{") and text.endswith("}"):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and _first(fields, _LEVEL_KEYS) and _first(fields, _MESSAGE_KEYS):
            return _structured(fields, source)
    return LogEntry(message=text, level=LOG_LEVEL_INFO, source=source)


def _structured(fields: dict[str, Any], source: Any) -> LogEntry:
    fields = dict(fields)
    entry = LogEntry(source=source, level=LOG_LEVEL_INFO)
    level = fields.pop(_first(fields, _LEVEL_KEYS), "info")
    entry.level = LEVELS.get(str(level).lower(), LOG_LEVEL_INFO)
    entry.message = cut(str(fields.pop(_first(fields, _MESSAGE_KEYS), "")), MAX_MESSAGE_BYTES)
    step = fields.get("step")
    if isinstance(step, int) and 0 <= step <= _MAX_INT32:
        entry.step = fields.pop("step")
    if isinstance(fields.get("action"), str):
        entry.action = cut(fields.pop("action"))[:256]
    details = fields.pop("details", None)
    rest = {**fields, **details} if isinstance(details, dict) else fields
    if rest:
        _fill(entry.details, rest)
    return entry


def _fill(details: Struct, values: dict[str, Any]) -> None:
    # Text of a workload may hold what neither protobuf nor the database takes; such details are left out.
    try:
        text = json.dumps(values)
        if len(text) <= _MAX_DETAILS_BYTES and "\\u0000" not in text and "\\ud8" not in text:
            details.update(values)
    except (ValueError, TypeError, RecursionError, UnicodeError):
        details.Clear()


def _first(fields: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((key for key in keys if isinstance(fields.get(key), str)), "")


def timestamp(seconds: float) -> Timestamp:
    """A wall-clock time on the wire."""
    made = Timestamp()
    set_time(made, seconds)
    return made


def set_time(message: Timestamp, seconds: float) -> None:
    """Set a timestamp to this wall-clock time."""
    whole = int(seconds)
    message.seconds = whole
    message.nanos = int((seconds - whole) * 1e9)
