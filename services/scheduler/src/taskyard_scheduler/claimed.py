"""Claimed tasks on their way to a runner: bytes to pass on, and what the scheduler accounts for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskyard.v1 import lease_pb2, runner_link_service_pb2
from taskyard.v1.lease_service_pb2 import PackedAssignments, RunnerClaimResult
from taskyard_kit.wire import field
from taskyard_scheduler import convert
from taskyard_scheduler.domain.capacity import Run, RunKey
from taskyard_scheduler.domain.resources import Resources

# The keys of ConnectResponse.assignments and Assignments.assignments on the wire.
_ASSIGNMENTS, _ENTRY = b"\x12", b"\x0a"


class Workload(NamedTuple):
    """What a task is, as far as the account of a runner shows it."""

    task_type: str
    kind: str
    function: str
    cost: Resources


class Claimed(NamedTuple):
    """A claimed task; its entry is the assignment as it stands in a message to the runner."""

    key: RunKey
    lease_id: int
    workload: Workload
    entry: bytes

    @property
    def lease(self) -> lease_pb2.LeaseRef:
        """Its lease as a message."""
        return lease_pb2.LeaseRef(task=self.key[0], generation=self.key[1], lease_id=self.lease_id)

    def assignment(self) -> lease_pb2.Assignment:
        """The assignment, for what is seldom read of it."""
        return runner_link_service_pb2.Assignments.FromString(self.entry).assignments[0]

    def run(self, expire_time: float, *, accounted: bool) -> Run:
        """Its run; the cost is set only if the runner accounts resources."""
        task_type, kind, function, cost = self.workload
        return Run(task_type, kind, function, cost if accounted else None, expire_time=expire_time)


def claimed(assignment: lease_pb2.Assignment) -> Claimed:
    """A claimed task of its assignment, which names the heartbeat that its lease counts from."""
    spec, lease = assignment.spec, assignment.lease
    kind = spec.execution.WhichOneof("kind") or ""
    function = spec.execution.function.function if kind == "function" else ""
    workload = Workload(spec.task_type, kind, function, convert.resources(spec.resources))
    body = assignment.SerializeToString()
    return Claimed(convert.run_key(lease), lease.lease_id, workload, field(_ENTRY, body))


def claimed_of(result: RunnerClaimResult, heartbeat_id: int) -> list[Claimed]:
    """The claimed tasks of a result; those of a taskdb that does not pack them are packed here."""
    if result.HasField("packed"):
        return _unpack(result.packed)
    made = []
    for assignment in result.assignments:
        assignment.heartbeat_id = heartbeat_id
        made.append(claimed(assignment))
    return made


def tasks_of(result: RunnerClaimResult) -> Sequence[str]:
    """The names of the claimed tasks of a result."""
    if result.HasField("packed"):
        return result.packed.tasks
    return [assignment.lease.task for assignment in result.assignments]


def encode(entries: Sequence[bytes]) -> bytes:
    """The message that carries these entries to the runner."""
    return field(_ASSIGNMENTS, b"".join(entries))


def _unpack(packed: PackedAssignments) -> list[Claimed]:
    workloads = [
        Workload(one.task_type, one.kind, one.function, convert.resources(one.resources))
        for one in packed.workloads
    ]
    # Each access to a repeated field creates new objects; the lists are built once.
    keys = zip(list(packed.tasks), list(packed.generations), strict=True)
    entries, lease_ids = list(packed.entries), list(packed.lease_ids)
    places = list(packed.places) or [0] * len(entries)
    return [
        Claimed(key, lease_id, workloads[place], entry)
        for key, lease_id, place, entry in zip(keys, lease_ids, places, entries, strict=True)
    ]
