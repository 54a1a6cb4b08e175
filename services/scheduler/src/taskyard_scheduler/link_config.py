"""The numbers of the link that are the same for every session."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from taskyard.v1.runner_link_service_pb2 import FlowControl

PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """Durations are in seconds."""

    scheduler_id: str
    heartbeat_interval: float = 10.0
    lease_duration: float = 30.0
    first_lease: float = 15.0
    hello_timeout: float = 10.0
    goodbye_timeout: float = 10.0
    max_session_age: float = 3600.0
    max_unacked_reports: int = 1000
    max_unacked_bytes: int = 16 * 1024 * 1024
    max_log_bytes_per_second: int = 0

    @property
    def silence_limit(self) -> float:
        """Without a heartbeat for this long the stream is ended (rule 6)."""
        return 3 * self.heartbeat_interval

    @property
    def fresh_limit(self) -> float:
        """The maximum age of a runner's last heartbeat for it to get work: the first lease counts from it."""
        return 0.8 * self.first_lease

    def flow(self, *, hold_bulk: bool = False) -> FlowControl:
        """The windows of rule 11."""
        return FlowControl(
            max_unacked_reports=self.max_unacked_reports,
            max_unacked_bytes=self.max_unacked_bytes,
            max_log_bytes_per_second=self.max_log_bytes_per_second,
            hold_bulk=hold_bulk,
        )


def duration(seconds: float) -> Duration:
    """A protobuf duration."""
    whole = int(seconds)
    return Duration(seconds=whole, nanos=int((seconds - whole) * 1e9))
