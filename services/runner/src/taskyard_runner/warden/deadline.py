"""When a run must be stopped, and why; pure, the caller passes the time."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from taskyard_runner.warden.order import Order


class StopReason(enum.StrEnum):
    """Why a run was stopped before its process ended by itself."""

    CANCEL = "cancel"
    PAUSE = "pause"
    DRAIN = "drain"
    ABORT = "abort"
    ATTEMPT_TIMEOUT = "attempt_timeout"
    SILENCE_TIMEOUT = "silence_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    # The lease of FORBID work ended, or ALLOW work was without one for longer than it may.
    LEASE_EXPIRED = "lease_expired"
    DISK_FULL = "disk_full"
    SHUTDOWN = "shutdown"


@dataclass
class Deadlines:
    """The clocks of one run."""

    order: Order
    lease_until: float
    started: float | None = None
    last_activity: float = 0.0

    def begin(self, now: float) -> None:
        """The workload runs from now on."""
        self.started = self.last_activity = now

    def candidates(self) -> list[tuple[float, StopReason]]:
        """Every deadline in force; what forbids overlap comes first at equal times."""
        order = self.order
        allowed = 0.0 if order.forbid_overlap else order.orphan_seconds
        found = [(self.lease_until + allowed, StopReason.LEASE_EXPIRED)]
        if order.total_until is not None:
            found.append((order.total_until, StopReason.TOTAL_TIMEOUT))
        if self.started is not None and order.attempt_seconds is not None:
            found.append((self.started + order.attempt_seconds, StopReason.ATTEMPT_TIMEOUT))
        if self.started is not None and order.silence_seconds is not None:
            found.append((self.last_activity + order.silence_seconds, StopReason.SILENCE_TIMEOUT))
        return found

    def next_due(self) -> tuple[float, StopReason]:
        """The earliest deadline."""
        return min(self.candidates(), key=lambda found: found[0])

    def grace(self, reason: StopReason) -> float:
        """From SIGTERM to SIGKILL. Nothing of FORBID work may outlive its lease, so that has none."""
        if reason == StopReason.LEASE_EXPIRED and self.order.forbid_overlap:
            return 0.0
        return self.order.grace_seconds
