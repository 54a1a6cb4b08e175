"""Stop requests: the first signal requests an orderly stop, the second a fast one."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


class StopRequests:
    """Counts the signals of this process, from `install` on."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.hurry = asyncio.Event()

    def install(self) -> None:
        """Must be called on the main thread, inside the event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.request)
        # Started with nohup, it outlives its terminal.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self.request)

    def request(self) -> None:
        """Requests an orderly stop, or a fast one if an orderly stop was already requested."""
        (self.hurry if self.wanted.is_set() else self.wanted).set()

    async def unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Runs `work`, or cancels it when a stop is wanted; answers whether it came to its end."""
        task = asyncio.ensure_future(work)
        wanted = asyncio.ensure_future(self.wanted.wait())
        try:
            await asyncio.wait({task, wanted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wanted.cancel()
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(outcome, asyncio.CancelledError):
            return False
        if isinstance(outcome, BaseException):
            raise outcome
        return True
