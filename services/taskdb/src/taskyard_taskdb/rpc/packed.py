"""PackedAssignments: assignments as bytes, which a scheduler passes on to runners without reading them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

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


class Entry(NamedTuple):
    """An assignment as bytes, the name of its task, and the place of its workload."""

    encoded: bytes
    task: str
    place: int


class Packing:
    """The assignments of one runner's claim, which names the heartbeat that they carry."""

    def __init__(self, heartbeat_id: int) -> None:
        self._heartbeat_id = heartbeat_id
        # What all assignments of a lease duration have in common.
        self._common: dict[timedelta, bytes] = {}
        # Each spec as a field, and the place of its workload. Many tasks of a claim have equal ones.
        self._specs: dict[bytes, tuple[bytes, int] | None] = {}
        self._workloads: dict[tuple[str, str, str, bytes], int] = {}

    def pack(self, task: ClaimedTask) -> Entry | None:
        """The entry; None if more belongs to it than the claim has read.

        The stored spec is passed on as it is, once it is known that it can be read.
        """
        if task.checkpoint_sequence or task.task_type_revision:
            return None
        try:
            read = self._specs[task.spec]
        except KeyError:
            read = self._specs[task.spec] = self._read(task.spec)
        if read is None:
            return None
        spec, place = read
        name = task_name(task)
        encoded = name.encode()
        lease = b"".join(
            (_TASK, varint(len(encoded)), encoded, _GENERATION, varint(task.generation), _LEASE_ID,
            _fixed64(task.lease_id))
        )  # fmt: skip
        common = self._common.get(task.lease_ttl) or self._encode_common(task.lease_ttl)
        attempt = varint(task.attempt + 1)
        rest = _rest(task) if task.labels or task.traceparent or task.total_left is not None else b""
        before = varint(len(lease))
        # The keys of lease and attempt have a byte each.
        size = len(before) + len(lease) + len(common) + len(attempt) + len(spec) + len(rest) + 2
        parts = (_ENTRY, varint(size), _LEASE, before, lease, common, _ATTEMPT, attempt, spec, rest)
        return Entry(b"".join(parts), name, place)

    def _read(self, stored: bytes) -> tuple[bytes, int] | None:
        try:
            spec = task_pb2.TaskSpec.FromString(stored)
        except (DecodeError, RecursionError):
            return None
        if spec.after or (spec.HasField("payload") and spec.payload.WhichOneof("value") == "json"):
            return None
        return field(_SPEC, stored), self._place(spec)

    def pack_message(self, assignment: lease_pb2.Assignment) -> Entry:
        """The entry of an assignment that was made as a message."""
        assignment.heartbeat_id = self._heartbeat_id
        encoded = field(_ENTRY, assignment.SerializeToString())
        return Entry(encoded, assignment.lease.task, self._place(assignment.spec))

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
    entries: Sequence[Entry | None],
) -> None:
    """Fill in the columns, of the tasks that have an entry, in claim order."""
    kept = [(task, entry) for task, entry in zip(tasks, entries, strict=True) if entry is not None]
    message.entries.extend([entry.encoded for _, entry in kept])
    message.tasks.extend([entry.task for _, entry in kept])
    message.generations.extend([task.generation for task, _ in kept])
    message.lease_ids.extend([task.lease_id for task, _ in kept])
    message.workloads.extend(packing.workloads())
    if len(message.workloads) > 1:
        message.places.extend([entry.place for _, entry in kept])


def task_name(task: ClaimedTask) -> str:
    """The resource name."""
    return f"tenants/{task.tenant_id}/tasks/{task.task_id}"


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
