"""The messages to be written to one runner, by class: a reader or a flush never waits for a write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from taskyard.v1.runner_link_service_pb2 import (
    CheckpointAck,
    CheckpointRetry,
    Command,
    ConnectResponse,
    FlowControl,
    HeartbeatAck,
    LogAck,
    ReportAck,
    ReportRejection,
    ServerGoodbye,
    Welcome,
)
from taskyard_scheduler.claimed import Claimed, encode
from taskyard_scheduler.domain.capacity import RunKey

# The size a message of assignments aims at (rule 12).
TARGET_BYTES = 256 * 1024


class Outbox:
    """Messages in the order of their class: liveness, acknowledgements, commands, work, bulk.

    Acknowledgements of reports are cumulative and assignments are gathered, so that a slow runner costs
    memory in proportion to its window and capacity only. `wake` is called whenever there is something new.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._welcome: Welcome | None = None
        self._heartbeat_ack: HeartbeatAck | None = None
        self._goodbye: ServerGoodbye | None = None
        self._through_seq = 0
        self._rejections: list[ReportRejection] = []
        self._report_ack = False
        self._commands: deque[Command] = deque()
        self._assignments: deque[Claimed] = deque()
        self._flow: FlowControl | None = None
        self._bulk: deque[ConnectResponse] = deque()

    def __bool__(self) -> bool:
        return bool(
            self._welcome
            or self._heartbeat_ack
            or self._report_ack
            or self._goodbye
            or self._commands
            or self._assignments
            or self._flow
            or self._bulk
        )

    def welcome(self, message: Welcome) -> None:
        self._welcome = message
        self._wake()

    def acknowledge_heartbeat(self, message: HeartbeatAck) -> None:
        """Replaces an ack that was not written yet: the newest contains everything of the older one."""
        if (older := self._heartbeat_ack) is not None:
            message.full_requested = message.full_requested or older.full_requested
        self._heartbeat_ack = message
        self._wake()

    def acknowledge_reports(self, through_seq: int, rejections: Iterable[ReportRejection]) -> None:
        self._through_seq = through_seq
        self._rejections.extend(rejections)
        self._report_ack = True
        self._wake()

    def command(self, message: Command) -> None:
        self._commands.append(message)
        self._wake()

    def assign(self, assignments: Iterable[Claimed]) -> None:
        self._assignments.extend(assignments)
        self._wake()

    def flow(self, message: FlowControl) -> None:
        self._flow = message
        self._wake()

    def acknowledge_logs(self, message: LogAck) -> None:
        self._bulk.append(ConnectResponse(log_ack=message))
        self._wake()

    def acknowledge_checkpoint(self, message: CheckpointAck) -> None:
        self._bulk.append(ConnectResponse(checkpoint_ack=message))
        self._wake()

    def retry_checkpoint(self, message: CheckpointRetry) -> None:
        self._bulk.append(ConnectResponse(checkpoint_retry=message))
        self._wake()

    def goodbye(self, message: ServerGoodbye) -> None:
        self._goodbye = message
        self._wake()

    def withdraw_assignments(self, runs: Collection[RunKey] | None = None) -> list[Claimed]:
        """Removes and returns the assignments, of these runs or all, that were not written yet."""
        withdrawn: list[Claimed] = []
        kept: list[Claimed] = []
        for one in self._assignments:
            (withdrawn if runs is None or one.key in runs else kept).append(one)
        self._assignments = deque(kept)
        return withdrawn

    def next(self) -> ConnectResponse | bytes | None:
        """The next message to write, None if there is nothing; assignments are encoded already."""
        if self._welcome is not None:
            message, self._welcome = ConnectResponse(welcome=self._welcome), None
            return message
        if self._heartbeat_ack is not None:
            message, self._heartbeat_ack = ConnectResponse(heartbeat_ack=self._heartbeat_ack), None
            return message
        if self._report_ack:
            return self._next_report_ack()
        if self._commands:
            return ConnectResponse(command=self._commands.popleft())
        if self._flow is not None:
            message, self._flow = ConnectResponse(flow=self._flow), None
            return message
        if self._goodbye is not None:
            message, self._goodbye = ConnectResponse(goodbye=self._goodbye), None
            return message
        if self._assignments:
            return self._next_assignments()
        return self._bulk.popleft() if self._bulk else None

    def _next_report_ack(self) -> ConnectResponse:
        ack = ReportAck(through_seq=self._through_seq, rejections=self._rejections)
        self._report_ack = False
        self._rejections = []
        return ConnectResponse(report_ack=ack)

    def _next_assignments(self) -> bytes:
        entries: list[bytes] = []
        size = 0
        while self._assignments and size < TARGET_BYTES:
            entry = self._assignments.popleft().entry
            entries.append(entry)
            size += len(entry)
        return encode(entries)
