"""Structured logs: an event is a constant name plus fields, one JSON object or one readable line each."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal, TextIO

from taskyard import tracing
from taskyard.errors import StorageUnavailable

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_bound: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default=MappingProxyType({}))


class Log:
    """A logger of one module: `log.info("task_created", tenant=..., task=...)`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **fields: Any) -> None:
        self._emit(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._emit(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._emit(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._emit(logging.ERROR, event, fields)

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """A warning with an error, for work that is repeated later.

        A database that is unavailable fails all work at once and is logged by its owner, so here it is a
        debug event.
        """
        level = logging.DEBUG if isinstance(error, StorageUnavailable) else logging.WARNING
        self._emit(level, event, {**fields, "error": str(error)})

    def exception(self, event: str, **fields: Any) -> None:
        """An error with the exception that is being handled."""
        self._emit(logging.ERROR, event, fields, exc_info=True)

    def _emit(self, level: int, event: str, fields: dict[str, Any], *, exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            merged = {**_bound.get(), **fields}
            self._logger.log(level, event, extra={"fields": merged}, exc_info=exc_info)


def get_log(name: str) -> Log:
    """The log of a module, `get_log(__name__)`."""
    return Log(name)


@contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Every event inside carries these fields as well."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def configure(
    service: str, *, format: Format = "auto", level: Level = "info", stream: TextIO | None = None
) -> None:
    """Send all logging of this process to `stream` (stderr), as text lines if that is a terminal."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    readable = format == "console" or (format == "auto" and out.isatty())
    handler.setFormatter(_ConsoleFormatter() if readable else _JsonFormatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


# What every record has; anything else is a field, whichever logger it came through.
_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"fields", "message", "asctime"}


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    extra = {name: value for name, value in record.__dict__.items() if name not in _RECORD}
    return {**extra, **getattr(record, "fields", {})}


class _JsonFormatter(logging.Formatter):
    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in _fields_of(record).items():
            line[f"{name}_" if name in line else name] = value
        if traceparent := tracing.current_traceparent():
            line["trace_id"] = traceparent.split("-")[1]
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, default=str, ensure_ascii=False)


class _ConsoleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={_quote(value)}" for name, value in _fields_of(record).items())
        line = f"{time} {record.levelname[:4].lower():<4} {record.getMessage()} {fields}".rstrip()
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return line


def _quote(value: Any) -> str:
    text = str(value)
    return text if text and text.isprintable() and " " not in text else json.dumps(text, ensure_ascii=False)
