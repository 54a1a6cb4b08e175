"""Who carries runs out: the warden, which runs processes, or the pool of function hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from taskyard.v1.lease_pb2 import Assignment
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.protocol import Message


class Executor(Protocol):
    """Executes runs, and keeps what the next agent needs of them."""

    def stop(self, run: AgentRun, reason: StopReason, grace: float) -> None:
        """Stop a run; its end is reported like any other."""
        ...

    def note(self, run: AgentRun, **notes: Any) -> None:
        """Keep this for the next agent."""
        ...

    def saved(self, run: AgentRun) -> None:
        """Its outcome is in the spool."""
        ...

    def forget(self, run: AgentRun) -> None:
        """Discard all that is kept of a run."""
        ...


class AssignmentHandler(Protocol):
    """Handles assignments of one kind."""

    def accept(self, assignment: Assignment, until: float, total_until: float | None) -> None: ...

    def release_waiting(self) -> None:
        """Release the runs that have not started."""
        ...


class WardenExecutor:
    """The warden runs processes."""

    def __init__(self, send_to_warden: Callable[[Message], None]) -> None:
        self._send_to_warden = send_to_warden

    def stop(self, run: AgentRun, reason: StopReason, grace: float) -> None:
        self._send_to_warden({"op": "stop", "run": run.name, "reason": reason, "grace": grace})

    def note(self, run: AgentRun, **notes: Any) -> None:
        self._send_to_warden({"op": "note", "run": run.name, "notes": notes})

    def saved(self, run: AgentRun) -> None:
        self._send_to_warden({"op": "saved", "run": run.name})

    def forget(self, run: AgentRun) -> None:
        self._send_to_warden({"op": "forget", "run": run.name})
