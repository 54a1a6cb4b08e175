"""PackedAssignments: assignments as bytes, which a scheduler passes on to runners without reading them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta

from google.protobuf.message import DecodeError

from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2
from taskyard_kit.wire import field, varint
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.rpc.times import set_duration
from taskyard_taskdb.storage.claim.claims import ClaimedTask

# The keys of fields on the wire: LeaseRef.task, generation and lease_id, Assignment.lease, attempt and spec,
# and Assignments.assignments.
_TASK, _GENERATION, _LEASE_ID = b"\x0a", b"\x10", b"\x19"
_LEASE, _ATTEMPT, _SPEC = b"\x0a", b"\x20", b"\x2a"
_ENTRY = b"\x0a"
_fixed64 = struct.Struct("<q").pack


class Packing:
    """The assignments of one runner's claim, which names the heartbeat that they carry."""

    def __init__(self, heartbeat_id: int) -> None:
        self._heartbeat_id = heartbeat_id
        # What all assignments of a lease duration have in common.
        self._common: dict[timedelta, bytes] = {}
        self._workloads: dict[tuple[str, str, str, bytes], int] = {}

    def pack(self, task: ClaimedTask) -> tuple[bytes, int] | None:
        """The entry and the place of its workload; None if more belongs to it than the claim has read.

        The stored spec is passed on as it is, once it is known that it can be read.
        """
        if task.checkpoint_sequence or task.task_type_revision:
            return None
        try:
            spec = task_pb2.TaskSpec.FromString(task.spec)
        except (DecodeError, RecursionError):
            return None
        if spec.after or (spec.HasField("payload") and spec.payload.WhichOneof("value") == "json"):
            return None
        name = f"tenants/{task.tenant_id}/tasks/{task.task_id}".encode()
        lease = b"".join(
            (_TASK, varint(len(name)), name, _GENERATION, varint(task.generation), _LEASE_ID)
        ) + _fixed64(task.lease_id)
        parts = (
            _LEASE, varint(len(lease)), lease,
            self._common.get(task.lease_ttl) or self._encode_common(task.lease_ttl),
            _ATTEMPT, varint(task.attempt + 1),
            _SPEC, varint(len(task.spec)), task.spec,
            _rest(task) if task.labels or task.traceparent or task.total_left is not None else b"",
        )  # fmt: skip
        return field(_ENTRY, b"".join(parts)), self._place(spec)

    def pack_message(self, assignment: lease_pb2.Assignment) -> tuple[bytes, int]:
        """The entry of an assignment that was made as a message, and the place of its workload."""
        assignment.heartbeat_id = self._heartbeat_id
        return field(_ENTRY, assignment.SerializeToString()), self._place(assignment.spec)

    def workloads(self) -> list[lease_service_pb2.Workload]:
        """What was packed, by place."""
        made = []
        for task_type, kind, function, resources in self._workloads:
            workload = lease_service_pb2.Workload(task_type=task_type, kind=kind, function=function)
            if resources:
                workload.resources.MergeFromString(resources)
            made.append(workload)
        return made

    def _encode_common(self, lease_ttl: timedelta) -> bytes:
        message = lease_pb2.Assignment(heartbeat_id=self._heartbeat_id)
        set_duration(message.lease_ttl, lease_ttl)
        self._common[lease_ttl] = encoded = message.SerializeToString()
        return encoded

    def _place(self, spec: task_pb2.TaskSpec) -> int:
        execution = spec.execution
        kind = execution.WhichOneof("kind") or ""
        function = execution.function.function if kind == "function" else ""
        resources = spec.resources.SerializeToString() if spec.HasField("resources") else b""
        found = (spec.task_type, kind, function, resources)
        return self._workloads.setdefault(found, len(self._workloads))


def fill_packed(
    message: lease_service_pb2.PackedAssignments,
    packing: Packing,
    tasks: Sequence[ClaimedTask],
    packed: Mapping[int, tuple[bytes, int]],
) -> None:
    """Fill in the columns, of the tasks whose lease has an entry, in claim order."""
    kept = [task for task in tasks if task.lease_id in packed]
    message.entries.extend([packed[task.lease_id][0] for task in kept])
    message.tasks.extend([f"tenants/{task.tenant_id}/tasks/{task.task_id}" for task in kept])
    message.generations.extend([task.generation for task in kept])
    message.lease_ids.extend([task.lease_id for task in kept])
    message.workloads.extend(packing.workloads())
    if len(message.workloads) > 1:
        message.places.extend([packed[task.lease_id][1] for task in kept])


def _rest(task: ClaimedTask) -> bytes:
    """The fields that few assignments have."""
    message = lease_pb2.Assignment()
    fill_rest(message, task)
    return message.SerializeToString()


def fill_rest(message: lease_pb2.Assignment, task: ClaimedTask) -> None:
    """Fill in what is left of the total timeout, labels and traceparent."""
    if task.total_left is not None:
        set_duration(message.total_timeout, max(task.total_left, timedelta(0)))
    if task.labels:
        message.labels.update(search_fields.visible(task.labels))
    if task.traceparent:
        message.traceparent = task.traceparent
