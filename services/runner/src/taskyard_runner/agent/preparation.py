"""Getting a run ready: its directory, files, checkpoint and environment, up to the order for the warden."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from taskyard import tracing
from taskyard.v1.lease_pb2 import Assignment
from taskyard.v1.task_pb2 import Execution
from taskyard_runner.agent import environment, inputs
from taskyard_runner.agent.config import AgentConfig
from taskyard_runner.agent.default_limits import DefaultLimits
from taskyard_runner.agent.directory import DirectoryStock, RunDirectory
from taskyard_runner.agent.leases import Held
from taskyard_runner.agent.run import AgentRun, grace_of, order
from taskyard_runner.agent.sandbox import Sandboxes
from taskyard_runner.executors import INSIDE, Containers, Place, Unsupported, describe, is_enclosed
from taskyard_runner.warden.protocol import Message


class CheckpointUnavailable(Exception):
    """The checkpoint that a run must start from cannot be had now."""


# Puts the newest checkpoint of a leased task into the run's directory; raises CheckpointUnavailable.
Download = Callable[[Assignment, RunDirectory], Awaitable[None]]


class Preparation:
    """Makes orders of assignments."""

    def __init__(
        self,
        config: AgentConfig,
        stock: DirectoryStock,
        socket: str,
        sandboxes: Sandboxes,
        download: Download,
        defaults: DefaultLimits,
    ) -> None:
        self._config = config
        self._defaults = defaults
        self.sandboxes = sandboxes
        self._stock = stock
        self._socket = socket
        self._download = download
        # Kinds that passed the self-test; others are rejected.
        self.kinds: frozenset[str] = frozenset()
        self.containers = Containers()

    def begin(self, assignment: Assignment, until: float) -> AgentRun:
        """A run under a fresh name."""
        directory = self._stock.take()
        self._stock.refill()
        return AgentRun(
            Held(assignment.lease, directory.name, until),
            directory,
            grace_of(assignment.spec),
            checkpoint_sequence=assignment.checkpoint.sequence,
            resources=assignment.spec.resources,
        )

    async def compose(self, run: AgentRun, assignment: Assignment, total_until: float | None) -> Message:
        """Write what the workload needs and compose the order.

        Raises NotRunnable, Unsupported, CheckpointUnavailable, and OSError if the disk has no room.
        """
        execution, directory = assignment.spec.execution, run.directory
        self._check_kind(execution)
        directory.give(self.sandboxes.take())
        env, resources = self._environment(run, assignment), self._defaults.fill(assignment.spec.resources)
        place = Place(
            directory.root,
            Path(self._config.data_dir),
            self._config.path,
            env,
            memory_mb=resources.memory_mb,
            cpu_millis=resources.cpu_millis,
            disk_mb=resources.disk_mb,
            pids=self._config.pids_limit,
            user=directory.owner,
            containers=self.containers,
        )
        workload = self.sandboxes.wrap(describe(execution, place), directory)
        for path, content in workload.files:
            directory.write(path, content)
        self._write_input(assignment, directory)
        if assignment.HasField("checkpoint"):
            await self._download(assignment, directory)
        pids = self._config.pids_limit
        return order(run, assignment, workload, env["TASKYARD_TOKEN"], resources, pids, total_until)

    def _check_kind(self, execution: Execution) -> None:
        kind = execution.WhichOneof("kind") or "unset"
        if kind not in self.kinds:
            raise Unsupported(
                f"execution kind {kind} is not offered by this runner; it has {', '.join(sorted(self.kinds))}"
            )

    def _environment(self, run: AgentRun, assignment: Assignment) -> dict[str, str]:
        enclosed = is_enclosed(assignment.spec.execution)
        seen = RunDirectory(*os.path.split(INSIDE)) if enclosed else run.directory
        host = {"PATH": self._config.path, "HOME": str(seen.work), "TMPDIR": str(seen.tmp)}
        return environment.compose(
            assignment,
            seen,
            marker=str(run.directory.root),
            defaults={} if enclosed else host,
            runner_env=self._config.env,
            runner_id=self._config.id,
            socket=self._socket,
            token=secrets.token_hex(16),
            traceparent=_begin_span(run, assignment),
        )

    def _write_input(self, assignment: Assignment, directory: RunDirectory) -> None:
        if assignment.spec.payload.WhichOneof("value"):
            directory.write(directory.payload, assignment.spec.payload.raw)
        if assignment.config.WhichOneof("value"):
            directory.write(directory.config, assignment.config.raw)
        if assignment.inputs:
            directory.make_inputs()
            for alias, document in inputs.documents(assignment):
                directory.write(directory.inputs / f"{alias}.json", document)


def _begin_span(run: AgentRun, assignment: Assignment) -> str:
    """The traceparent of the run's span, or the task's own where no spans are made."""
    if not tracing.enabled():
        return assignment.traceparent
    attributes = {"taskyard.task": run.lease.task, "taskyard.generation": run.lease.generation}
    run.span = tracing.start_span("run", assignment.traceparent, "consumer", attributes)
    return tracing.traceparent_of(run.span)
