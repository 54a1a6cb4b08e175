"""The warden's own log lines, in the form of kit's, which would bring more than the standard library."""

from __future__ import annotations

import contextlib
import json
import sys
from datetime import UTC, datetime
from typing import Any, Protocol

_LEVELS = ("debug", "info", "warning", "error")


class LogEvent(Protocol):
    """Logs an event with its fields."""

    def __call__(self, event: str, level: str = "info", **fields: Any) -> None: ...


def make_log(format: str, least: str) -> LogEvent:
    """A function that logs to stderr: one JSON object or one readable line per event."""
    readable = format == "console" or (format == "auto" and sys.stderr.isatty())

    def log(event: str, level: str = "info", **fields: Any) -> None:
        if _LEVELS.index(level) < _LEVELS.index(least):
            return
        now = datetime.now(UTC)
        if readable:
            time = now.astimezone().strftime("%H:%M:%S.%f")[:-3]
            pairs = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())
            line = f"{time} {level[:4]:<4} {event} {pairs}".rstrip()
        else:
            head = {"time": now.isoformat(timespec="milliseconds"), "level": level, "service": "runner"}
            line = json.dumps({**head, "logger": __package__, "event": event, **fields}, default=str)
        with contextlib.suppress(OSError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    return log
