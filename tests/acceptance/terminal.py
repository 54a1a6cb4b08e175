"""A command on a real terminal: what it draws, and what happens when keys are pressed or it closes."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.suite import BIN, client_environment

WAIT_SECONDS = 180.0


class Terminal:
    """The far side of a pseudo-terminal on which `taskyard` runs."""

    def __init__(
        self,
        cwd: Path,
        words: tuple[str | Path, ...],
        columns: int,
        rows: int,
        environment: dict[str, str],
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            words,
            cwd=cwd,
            env={**client_environment(), "TERM": "xterm-256color", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._drawn: list[str] = []
        # A read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def text(self) -> str:
        """Everything drawn so far."""
        return "".join(self._drawn)

    def read_until(self, wanted: str) -> str:
        """Everything drawn so far, once `wanted` is part of it."""
        ends = time.monotonic() + WAIT_SECONDS
        while wanted not in self.text:
            assert time.monotonic() < ends and self._read(), f"{wanted!r} was not drawn:\n{self.text}"
        return self.text

    def read_all(self) -> str:
        """Everything that is drawn until the program ends."""
        while self._read():
            pass
        self.process.wait(WAIT_SECONDS)
        return self.text

    def press(self, keys: str) -> None:
        """Types these keys."""
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Closes the terminal under the program."""
        os.close(self._master)
        self._master = -1

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 1.0)
        if not ready:
            return self.process.poll() is None
        # A terminal whose last user is gone answers with an error, not with an end.
        with contextlib.suppress(OSError):
            got = os.read(self._master, 65536)
            self._drawn.append(self._decoder.decode(got))
            return bool(got)
        return False

    def close(self) -> None:
        """Ends the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)


@contextmanager
def on_terminal(
    cwd: Path, *arguments: str, columns: int = 100, rows: int = 30, **environment: str
) -> Iterator[Terminal]:
    """`taskyard` with these arguments and variables on a terminal of this size."""
    with program_on_terminal(
        cwd, BIN / "taskyard", *arguments, columns=columns, rows=rows, **environment
    ) as terminal:
        yield terminal


@contextmanager
def program_on_terminal(
    cwd: Path, *words: str | Path, columns: int = 100, rows: int = 30, **environment: str
) -> Iterator[Terminal]:
    """A program with its arguments on a terminal of this size."""
    terminal = Terminal(cwd, words, columns, rows, environment)
    try:
        yield terminal
    finally:
        terminal.close()
