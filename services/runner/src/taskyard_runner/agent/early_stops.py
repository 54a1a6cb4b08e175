"""Stops that arrive before the assignment of their run: the link sends commands before work."""

from __future__ import annotations

from taskyard.v1.lease_pb2 import (
    LEASE_ACTION_ABORT,
    LEASE_ACTION_CANCEL,
    LEASE_ACTION_PAUSE,
    LeaseRef,
    LeaseVerdict,
)
from taskyard_runner.warden.deadline import StopReason

REASONS = {
    LEASE_ACTION_ABORT: StopReason.ABORT,
    LEASE_ACTION_CANCEL: StopReason.CANCEL,
    LEASE_ACTION_PAUSE: StopReason.PAUSE,
}
# Most verdicts concern runs that have ended; the oldest are evicted.
_MAX_VERDICTS = 1000


class EarlyStops:
    """The newest verdicts on leases that the agent does not have."""

    def __init__(self) -> None:
        self._reasons: dict[int, StopReason] = {}

    def add(self, verdict: LeaseVerdict) -> None:
        """Stores a verdict."""
        if (reason := REASONS.get(verdict.action)) is None:
            return
        self._reasons[verdict.lease.lease_id] = reason
        if len(self._reasons) > _MAX_VERDICTS:
            del self._reasons[next(iter(self._reasons))]

    def take(self, lease: LeaseRef) -> StopReason | None:
        """Removes and returns the reason not to start the run of this lease, None without one."""
        return self._reasons.pop(lease.lease_id, None)
