"""The end of a process: signals as events (drain, stop now, die), and background tasks brought to theirs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from typing import Any

from taskyard_kit.logs import get_log

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Seconds for a cancelled task to tidy up.
_CANCEL_SECONDS = 3.0

log = get_log(__name__)


class Shutdown:
    """What a process waits for while it works. Make it inside the running event loop."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.now = asyncio.Event()

    def install(self) -> None:
        """Handle the signals of this process."""
        loop = asyncio.get_running_loop()
        for signum in _SIGNALS:
            loop.add_signal_handler(signum, self._receive, signum)

    def uninstall(self) -> None:
        """Give the signals their default effect back."""
        loop = asyncio.get_running_loop()
        for signum in _SIGNALS:
            loop.remove_signal_handler(signum)

    def request(self) -> None:
        """As the first signal does; again, as the second."""
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
    """Cancel background tasks until all have ended; what they raise is dropped.

    Once is not always enough: a library may lose a cancellation that meets the end of what it waits for.
    """
    every = list(tasks)
    left = {task for task in every if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCEL_SECONDS)
    await asyncio.gather(*every, return_exceptions=True)
