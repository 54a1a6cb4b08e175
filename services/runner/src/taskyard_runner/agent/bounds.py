"""Bounds on the scheduler's numbers: an invalid number must not end the agent."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from taskyard.v1.runner_link_service_pb2 import FlowControl
from taskyard_runner.agent.run import seconds

_MIN_INTERVAL, _MAX_INTERVAL = 0.05, 600.0
DEFAULT_FLOW = FlowControl(max_unacked_reports=1000, max_unacked_bytes=2 << 20)


def interval(requested: Duration, before: float) -> float:
    """The time between heartbeats: the scheduler's, within bounds."""
    if not (duration := seconds(requested)):
        return before
    return min(max(_MIN_INTERVAL, duration), _MAX_INTERVAL)


def usable(flow: FlowControl) -> FlowControl:
    """Windows through which a report fits, one at a time if need be: outcomes must arrive."""
    return FlowControl(
        max_unacked_reports=max(1, flow.max_unacked_reports),
        max_unacked_bytes=max(1, flow.max_unacked_bytes),
        max_log_bytes_per_second=max(0, flow.max_log_bytes_per_second),
        hold_bulk=flow.hold_bulk,
    )
