"""SIGTERM and SIGINT as events: the first asks for a drain, the second to stop now, a third kills."""

from __future__ import annotations

import asyncio
import signal

from taskyard_kit.logs import get_log

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

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
