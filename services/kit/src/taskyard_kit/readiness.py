"""Readiness: a service serves while it can do its work, which a check decides every few seconds.

It is separate from liveness: a process that cannot serve must not be restarted for that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from taskyard_kit.logs import get_log

log = get_log(__name__)

# A change is reported after two checks in a row, 2 to 4 s after it happened: a short interruption, such as a
# restart of the database, moves no client to another replica.
CHECK_SECONDS = 2.0
RECHECK_SECONDS = 1.0
# While a service starts, so that it serves as soon as it can.
START_SECONDS = 0.1
STEPS = 2

Check = Callable[[], Awaitable[str]]
"""What keeps the service from its work, in one sentence; empty if nothing does."""


class Readiness:
    """Calls `set_health` when what `check` returns has changed for good.

    The first check decides at once, and so does the first one that finds no problem.
    """

    def __init__(self, check: Check, set_health: Callable[[bool], Awaitable[None]]) -> None:
        self._check = check
        self._set_health = set_health
        self._contrary = 0
        self._started = False
        self._since = time.monotonic()
        self.serving: bool | None = None
        self.problem = ""

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            steady = await self.step()
            if not self._started:
                await asyncio.sleep(START_SECONDS)
            else:
                await asyncio.sleep(CHECK_SECONDS if steady and self.serving else RECHECK_SECONDS)

    async def step(self) -> bool:
        """Check once; returns whether the result is the state in force."""
        problem = await self._check()
        serving = not problem
        self.problem = problem
        if serving is self.serving:
            self._contrary = 0
            return True
        self._contrary += 1
        if self.serving is None or not self._started or self._contrary >= STEPS:
            await self._change(serving, problem)
        return False

    async def _change(self, serving: bool, problem: str) -> None:
        now, restarted = time.monotonic(), self._started
        self.serving, self._contrary = serving, 0
        self._started = self._started or serving
        await self._set_health(serving)
        if not restarted:
            log.debug("readiness_found", serving=serving, problem=problem)
        elif serving:
            log.info("serving_again", after_seconds=round(now - self._since, 1))
        else:
            log.warning("not_serving", problem=problem)
        self._since = now
