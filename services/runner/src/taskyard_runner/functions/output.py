"""Output of functions: each run has its own journal, like a command.

print, logging and ctx.log are attributed by the context variable of the run they happen in. The journal lies
in the run's directory and outlives host and agent.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import TextIO

from taskyard_runner.functions.context import BaseContext
from taskyard_runner.warden.journal import JournalWriter, Kind

# Output without a newline is kept back until there is this much of it.
_LINE_BYTES = 8192


class RunOutput:
    """The journal of one run and its unfinished lines."""

    def __init__(self, directory: str, limit: int, run: bytes) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._journal = JournalWriter(f"{directory}/journal", limit, run)
        self._partial = {Kind.STDOUT: "", Kind.STDERR: ""}

    def write(self, kind: Kind, text: str) -> bool:
        """Keep text; whether there is something new to read."""
        whole = self._partial[kind] + text
        end = whole.rfind("\n") + 1 if len(whole) < _LINE_BYTES else len(whole)
        self._partial[kind] = whole[end:]
        if end:
            self._journal.append(kind, whole[:end].encode(errors="replace"))
        return end > 0

    def append_message(self, message: dict[str, object]) -> None:
        """Keep an entry that has a level."""
        self._journal.append(Kind.MESSAGE, json.dumps(message).encode())

    def close(self) -> None:
        """Write the unfinished lines; nothing more follows."""
        for kind, text in self._partial.items():
            if text:
                self._journal.append(kind, text.encode(errors="replace"))
        self._journal.close()


class TaskStream:
    """Replaces sys.stdout or sys.stderr: output of a run goes to its journal, other output passes through."""

    def __init__(
        self,
        kind: Kind,
        original: TextIO,
        find: Callable[[], BaseContext | None],
        write: Callable[[BaseContext, Kind, str], None],
    ) -> None:
        self._kind = kind
        self._original = original
        self._find = find
        self._write = write

    def write(self, text: str) -> int:
        run = self._find()
        if run is None:
            return self._original.write(text)
        self._write(run, self._kind, text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)


class TaskHandler(logging.Handler):
    """Log records of a run, with their level; those of nobody go to standard error."""

    def __init__(self, find: Callable[[], BaseContext | None]) -> None:
        super().__init__()
        self._find = find

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            run = self._find()
            if run is None:
                print(text, file=sys.stderr)
            else:
                run.log(text, _level(record.levelno), logger=record.name)
        except Exception:  # as in every handler: a line that cannot be written must not fail the function
            self.handleError(record)


def _level(number: int) -> str:
    for bound, name in ((50, "critical"), (40, "error"), (30, "warning"), (20, "info")):
        if number >= bound:
            return name
    return "debug"
