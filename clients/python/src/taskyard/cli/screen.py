"""What commands print: aligned tables, human times, colours on a terminal only, JSON for programs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO
from unicodedata import combining, east_asian_width

import click
from google.protobuf.json_format import MessageToDict, MessageToJson
from google.protobuf.message import Message

from taskyard.task import Phase, Task

_COLOURS = {
    "SUCCEEDED": "green",
    "FAILED": "red",
    "EXHAUSTED": "red",
    "TIMED_OUT": "red",
    "LOST": "red",
    "CANCELLED": "bright_black",
    "RUNNING": "cyan",
    "SCHEDULED": "cyan",
    "PENDING": "yellow",
    "PAUSED": "magenta",
    "REDISTRIBUTING": "yellow",
    "serving": "green",
    "not reachable": "red",
    "not serving": "red",
    "stopped": "bright_black",
    "healthy": "green",
    "draining": "yellow",
    "drained": "yellow",
    "dead": "red",
    "ok": "green",
    "notice": "yellow",
    "warning": "yellow",
    "error": "red",
    "in force": "green",
    "expired": "bright_black",
    "revoked": "bright_black",
    "suspended": "red",
    "paused": "magenta",
    "disabled": "bright_black",
    "open": "green",
    "closed": "red",
    "could take it": "green",
    "created": "green",
    "changed": "yellow",
    "unchanged": "bright_black",
}
# What steers a terminal or turns the order of letters around; a tab and the end of a line do neither.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def coloured() -> bool:
    """Whether standard output is a terminal and NO_COLOR is not set."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def clean(text: str) -> str:
    """Untrusted text on one line, with terminal control characters escaped."""
    return _escape(text.replace("\n", " ").replace("\t", " "))


def shown(text: str, stream: TextIO | None = None) -> str:
    """Untrusted text: unchanged for a pipe, with control characters escaped for a terminal."""
    return _escape(text) if (stream or sys.stdout).isatty() else text


def _escape(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def paint(text: str, word: str) -> str:
    """The text in the colour of a phase or a state, if colours are wanted."""
    colour = _COLOURS.get(word)
    return click.style(text, fg=colour) if colour and coloured() else text


def dim(text: str) -> str:
    """Dimmed text."""
    return click.style(text, dim=True) if coloured() else text


class Table:
    """Aligned columns, printed row by row; the first rows set the widths, a phase gets its colour."""

    def __init__(self, *titles: str) -> None:
        self._titles = titles
        self._widths: list[int] = []
        self.count = 0

    def add(self, rows: Iterable[Sequence[str]]) -> None:
        """Prints rows, after the titles if they are the first."""
        cells = [[shown(cell) for cell in row] for row in rows]
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        if cells and not self._widths:
            self._widths = [max(map(width, column)) for column in zip(self._titles, *cells, strict=True)]
            click.echo(dim(_row(self._titles, self._widths, room)))
        for row in cells:
            click.echo(_row(row, self._widths, room, painted=True))
        self.count += len(cells)


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[str]], room: int) -> list[str]:
    """The lines of a complete table, none wider than `room`."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(titles, *cells, strict=True)]
    return [dim(_row(titles, widths, room)), *(_row(row, widths, room, painted=True) for row in cells)]


def _row(cells: Sequence[str], widths: Sequence[int], room: int, *, painted: bool = False) -> str:
    line, used = [], 0
    for cell, wide in zip(cells, widths, strict=True):
        text = cell + " " * (wide - width(cell))
        # A row that is wider than the terminal is cut, never wrapped.
        if room and used + width(text.rstrip()) > room:
            text = text[: max(0, room - used - 1)] + "…"
        line.append(paint(text, cell) if painted else text)
        used += width(text) + 2
        if room and used > room:
            break
    return "  ".join(line).rstrip()


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Prints names and values below each other, leaving out what has no value."""
    given = [(name, value) for name, value in fields if value]
    widest = max(len(name) for name, _ in given)
    for name, value in given:
        click.echo(f"{dim(name.ljust(widest))}  {paint(shown(value), value)}")


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def print_message(message: Message, form: str) -> None:
    """Prints a message for programs: as JSON, or as YAML."""
    if form == "json":
        click.echo(MessageToJson(message))
    else:
        click.echo(yaml_text(MessageToDict(message)), nl=False)


def yaml_text(value: Any) -> str:
    """A plain value as a YAML document."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, explicit_start=True))


def json_line(message: Message) -> str:
    """A message as JSON on one line."""
    return MessageToJson(message, indent=None)


class YamlDocuments:
    """Messages as YAML documents, printed one by one."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next documents."""
        for message in messages:
            click.echo(yaml_text(MessageToDict(message)), nl=False)
            self.count += 1

    def close(self) -> None:
        """No-op: YAML documents need no terminator."""


def for_programs(form: str) -> JsonArray | YamlDocuments | None:
    """The printer for JSON or YAML output; None for output for people."""
    return JsonArray() if form == "json" else YamlDocuments() if form == "yaml" else None


class JsonArray:
    """A JSON array of messages, printed one by one, so that a long list is not kept in memory."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next elements."""
        for message in messages:
            click.echo(("," if self.count else "[") + "\n " + json_line(message), nl=False)
            self.count += 1

    def close(self) -> None:
        """Prints the end."""
        click.echo("\n]" if self.count else "[]")


def format_time(time: datetime | None, exact: bool) -> str:
    """A time: how long ago, or exactly."""
    if time is None:
        return ""
    if exact:
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    ago = datetime.now(UTC) - time
    return f"in {span(-ago)}" if ago < timedelta(seconds=-1) else f"{span(max(ago, timedelta()))} ago"


def span(length: timedelta | None) -> str:
    """A duration in its two largest units, as 850ms, 12s, 3m05s, 4h10m or 2d3h."""
    if length is None:
        return ""
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes}m{int(seconds % 60):02d}s"
    hours = minutes // 60
    return f"{hours}h{minutes % 60:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24}h"


def duration_of(task: Task) -> timedelta | None:
    """How long the current or last attempt has taken."""
    if task.start_time is None or task.phase in (Phase.PENDING, Phase.SCHEDULED):
        return None
    return (task.end_time or datetime.now(UTC)) - task.start_time


def describe_execution(task: Task) -> str:
    """A short description of what a task executes."""
    spec = task.proto.spec
    execution = spec.execution
    match execution.WhichOneof("kind"):
        case "command":
            return clean(shlex.join([execution.command.program, *execution.command.args]))
        case "script":
            return f"{_interpreter(task)} script"
        case "container":
            return clean(shlex.join(["container", execution.container.image, *execution.container.args]))
        case "wasm":
            return clean(shlex.join(["wasm", execution.wasm.path or "(inline)", *execution.wasm.args]))
        case "function":
            return f"function {execution.function.function or spec.task_type}"
        case kind:
            return kind or spec.task_type


def _interpreter(task: Task) -> str:
    from taskyard.v1.task_pb2 import Interpreter

    script = task.proto.spec.execution.script
    named = Interpreter.Name(script.interpreter).removeprefix("INTERPRETER_").lower()
    return script.custom_program if named == "custom" else named


def wrapped(text: str, indent: int = 0) -> list[str]:
    """The text as lines that fit beside the indent on the terminal; as one line where there is none."""
    if not sys.stdout.isatty():
        return [text]
    room = max(20, shutil.get_terminal_size().columns - indent)
    return textwrap.wrap(shown(text), room, break_long_words=False, break_on_hyphens=False)


def plural(count: int, noun: str) -> str:
    """The count with its noun: 1 task, 2 tasks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten(text: str, length: int) -> str:
    """The text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
