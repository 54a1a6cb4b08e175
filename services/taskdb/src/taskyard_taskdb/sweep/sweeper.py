"""The housekeeping loop: runs each sweep of the leader when it is due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.sweep.leader_election import Leadership

log = get_log(__name__)

# The wait after a failure, the wait of a sweep that is always due, and the least wait for a time.
RETRY_SECONDS = 1.0
MIN_WAIT_SECONDS = 0.02
LEAST_SLEEP_SECONDS = 0.001
# After this time without a commit sweeps poll less often; the next commit restores their own interval.
ACTIVE_SECONDS = 10.0
QUIET_POLL_SECONDS = 20.0


class Sweep(Protocol):
    """One kind of housekeeping."""

    name: str
    # The poll interval in seconds while nothing is due; longer while nothing is committed.
    poll: float

    async def run(self, leadership: Leadership) -> float:
        """Process what is due; returns the seconds until more is due. May raise LeadershipLost."""
        ...


@dataclass(slots=True)
class _Scheduled:
    sweep: Sweep
    due: float = 0.0
    ran: float = 0.0


class Sweeper:
    """Runs sweeps while this replica leads."""

    def __init__(self, leadership: Leadership, sweeps: Sequence[Sweep]) -> None:
        self._leadership = leadership
        self._scheduled = [_Scheduled(sweep) for sweep in sweeps]
        self._woken = asyncio.Event()
        self._last_commit = time.monotonic()

    def notify_commit(self) -> None:
        """Record a commit; sweeps that poll less often return to their own interval."""
        quiet, self._last_commit = self._is_quiet(), time.monotonic()
        if quiet:
            for entry in self._scheduled:
                entry.due = min(entry.due, entry.ran + entry.sweep.poll)
            self._woken.set()

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._last_commit >= ACTIVE_SECONDS

    def wake(self, name: str) -> None:
        """Run a sweep as soon as possible."""
        for entry in self._scheduled:
            if entry.sweep.name == name:
                entry.due = 0.0
        self._woken.set()

    async def run(self) -> None:
        """Sweep until cancelled; Leadership.run renews the leadership meanwhile."""
        while True:
            if self._leadership.held:
                await self.sweep_due()
            await self._sleep()

    async def sweep_due(self) -> None:
        """Run each sweep that is due, once."""
        for entry in self._scheduled:
            if entry.due <= time.monotonic() and self._leadership.held:
                wait = await self._run(entry.sweep)
                poll = max(entry.sweep.poll, QUIET_POLL_SECONDS) if self._is_quiet() else entry.sweep.poll
                entry.ran = time.monotonic()
                # One that is due at a time comes back at that time: a rate limit loses what it is late.
                least = LEAST_SLEEP_SECONDS if wait > 0 else MIN_WAIT_SECONDS
                entry.due = entry.ran + max(least, min(wait, poll))

    async def _run(self, sweep: Sweep) -> float:
        try:
            return await sweep.run(self._leadership)
        except LeadershipLost as error:
            log.info("sweep_ended", sweep=sweep.name, error=str(error))
        except TaskyardError as error:
            log.failure("sweep_postponed", error, sweep=sweep.name)
        except Exception:
            # A failure stops neither the other sweeps nor the next run of this one.
            log.exception("sweep_failed", sweep=sweep.name)
        return RETRY_SECONDS

    async def _sleep(self) -> None:
        """Sleep until a sweep is due or woken, or the leadership changes."""
        if self._leadership.held:
            wait = max(0.0, min(entry.due for entry in self._scheduled) - time.monotonic())
        else:
            wait = RETRY_SECONDS
        waiters = [asyncio.ensure_future(event.wait()) for event in (self._woken, self._leadership.changed)]
        try:
            await asyncio.wait(waiters, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()
        self._woken.clear()
        self._leadership.changed.clear()


async def repeat(work: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Call `work` every few seconds until cancelled; a failure is logged and does not end the loop."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except TaskyardError as error:
            log.failure("work_postponed", error, work=work.__name__)
        except Exception:
            log.exception("work_failed", work=work.__name__)


async def keep_running(
    name: str,
    loop: Callable[[], Awaitable[object]],
    on_failure: Callable[[str, str], Awaitable[object]],
    pause: float = RETRY_SECONDS,
) -> None:
    """Run a loop until cancelled; when it ends, log and record the reason, and restart it after a pause."""
    while True:
        try:
            await loop()
            reason = "it returned"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            log.exception("loop_failed", loop=name, effect="restarted")
        else:
            log.error("loop_returned", loop=name, effect="restarted")
        try:
            await on_failure(name, reason)
        except Exception as error:
            log.failure("loop_failure_not_recorded", error, loop=name)
        await asyncio.sleep(pause)
