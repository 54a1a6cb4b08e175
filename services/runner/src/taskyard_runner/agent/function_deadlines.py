"""Deadlines of runs inside function hosts; a run too short to report its start needs none."""

from __future__ import annotations

import asyncio
import time

from taskyard_runner.agent.function_host import FunctionRun
from taskyard_runner.agent.runs import Runs
from taskyard_runner.executors.function import DEFAULT_ORPHAN
from taskyard_runner.warden.cgroup import Limits
from taskyard_runner.warden.deadline import Deadlines, StopReason
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.order import Order

_MAX_DELAY = 3600.0


class RunDeadlines:
    """Stops runs whose time is up."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def begin(self, run: FunctionRun, when: float) -> None:
        """The function has been running since this wall-clock time."""
        run.deadlines = Deadlines(_order(run), run.held.until)
        run.deadlines.begin(boottime() - max(0.0, time.time() - when))
        self._arm(run)

    def end(self, run: FunctionRun) -> None:
        """It is no longer in its host."""
        if run.timer is not None:
            run.timer.cancel()

    def _arm(self, run: FunctionRun) -> None:
        assert run.deadlines is not None
        if run.timer is not None:
            run.timer.cancel()
        run.deadlines.lease_until = run.held.until
        delay = max(0.0, run.deadlines.next_due()[0] - boottime())
        run.timer = asyncio.get_running_loop().call_later(min(delay, _MAX_DELAY), self._check, run)

    def _check(self, run: FunctionRun) -> None:
        assert run.deadlines is not None
        if run.ended or run.reason is not None:
            return
        run.deadlines.lease_until = run.held.until
        when, reason = run.deadlines.next_due()
        if when > boottime():
            self._arm(run)
        elif reason != StopReason.LEASE_EXPIRED or not run.place.forbid:
            # The end of a lease that forbids overlap is the warden's to enforce.
            self._runs.stop(run, reason, run.deadlines.grace(reason))


def _order(run: FunctionRun) -> Order:
    extra = run.extra
    return Order(
        run=run.name,
        argv=(),
        env={},
        cwd="",
        token="",
        limits=Limits(),
        lease_until=run.held.until,
        forbid_overlap=run.place.forbid,
        orphan_seconds=extra.get("orphan", DEFAULT_ORPHAN),
        attempt_seconds=extra.get("attempt"),
        total_until=extra.get("total_until"),
        silence_seconds=extra.get("silence"),
        grace_seconds=run.grace,
        cleanup=(),
        meta={},
    )
