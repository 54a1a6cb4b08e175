"""Background tasks of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from taskyard_kit.logs import get_log

log = get_log(__name__)


class BackgroundTasks:
    """Keeps running tasks referenced and logs their exceptions."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("run_task_failed", error=repr(error))
