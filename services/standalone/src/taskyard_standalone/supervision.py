"""Keeping a part of Taskyard alive: restart with growing delays, a bound on them, and an orderly end."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from taskyard_standalone.errors import Killed, ServiceError, StandaloneError
from taskyard_standalone.process import Child

Announce = Callable[[str], None]
T = TypeVar("T")


class Part(Protocol):
    """One supervised program: PostgreSQL or a service."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Returns once the part serves; raises StandaloneError if it cannot."""

    async def ended(self) -> str:
        """Returns, in words, how the part ended once it has."""

    def awaits(self) -> str:
        """What a stop that is under way waits for; empty if nothing is known."""

    async def stop(self, hurry: asyncio.Event) -> None:
        """Ends the part, gracefully until `hurry` is set."""


@dataclass
class RestartBudget:
    """How often a part may end within `window` seconds, each restart twice as late as the one before."""

    limit: int
    window: float = 60.0
    first_delay: float = 0.2
    _ends: list[float] = field(default_factory=list)

    def delay(self, now: float) -> float | None:
        """Records an exit at `now`; returns the delay before the restart, or None beyond the limit."""
        self._ends = [*(end for end in self._ends if end > now - self.window), now]
        if len(self._ends) > self.limit:
            return None
        return float(self.first_delay * 2 ** (len(self._ends) - 1))


async def keep_alive(part: Part, budget: RestartBudget, announce: Announce) -> None:
    """Restarts `part` whenever it ends; raises ServiceError when it ends too often."""
    while True:
        how: str | None = await part.ended()
        while how is not None:
            how = await _restart(part, how, budget, announce)


async def start(part: Part, budget: RestartBudget, announce: Announce) -> None:
    """Starts `part`, and restarts it if it is killed meanwhile; raises StandaloneError if that fails."""
    try:
        await part.start()
    except Killed as error:
        how: str | None = str(error)
        while how is not None:
            how = await _restart(part, how, budget, announce)


async def repeat_if_killed(work: Callable[[], Awaitable[T]], budget: RestartBudget) -> T:
    """Returns the result of `work`, which is repeated if its program was killed; raises its last error."""
    while True:
        try:
            return await work()
        except Killed:
            delay = budget.delay(time.monotonic())
            if delay is None:
                raise
            await asyncio.sleep(delay)


async def _restart(part: Part, how: str, budget: RestartBudget, announce: Announce) -> str | None:
    """Starts `part`, which ended as `how` says, once more; returns why that failed, or None."""
    delay = budget.delay(time.monotonic())
    if delay is None:
        raise ServiceError(f"{part.name} keeps ending, {budget.limit} restarts did not help: {how}")
    announce(f"{part.name} ended unexpectedly ({how}), starting it again in {delay:.1f} s")
    await asyncio.sleep(delay)
    try:
        await part.start()
    except StandaloneError as error:
        return str(error)
    announce(f"{part.name} is back")
    return None


async def wait_unless_hurried(child: Child, seconds: float, hurry: asyncio.Event) -> bool:
    """Whether `child` ended within `seconds` and before `hurry` was set."""
    hurried = asyncio.ensure_future(hurry.wait())
    ended = asyncio.ensure_future(child.wait())
    try:
        await asyncio.wait({hurried, ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (hurried, ended):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    return child.code is not None
