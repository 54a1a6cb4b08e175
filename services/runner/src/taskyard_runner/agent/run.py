"""One run in the agent, what the warden keeps of it for the next agent, and its order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf.duration_pb2 import Duration

from taskyard import tracing
from taskyard.v1.common_pb2 import Resources
from taskyard.v1.lease_pb2 import Assignment, LeaseRef
from taskyard.v1.task_pb2 import OVERLAP_POLICY_ALLOW, TaskSpec
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.leases import Held, RunKey
from taskyard_runner.executors import Workload
from taskyard_runner.warden.protocol import Message

if TYPE_CHECKING:
    from taskyard_runner.agent.executor import Executor

_DEFAULT_GRACE = 30.0
_DEFAULT_ORPHAN = 3600.0
_MIB = 1 << 20
# Ten years: longer than any run, and no timer or clock overflows.
_MAX_SECONDS = 315_360_000.0


@dataclass
class AgentRun:
    """A run from its assignment until its logs are shipped."""

    held: Held
    directory: RunDirectory
    grace: float
    checkpoint_sequence: int = 0
    resources: Resources = field(default_factory=Resources)
    # Ordered from the executor; before that there is no process.
    ordered: bool = False
    started: bool = False
    ended: bool = False
    # The outcome was acknowledged, or there is none to report.
    reported: bool = False
    logs_shipped: bool = False
    preparing: asyncio.Task[None] | None = None
    # Adds the notice of output that a full disk had no room for.
    noting: asyncio.Task[None] | None = None
    span: Any = None
    # The executor of the run; None = the warden.
    executor: Executor | None = None

    @property
    def key(self) -> RunKey:
        return self.held.key

    @property
    def lease(self) -> LeaseRef:
        return self.held.lease

    @property
    def name(self) -> str:
        return self.directory.name

    def adopt_outcome(self, spooled: Held) -> None:
        """Marks the run as ended; the spool holds its outcome under this lease."""
        spooled.run = self.name
        self.held = spooled
        self.ended = True

    def end_span(self, outcome: str) -> None:
        """The run's span, if there is one, ends with this outcome."""
        if self.span is not None:
            if outcome != "succeeded":
                tracing.mark_failed(self.span, outcome)
            self.span.end()
            self.span = None

    def meta(self) -> dict[str, Any]:
        """The metadata that the warden keeps for the next agent."""
        return {
            "task": self.lease.task,
            "generation": self.lease.generation,
            "lease_id": self.lease.lease_id,
            "grace": self.grace,
            "checkpoint_sequence": self.checkpoint_sequence,
            "cpu_millis": self.resources.cpu_millis,
            "memory_mb": self.resources.memory_mb,
            "disk_mb": self.resources.disk_mb,
            "user": self.directory.owner,
        }


def lease_of(meta: Mapping[str, Any]) -> LeaseRef:
    """The lease in the metadata that the warden kept."""
    return LeaseRef(task=meta["task"], generation=meta["generation"], lease_id=meta["lease_id"])


def adopt(described: Message, runs_directory: str) -> AgentRun:
    """A run that an earlier agent ordered."""
    meta = described["meta"]
    held = Held(lease_of(meta), described["run"], described["lease_until"])
    directory = RunDirectory(runs_directory, described["run"])
    directory.owner = tuple(meta["user"]) if meta.get("user") else None
    return AgentRun(
        held,
        directory,
        meta["grace"],
        checkpoint_sequence=meta["checkpoint_sequence"],
        resources=Resources(
            cpu_millis=meta["cpu_millis"], memory_mb=meta["memory_mb"], disk_mb=meta["disk_mb"]
        ),
        ordered=True,
        started=bool(described["start_time"]),
    )


def grace_of(spec: TaskSpec) -> float:
    """From the polite to the forced stop."""
    return seconds(spec.stop_grace_period) if spec.HasField("stop_grace_period") else _DEFAULT_GRACE


def order(
    run: AgentRun,
    assignment: Assignment,
    workload: Workload,
    token: str,
    resources: Resources,
    pids: int,
    total_until: float | None,
) -> Message:
    """The message that makes the warden start the process."""
    spec = assignment.spec
    orphan = optional_seconds(spec, "orphan_timeout")
    return {
        "op": "start",
        "run": run.name,
        "argv": list(workload.argv),
        "env": dict(workload.env),
        "cwd": workload.cwd,
        "token": token,
        "user": None if workload.trusted else run.directory.owner,
        "shielded": workload.shielded,
        "limits": _limits(resources, workload, pids) if workload.limited else {},
        "cleanup": list(workload.cleanup),
        "lease_until": run.held.until,
        "forbid_overlap": spec.overlap != OVERLAP_POLICY_ALLOW,
        "orphan_seconds": _DEFAULT_ORPHAN if orphan is None else orphan,
        "attempt_seconds": optional_seconds(spec, "attempt_timeout"),
        "silence_seconds": optional_seconds(spec, "silence_timeout"),
        "total_until": total_until,
        "grace_seconds": run.grace,
        "meta": run.meta(),
    }


def _limits(resources: Resources, workload: Workload, pids: int) -> dict[str, int]:
    return {
        "memory_bytes": (resources.memory_mb + workload.overhead_mb) * _MIB if resources.memory_mb else 0,
        "cpu_millis": resources.cpu_millis,
        "file_bytes": resources.disk_mb * _MIB,
        "pids": pids,
    }


def optional_seconds(spec: TaskSpec, name: str) -> float | None:
    """A duration of the spec, None if it is not set."""
    return seconds(getattr(spec, name)) if spec.HasField(name) else None  # type: ignore[arg-type]


def seconds(duration: Duration) -> float:
    """A duration in seconds; one that no clock can bear counts as the nearest that every clock can."""
    return min(max(0.0, duration.seconds + duration.nanos / 1e9), _MAX_SECONDS)
