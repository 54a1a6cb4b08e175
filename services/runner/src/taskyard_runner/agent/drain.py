"""Draining: started by SIGTERM or by an administrator, with its deadline and its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from taskyard.v1.runner_link_service_pb2 import (
    RUNNER_GOODBYE_REASON_DRAINED,
    RUNNER_GOODBYE_REASON_RESTART,
    RUNNER_GOODBYE_REASON_SHUTDOWN,
    RunnerGoodbye,
)
from taskyard.v1.runner_pb2 import DRAIN_MODE_RELEASE, DrainRequest
from taskyard_kit.logs import get_log
from taskyard_runner.agent.runs import Runs
from taskyard_runner.warden.deadline import StopReason

# Grace period after a second SIGTERM.
_IMPATIENT_GRACE = 10.0
# A month: the upper bound of a deadline, because the loop's timers overflow.
_MAX_DRAIN_SECONDS = 30 * 86400.0

# Tasks that a log line lists.
_MAX_LISTED = 10

log = get_log(__name__)


class Drain:
    """Whether work is accepted, and which goodbye the agent sends."""

    def __init__(self, runs: Runs, changed: Callable[[], None]) -> None:
        self._runs = runs
        self._changed = changed
        self._own = False
        self._request: DrainRequest | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.goodbye: RunnerGoodbye | None = None
        self.on_lift: Callable[[], None] = lambda: None

    @property
    def own(self) -> bool:
        """Whether SIGTERM started the drain."""
        return self._own

    @property
    def active(self) -> bool:
        """Whether new work is rejected."""
        return self._own or self._request is not None or self.goodbye is not None

    @property
    def exits(self) -> bool:
        """Drain and exit after the last task."""
        return self._own or (self._request is not None and self._request.exit_when_drained)

    def begin(self, seconds: float) -> None:
        """SIGTERM: tasks may finish for this long."""
        self._own = True
        if live := [run.lease.task for run in self._runs.table.live()]:
            log.info("drain_waits", seconds=seconds, task_count=len(live), tasks=live[:_MAX_LISTED])
        self._release_waiting()
        self._release_after(seconds)
        self._changed()

    def release_now(self, grace: float | None = None) -> None:
        """Release every run."""
        for run in self._runs.table.live():
            self._runs.stop(run, StopReason.DRAIN, run.grace if grace is None else min(grace, run.grace))
        self._changed()

    def release_all(self) -> None:
        """Release every run at once, on the second SIGTERM."""
        self._own = True
        self.release_now(_IMPATIENT_GRACE)

    def restart(self) -> None:
        """Exit for a new agent; tasks keep running."""
        self.goodbye = RunnerGoodbye(reason=RUNNER_GOODBYE_REASON_RESTART, keep_leases=True)
        self._changed()

    def apply_request(self, request: DrainRequest) -> None:
        """Start an administrator's drain; idempotent."""
        if self._request == request:
            return
        log.info("drain_requested", reason=request.reason, exit_when_drained=request.exit_when_drained)
        self._request = request
        self._release_waiting()
        if request.mode == DRAIN_MODE_RELEASE:
            self.release_now()
        elif request.HasField("deadline"):
            self._release_after(request.deadline.seconds + request.deadline.nanos / 1e9 - time.time())
        self._changed()

    def cancel(self) -> None:
        """End the administrator's drain."""
        if self._request is not None:
            # The new agent runs the code that was installed meanwhile.
            self.on_lift()
        self._request = None
        if self._timer is not None and not self._own:
            self._timer.cancel()
        self._changed()

    def _release_waiting(self) -> None:
        if self._runs.functions is not None:
            self._runs.functions.release_waiting()

    def _release_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = min(max(0.0, seconds), _MAX_DRAIN_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(delay, self.release_now)

    def final_goodbye(self) -> RunnerGoodbye:
        """The goodbye to send once no work is left."""
        reason = RUNNER_GOODBYE_REASON_SHUTDOWN if self._own else RUNNER_GOODBYE_REASON_DRAINED
        return RunnerGoodbye(reason=reason)
