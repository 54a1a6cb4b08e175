"""The loop of housekeeping: each sweep of the leader in its own time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.sweep.leader_election import Leadership

logger = logging.getLogger(__name__)

# After a failure, and so that a sweep that is always due leaves time for others.
RETRY_SECONDS = 1.0
SHORTEST_SECONDS = 0.02
# After this time without a commit sweeps look less often; the next commit brings them back.
ACTIVE_SECONDS = 10.0
QUIET_POLL_SECONDS = 20.0


class Sweep(Protocol):
    """One kind of housekeeping."""

    name: str
    # How often it looks, in seconds, while it knows of nothing to do; less often while nothing happens.
    poll: float

    async def run(self, leadership: Leadership) -> float:
        """Do what is due; returns in how many seconds more is known to be. May raise LeadershipLost."""
        ...


@dataclass(slots=True)
class _Job:
    sweep: Sweep
    due: float = 0.0
    ran: float = 0.0


class Sweeper:
    """Runs sweeps while the leadership is held."""

    def __init__(self, leadership: Leadership, sweeps: Sequence[Sweep]) -> None:
        self._leadership = leadership
        self._jobs = [_Job(sweep) for sweep in sweeps]
        self._woken = asyncio.Event()
        self._last_commit = time.monotonic()

    def notify_commit(self) -> None:
        """Say that something was committed: whoever rests is as late as otherwise, not more."""
        quiet, self._last_commit = self._is_quiet(), time.monotonic()
        if quiet:
            for job in self._jobs:
                job.due = min(job.due, job.ran + job.sweep.poll)
            self._woken.set()

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._last_commit >= ACTIVE_SECONDS

    def wake(self, name: str) -> None:
        """Run a sweep as soon as possible, because it has something to do."""
        for job in self._jobs:
            if job.sweep.name == name:
                job.due = 0.0
        self._woken.set()

    async def run(self) -> None:
        """Sweep until cancelled; the leadership is kept by somebody else."""
        while True:
            if self._leadership.held:
                await self.sweep_due()
            await self._sleep()

    async def sweep_due(self) -> None:
        """Run each sweep whose time has come, once."""
        for job in self._jobs:
            if job.due <= time.monotonic() and self._leadership.held:
                wait = await self._run(job.sweep)
                poll = max(job.sweep.poll, QUIET_POLL_SECONDS) if self._is_quiet() else job.sweep.poll
                job.ran = time.monotonic()
                job.due = job.ran + max(SHORTEST_SECONDS, min(wait, poll))

    async def _run(self, sweep: Sweep) -> float:
        try:
            return await sweep.run(self._leadership)
        except LeadershipLost as error:
            logger.info("sweep %s ended: %s", sweep.name, error)
        except TaskyardError as error:
            logger.warning("sweep %s is put off: %s", sweep.name, error)
        except Exception:
            # One sweep's failure must not stop the others, nor itself for good.
            logger.exception("sweep %s failed", sweep.name)
        return RETRY_SECONDS

    async def _sleep(self) -> None:
        """Until a sweep is due, is woken, or the leadership changes hands."""
        if self._leadership.held:
            wait = max(0.0, min(job.due for job in self._jobs) - time.monotonic())
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
    """Do something every few seconds until cancelled; a failure is logged and does not end it."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except TaskyardError as error:
            logger.warning("%s is put off: %s", work.__name__, error)
        except Exception:
            logger.exception("%s failed", work.__name__)
