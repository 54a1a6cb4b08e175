"""The calls that a drain or a revoked key has to end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taskyard.errors import ServerDraining, TaskyardError


@dataclass(slots=True)
class _Open:
    """One open call: its authorization header, None if it needed none, and the error that ended it."""

    header: str | None
    error: TaskyardError | None = None


class Streams:
    """The open long-lived calls, streams and waits; a drain or a revoked key ends them."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Task[Any], _Open] = {}
        self.ended = False

    def __len__(self) -> int:
        return len(self._open)

    def headers(self) -> set[str]:
        """The authorization headers of the open calls."""
        return {call.header for call in self._open.values() if call.header is not None}

    def enter(self, header: str | None) -> asyncio.Task[Any]:
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        self._open[task] = _Open(header)
        return task

    def leave(self, task: asyncio.Task[Any]) -> TaskyardError | None:
        """Removes a call; returns the error if `end` or `end_all` ended it."""
        call = self._open.pop(task, None)
        return None if call is None else call.error

    def end(self, header: str, error: TaskyardError) -> None:
        """Cancel the calls with this header; their callers get the error."""
        self._end([task for task, call in self._open.items() if call.header == header], error)

    def end_all(self) -> None:
        """Cancel every open call; the callers get SERVER_DRAINING."""
        self.ended = True
        self._end(list(self._open), ServerDraining())

    def _end(self, tasks: Sequence[asyncio.Task[Any]], error: TaskyardError) -> None:
        for task in tasks:
            self._open[task].error = error
            task.cancel()
