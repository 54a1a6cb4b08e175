"""Long output on a terminal, shown by the user's pager."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterator

import click

from taskyard.cli import screen

# Colours as they are, no pager for what fits on one screen, and the text stays when it ends.
LESS = "FRX"


@contextlib.contextmanager
def paged() -> Iterator[None]:
    """Shows what is printed inside with TASKYARD_PAGER, else PAGER, else less; not on a pipe."""
    command = _command()
    if not command:
        yield
        return
    import subprocess

    environment = {"LESS": LESS, **os.environ}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    terminal, context = sys.stdout, click.get_current_context()
    context.color = screen.coloured()
    sys.stdout = io.TextIOWrapper(process.stdin, encoding="utf-8", write_through=True)
    try:
        with screen.piped_to_a_terminal(), contextlib.suppress(BrokenPipeError):
            # The reader may quit before the end.
            yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.close()
        sys.stdout = terminal
        while process.poll() is None:
            # Ctrl-C is a key of the pager.
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()


def _command() -> list[str]:
    named = os.environ.get("TASKYARD_PAGER", os.environ.get("PAGER") or "less")
    command = shlex.split(named)
    if not sys.stdout.isatty() or not command or command == ["cat"] or os.environ.get("TERM") == "dumb":
        return []
    return command if shutil.which(command[0]) else []
