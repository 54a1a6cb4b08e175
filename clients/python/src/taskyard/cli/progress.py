"""Progress bars on standard error, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import click

# Below this a bar would only flicker.
WORTH_SHOWING = 20


class Bar:
    """Counts up to `total`, which may be unknown; a context manager that shows nothing without a terminal."""

    def __init__(self, title: str, total: int | None = None, *, worth: int = WORTH_SHOWING) -> None:
        self._title = title
        self._total = total
        self._shown = sys.stderr.isatty() and (total is None or total >= worth)
        self._bar: Any = None
        self._row: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            self._bar = _new_progress()
            self._row = self._bar.add_task(self._title, total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def echo(self, lines: Iterable[str]) -> None:
        """Prints lines to standard output; on a terminal above the bar.

        Lines are printed together because each call redraws the bar, which takes longer than the server needs
        for a task.
        """
        text = "".join(f"{line}\n" for line in lines)
        if text and self._bar is not None and sys.stdout.isatty():
            _print_above(self._bar.console, text)
        else:
            click.echo(text, nl=False)

    def reached(self, count: int) -> None:
        """Sets the number of finished items."""
        if self._bar is not None:
            self._bar.update(self._row, completed=count)

    def advance(self, count: int = 1) -> None:
        """Adds to the number of finished items."""
        if self._bar is not None:
            self._bar.advance(self._row, count)


def _print_above(console: Any, text: str) -> None:
    from rich.segment import Segment, Segments

    # Unchanged: neither wrapped nor cut, with its own colours.
    console.print(Segments([Segment(text)]), end="", soft_wrap=True)


def _new_progress() -> Any:
    # Loaded here: most commands never show a bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        # Standard output must not be redirected, because it may be a pipe.
        redirect_stdout=False,
        redirect_stderr=False,
    )
