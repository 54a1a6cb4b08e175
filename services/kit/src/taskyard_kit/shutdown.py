"""Shutdown of a process: signals as events (drain, stop now), and cancellation of background tasks."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from typing import Any

from taskyard_kit.logs import get_log

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Seconds for a cancelled task to clean up before it is cancelled again.
_CANCEL_SECONDS = 3.0

log = get_log(__name__)


class Shutdown:
    """The shutdown events of a process. Create it inside the running event loop."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.now = asyncio.Event()

    def install(self) -> None:
        """Handle the signals of this process."""
        loop = asyncio.get_running_loop()
        for signum in _SIGNALS:
            loop.add_signal_handler(signum, self._receive, signum)

    def uninstall(self) -> None:
        """Restore the default signal handlers."""
        loop = asyncio.get_running_loop()
        for signum in _SIGNALS:
            loop.remove_signal_handler(signum)

    def request(self) -> None:
        """Acts like the first signal; a second call acts like the second signal."""
        if self.requested.is_set():
            self.now.set()
        self.requested.set()

    def _receive(self, signum: signal.Signals) -> None:
        second = self.requested.is_set()
        log.info("signal_received", signal=signum.name, effect="stop_now" if second else "drain")
        self.request()
        if second:
            self.uninstall()


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel background tasks until all have ended; their exceptions are dropped.

    Once is not always enough: a library may lose a cancellation that races with the end of its wait.
    """
    every = list(tasks)
    left = {task for task in every if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCEL_SECONDS)
    await asyncio.gather(*every, return_exceptions=True)
