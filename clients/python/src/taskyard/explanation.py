"""Why a task does not run yet, as user code reads it: a thin view on the proto messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from taskyard.convert import to_datetime
from taskyard.names import last_segment
from taskyard.task import Phase
from taskyard.v1 import explain_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one gate, or one runner, for a task."""

    name: str
    """The gate as a word ("slot", "concurrency"), or the runner's id."""
    passed: bool
    message: str
    remedy: str
    """What would have to change; empty if the gate is passed."""
    obstacle: str = ""
    """Why a runner cannot take the task, as a word ("required", "capacity")."""
    blocker: str = ""
    """The task, slot, tenant or type that keeps a gate closed."""
    open_time: datetime | None = None
    """When a gate opens, if that is known."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to "why is it not running?"; `proto` has everything."""

    proto: pb.ExplainTaskResponse

    @property
    def runnable(self) -> bool:
        """Whether it runs, or would be claimed now."""
        return self.proto.runnable

    @property
    def summary(self) -> str:
        """One line for people."""
        return self.proto.summary

    @property
    def phase(self) -> Phase:
        return Phase(self.proto.phase)

    @property
    def gates(self) -> list[Verdict]:
        """Every gate, in the order in which they are passed."""
        return [_gate(one) for one in self.proto.gates]

    @property
    def runners(self) -> list[Verdict]:
        """Every runner that is visible to the caller."""
        return [_runner(one) for one in self.proto.runners]

    @property
    def blocked_by(self) -> list[Verdict]:
        """The gates that are closed."""
        return [gate for gate in self.gates if not gate.passed]

    @property
    def earliest_time(self) -> datetime | None:
        """The earliest start, if known."""
        return to_datetime(self.proto.earliest_time)


def _gate(one: pb.GateVerdict) -> Verdict:
    return Verdict(
        _enum_word(pb.Gate, one.gate, "GATE_"),
        one.passed,
        one.message,
        one.remedy,
        blocker=one.blocker,
        open_time=to_datetime(one.open_time),
    )


def _runner(one: pb.RunnerVerdict) -> Verdict:
    obstacle = _enum_word(pb.RunnerObstacle, one.obstacle, "RUNNER_OBSTACLE_") if one.obstacle else ""
    return Verdict(last_segment(one.runner), not one.obstacle, one.message, one.remedy, obstacle)


def _enum_word(enum: Any, number: int, prefix: str) -> str:
    """The value's name in lower case; the number of a value that this version does not have."""
    values = enum.values()
    return str(enum.Name(number)).removeprefix(prefix).lower() if number in values else str(number)
