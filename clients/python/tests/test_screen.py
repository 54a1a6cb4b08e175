"""What a terminal is shown of texts that others wrote: nothing in them steers it; a pipe gets them raw."""

from __future__ import annotations

import io
import sys

import pytest

from taskyard.cli import screen
from taskyard.cli.logs import print_entry
from taskyard.task import LogEntry
from taskyard.v1.log_pb2 import LOG_SOURCE_STDERR, LOG_SOURCE_STDOUT
from taskyard.v1.log_pb2 import LogEntry as Entry

# Sets the title, clears the screen, answers a question by typing, and reverses the order of letters.
HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202eb\tc"
ESCAPED = "a\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\r\\u202eb\tc"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal in the place of this process's output, from now to the end of the test."""
    shown = Screen()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return shown


@pytest.mark.parametrize("source", [LOG_SOURCE_STDOUT, LOG_SOURCE_STDERR])
def test_logs_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch, source: int) -> None:
    drawn = terminal(monkeypatch)
    print_entry(LogEntry(Entry(message=HOSTILE, source=source)))  # type: ignore[arg-type]
    assert drawn.getvalue() == f"{ESCAPED}\n"


def test_logs_are_raw_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_entry(LogEntry(Entry(message=HOSTILE, source=LOG_SOURCE_STDOUT)))
    assert capsys.readouterr().out == f"{HOSTILE}\n"


def test_names_and_labels_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = terminal(monkeypatch)
    table = screen.Table("NAME", "LABELS")
    table.add([["x", HOSTILE]])
    screen.print_fields([("labels", HOSTILE)])
    for line in screen.wrapped(HOSTILE):
        print(line)
    assert "\x1b" not in drawn.getvalue() and "\x9b" not in drawn.getvalue()
    assert drawn.getvalue().count("\\x1b]0;owned") == 3


def test_one_line_summaries_are_escaped_everywhere() -> None:
    assert screen.clean("a\x1b[2J\nb") == "a\\x1b[2J b"
