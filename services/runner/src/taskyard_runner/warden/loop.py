"""The warden's event loop: descriptors, timers on the boot clock, signals; one thread, no polling."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable

from taskyard_runner.warden.linux import Alarm, boottime

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
_FAILURE_PAUSE = 0.01


class Timer:
    """A call that is due at a time; cancel() forgets it."""

    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Loop:
    """Calls the registered handlers until stop(). An exception of a handler is passed to `failed`."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._selector = selectors.EpollSelector()
        self._alarm = Alarm()
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._running = False
        self.watch(self._alarm.fileno(), self._alarm.clear)

    def watch(self, fd: int, action: Callable[[], None], events: int = READ) -> None:
        """Call `action` whenever the descriptor is ready; a second call changes the first."""
        try:
            self._selector.modify(fd, events, action)
        except KeyError:
            self._selector.register(fd, events, action)

    def unwatch(self, fd: int) -> None:
        """Forget a descriptor; to be called before it is closed."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(fd)

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` once at this boot time."""
        timer = Timer(when, action)
        heapq.heappush(self._timers, (when, next(self._count), timer))
        return timer

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once, this much later."""
        return self.at(boottime() + seconds, action)

    def on_signals(self, numbers: Iterable[signal.Signals], action: Callable[[int], None]) -> None:
        """Call `action` inside the loop for each of these signals."""
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)

        def take() -> None:
            with contextlib.suppress(BlockingIOError):
                for number in sorted(set(os.read(read_end, 4096))):
                    action(number)

        self.watch(read_end, take)

    def run(self) -> None:
        """Serve until stop() is called."""
        self._running = True
        while self._running:
            self._alarm.set(self._next_due())
            for key, _ in self._selector.select():
                # An earlier call of this round may have forgotten the descriptor.
                current = self._selector.get_map().get(key.fd)
                if current is not None:
                    self._call(current.data)
            self._fire()

    def stop(self) -> None:
        self._running = False

    def _next_due(self) -> float | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _fire(self) -> None:
        now = boottime()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.action is not None:
                self._call(timer.action)

    def _call(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self._failed(error)
            # A descriptor that stays ready and a call that keeps failing must not take the whole processor.
            time.sleep(_FAILURE_PAUSE)
