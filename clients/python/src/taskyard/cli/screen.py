"""What commands print: aligned tables, human times, colours on a terminal only, JSON for programs."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TextIO
from unicodedata import combining, east_asian_width

import click

from taskyard.task import Phase

if TYPE_CHECKING:
    from taskyard.task import Task

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


# Standard output is a pipe to a pager that shows it on the terminal.
_paging = False


@contextlib.contextmanager
def piped_to_a_terminal() -> Iterator[None]:
    """Inside, standard output counts as a terminal."""
    global _paging
    _paging = True
    try:
        yield
    finally:
        _paging = False


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return _paging or sys.stdout.isatty()


def coloured() -> bool:
    """Whether to use colours: on a terminal, or always with FORCE_COLOR, but never with NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced != "0" if forced else on_terminal()


def clean(text: str) -> str:
    """Untrusted text on one line, with terminal control characters escaped."""
    return _escape(text.replace("\n", " ").replace("\t", " "))


def shown(text: str, stream: TextIO | None = None) -> str:
    """Untrusted text: unchanged for a pipe, with control characters escaped for a terminal."""
    terminal = on_terminal() if stream is None else stream.isatty()
    return _escape(text) if terminal else text


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
    """Aligned columns, printed row by row; the first rows set the widths, a phase gets its colour.

    On a terminal no line is wider than it: long cells are cut, and where not even the titles fit, each row is
    printed as lines of names and values.
    """

    def __init__(self, *titles: str) -> None:
        self._titles = titles
        self._widths: list[int] = []
        self._room = 0
        self.count = 0

    def add(self, rows: Iterable[Sequence[str]]) -> None:
        """Prints rows, after the titles if they are the first."""
        cells = [[shown(cell) for cell in row] for row in rows]
        if cells and not self.count:
            self._room = shutil.get_terminal_size().columns if on_terminal() else 0
            self._widths = fit(self._titles, cells, self._room)
            if self._widths:
                click.echo(dim(_row(self._titles, self._widths)))
        for row in cells:
            if self._widths:
                click.echo(_row(row, self._widths, cut=bool(self._room), painted=True))
            else:
                _print_record(self._titles, row, first=not self.count)
            self.count += 1


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[str]], room: int) -> list[str]:
    """The lines of a complete table, none wider than `room`; columns that do not fit are left out."""
    cells = [[shown(cell) for cell in row] for row in rows]
    while not (widths := fit(titles, cells, room)):
        titles, cells = titles[:-1], [row[:-1] for row in cells]
    return [dim(_row(titles, widths)), *(_row(row, widths, cut=True, painted=True) for row in cells)]


def fit(titles: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The widths of columns that fit into `room`, 0 for any; empty if not even the titles fit.

    The widest columns are cut first, and the first one, which names the row, last.
    """
    widths = [max(map(width, column)) for column in zip(titles, *rows, strict=True)]
    least = [width(title) for title in titles]
    excess = sum(widths) + 2 * (len(widths) - 1) - room if room else 0
    for columns in (range(1, len(widths)), range(1)):
        while excess > 0 and (wide := [n for n in columns if widths[n] > least[n]]):
            widest = max(wide, key=lambda n: widths[n])
            widths[widest] -= 1
            excess -= 1
    return [] if excess > 0 else widths


def _print_record(titles: Sequence[str], row: Sequence[str], *, first: bool) -> None:
    if not first:
        click.echo()
    print_fields([(title.lower(), cell or "-") for title, cell in zip(titles, row, strict=True)])


def _row(cells: Sequence[str], widths: Sequence[int], *, cut: bool = False, painted: bool = False) -> str:
    line = []
    for cell, wide in zip(cells, widths, strict=True):
        text = _cut(cell, wide) if cut else cell
        text += " " * (wide - width(text))
        line.append(paint(text, cell) if painted else text)
    return "  ".join(line).rstrip()


def _cut(text: str, room: int) -> str:
    """The text, cut to at most `room` columns of a terminal."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…"


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
    if not on_terminal():
        return [text]
    room = max(20, shutil.get_terminal_size().columns - indent)
    return textwrap.wrap(shown(text), room, break_long_words=False, break_on_hyphens=False)


def plural(count: int, noun: str) -> str:
    """The count with its noun: 1 task, 2 tasks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten(text: str, length: int) -> str:
    """The text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
