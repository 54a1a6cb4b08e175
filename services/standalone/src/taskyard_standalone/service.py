"""One of Taskyard's services as a supervised child program."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taskyard_standalone.errors import Killed, ServiceError
from taskyard_standalone.logs import LogFile
from taskyard_standalone.process import Child, Program, describe_end
from taskyard_standalone.supervision import wait_unless_hurried

_LAST_SECONDS = 3.0


@dataclass(frozen=True)
class ServiceSpec:
    """How to run one service; `stop_seconds` bounds its drain.

    `until_ready` returns once it serves; it is given the log and where in it this start begins.
    """

    name: str
    program: Program
    until_ready: Callable[[LogFile, int], Awaitable[None]]
    ready_seconds: float = 60.0
    stop_seconds: float = 15.0


class Service:
    """A service that can be started, awaited and stopped any number of times."""

    def __init__(self, spec: ServiceSpec, log: LogFile, database_ready: asyncio.Event) -> None:
        self._spec = spec
        self._log = log
        self._database_ready = database_ready
        self._child: Child | None = None
        self._written = 0
        self._stopping = 0

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def pid(self) -> int | None:
        """The process id, once it was started."""
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Returns once the service is ready; raises ServiceError if it ends or stays silent instead.

        Waits for the database first: while that recovers, a start would only use up restarts.
        """
        await self._database_ready.wait()
        written = self._written = self._log.size()
        child = self._child = Child.start(self._spec.program, self._log)
        ready = asyncio.ensure_future(self._spec.until_ready(self._log, written))
        ended = asyncio.ensure_future(child.wait())
        try:
            seconds = self._spec.ready_seconds
            await asyncio.wait({ready, ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            is_ready = ready.done()
        finally:
            ready.cancel()
            ended.cancel()
            await asyncio.gather(ready, ended, return_exceptions=True)
        # A foreign server on the same port could answer for a child that is already gone.
        if child.code is not None:
            kind = Killed if child.code < 0 else ServiceError
            raise kind(f"{self.name} ended with {self._describe_end(child.code)}")
        if not is_ready:
            await child.kill()
            raise ServiceError(f"{self.name} was not ready after {seconds:.0f} s: see {self._log.path}")

    async def ended(self) -> str:
        """Returns, in words, how the service ended once it has."""
        assert self._child is not None
        return self._describe_end(await self._child.wait())

    def awaits(self) -> str:
        """What a stop that is under way waits for: the tasks that a runner has logged; empty if nothing."""
        for line in reversed(self._log.lines(self._stopping)):
            if '"drain_waits"' in line:
                return _describe_wait(json.loads(line))
        return ""

    async def stop(self, hurry: asyncio.Event) -> None:
        """Lets the service drain until its deadline or `hurry`, then ends it."""
        child = self._child
        self._stopping = self._log.size()
        if child is not None and child.code is None:
            child.send(signal.SIGTERM)
            if not await wait_unless_hurried(child, self._spec.stop_seconds, hurry):
                # A second request makes a runner give its tasks back instead of waiting for them.
                child.send(signal.SIGTERM)
                if not await child.wait_at_most(_LAST_SECONDS):
                    await child.kill()
        self._child = None

    def _describe_end(self, code: int) -> str:
        """The exit code, and the last plain line that it wrote; log events are no explanation."""
        lines = [line.strip() for line in self._log.lines(self._written) if not line.startswith("{")]
        reason = f": {lines[-1]}" if lines else ""
        return f"{describe_end(code)}{reason} (log {self._log.path})"


def _describe_wait(event: Mapping[str, Any]) -> str:
    first, more = event["tasks"][0].rpartition("/")[2], event["task_count"] - 1
    others = "" if not more else " and 1 other" if more == 1 else f" and {more} others"
    return f"task {first}{others} to end, {event['seconds']:.0f} s at most"
