"""CreateChildTasks and ReadChildOutcomes: what a running task creates, and what became of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from taskyard.errors import FieldInvalid, LeaseNotHeld, NotFound, StaleGeneration
from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.group import children_group
from taskyard_taskdb.domain.names import parse_task_name, task_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.convert import make_raw, raw_payload
from taskyard_taskdb.rpc.create import CreateHandler
from taskyard_taskdb.rpc.response_size import fitting
from taskyard_taskdb.rpc.validate import validate
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import children, tasks
from taskyard_taskdb.storage.report import checkpoints
from taskyard_taskdb.storage.transition.task_rows import Key

MAX_CHILDREN = 100
MAX_OUTCOMES = 1000
# Of the results in a response, which has to stay below the 4 MiB that gRPC receives by default.
MAX_OUTCOME_BYTES = 3 * 1024 * 1024
_PLAIN_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PLAIN_PARENT = 160


class ChildHandler:
    """LeaseService.CreateChildTasks and ReadChildOutcomes, for the holder of the lease of the parent."""

    def __init__(self, pool: Pool, create: CreateHandler) -> None:
        self._pool = pool
        self._create = create

    async def CreateChildTasks(
        self, request: lease_service_pb2.CreateChildTasksRequest, context: Any
    ) -> lease_service_pb2.CreateChildTasksResponse:
        """Check the lease, then create the tasks for its tenant; spawned ones that exist are returned."""
        if not 1 <= len(request.children) <= MAX_CHILDREN:
            raise FieldInvalid.of(
                "children", f"must have 1 to {MAX_CHILDREN} items, not {len(request.children)}"
            )
        parent = await self._check_lease(request)
        ids = await self._spawned_ids(parent, request.children)
        known = await self._known(parent, request.children, ids)
        items = [
            _request(request.lease.task, child, number, ids.get(number, ""))
            for number, child in enumerate(request.children)
            if ids.get(number) not in known
        ]
        actor = Actor(ActorType.RUNNER, request.runner_id)
        made = iter(await self._create.create_children(parent[0], items, actor) if items else ())
        names = [
            task_name(parent[0], ids[number]) if ids.get(number) in known else next(made)
            for number in range(len(request.children))
        ]
        return lease_service_pb2.CreateChildTasksResponse(tasks=names)

    async def ReadChildOutcomes(
        self, request: lease_service_pb2.ReadChildOutcomesRequest, context: Any
    ) -> lease_service_pb2.ReadChildOutcomesResponse:
        """How children have ended; without results while one of them is live."""
        if not 1 <= len(request.tasks) <= MAX_OUTCOMES:
            raise FieldInvalid.of("tasks", f"must have 1 to {MAX_OUTCOMES} items, not {len(request.tasks)}")
        parent = await self._check_lease(request)
        keys = [parse_task_name(name, f"tasks[{number}]") for number, name in enumerate(request.tasks)]
        async with self._pool.reading() as tx:
            found = await children.outcomes(tx, parent, [key[1] for key in keys], MAX_OUTCOME_BYTES)
        for key, outcome in zip(keys, found, strict=False):
            if key != (parent[0], outcome.task_id):
                raise NotFound("child", task_name(*key))
        if len(found) < len(keys) and (not found or found[-1].phase is None):
            raise NotFound("child", task_name(*keys[len(found)]))
        made = (_outcome_message(parent[0], outcome) for outcome in found)
        return lease_service_pb2.ReadChildOutcomesResponse(outcomes=fitting(made))

    async def _check_lease(
        self,
        request: lease_service_pb2.CreateChildTasksRequest | lease_service_pb2.ReadChildOutcomesRequest,
    ) -> Key:
        """The task of a lease that the runner holds."""
        if not request.runner_id:
            raise FieldInvalid.of("runner_id", "must not be empty")
        validate(request.lease)
        lease = request.lease
        tenant_id, task_id = parse_task_name(lease.task)
        # A lease may end between this check and a create; the result is as if the create had come first.
        async with self._pool.reading() as tx:
            holder = await checkpoints.holder(tx, tenant_id, task_id)
        if holder is None or holder.runner_id != request.runner_id:
            raise LeaseNotHeld(lease.task, lease.generation)
        if (holder.generation, holder.lease_id) != (lease.generation, lease.lease_id):
            raise StaleGeneration(lease.task, lease.generation, holder.generation)
        return tenant_id, task_id

    async def _spawned_ids(self, parent: Key, wanted: Sequence[lease_pb2.ChildTask]) -> dict[int, str]:
        """The ids of the spawned children, by their place in the request.

        They are of this very parent: a later task of the same id has children of its own.
        """
        if not any(child.spawned for child in wanted):
            return {}
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, *parent)
        if record is None:
            raise NotFound("task", task_name(*parent))
        uid = record.uid.hex
        return {n: spawned_id(parent[1], uid, child.key) for n, child in enumerate(wanted) if child.spawned}

    async def _known(
        self, parent: Key, wanted: Sequence[lease_pb2.ChildTask], ids: Mapping[int, str]
    ) -> dict[str, children.KnownTask]:
        """The spawned children that exist. Raises FieldInvalid for one that was spawned as something else."""
        if not ids:
            return {}
        async with self._pool.reading() as tx:
            found = await children.find(tx, parent[0], list(ids.values()))
        known = {id: task for id, task in found.items() if task.parent_task_id == parent[1]}
        for number, id in ids.items():
            if id in known:
                _check_same(wanted[number], known[id], number)
        return known


def spawned_id(parent_id: str, parent_uid: str, key: str) -> str:
    """The id of a spawned child; readable unless the key or the id of the parent forbid it."""
    if len(parent_id) <= _PLAIN_PARENT and _PLAIN_KEY.fullmatch(key):
        return f"{parent_id}.{key}.{parent_uid[-8:]}"
    digest = hashlib.sha256(f"{parent_uid} {key}".encode()).hexdigest()
    return f"{parent_id[:_PLAIN_PARENT]}.{digest[:32]}"


def _check_same(child: lease_pb2.ChildTask, known: children.KnownTask, number: int) -> None:
    stored = task_pb2.TaskSpec.FromString(known.spec)
    if _essence(child.task.spec) != _essence(stored):
        problem = (
            f"key {child.key!r} names {known.task_id}, which was spawned with another function or payload; "
            "a function that starts again has to spawn the same children in the same order, or name each "
            "with a key"
        )
        raise FieldInvalid.of(f"children[{number}].task.spec", problem)


def _essence(spec: task_pb2.TaskSpec) -> tuple[object, ...]:
    """What a type, which fills in the rest, leaves as it is."""
    kind = spec.execution.WhichOneof("kind") or ""
    payload = raw_payload(spec.payload)
    return kind, spec.execution.function.function, spec.task_type, payload.raw


def _outcome_message(tenant_id: str, outcome: children.ChildOutcome) -> lease_pb2.ChildOutcome:
    message = lease_pb2.ChildOutcome(task=task_name(tenant_id, outcome.task_id))
    if outcome.phase is not None:
        message.phase = task_pb2.TaskPhase.ValueType(outcome.phase)
    if outcome.result is not None:
        message.result.MergeFromString(outcome.result)
        make_raw(message.result.output)
    if outcome.error is not None:
        message.error.MergeFromString(outcome.error)
    return message


def _request(
    parent: str, child: lease_pb2.ChildTask, number: int, task_id: str
) -> task_service_pb2.CreateTaskRequest:
    if not 1 <= len(child.key) <= 256:
        raise FieldInvalid.of(
            f"children[{number}].key", f"must have 1 to 256 characters, not {len(child.key)}"
        )
    # A spawned child is found by its id; the request id is for repetitions that race with each other.
    key = f"spawned {task_id}" if task_id else child.key
    request = task_service_pb2.CreateTaskRequest(request_id=_request_id(parent, key), task_id=task_id)
    request.task.spec.CopyFrom(child.task.spec)
    metadata = request.task.metadata
    metadata.labels.update(child.task.metadata.labels)
    if child.task.metadata.HasField("annotations"):
        metadata.annotations.CopyFrom(child.task.metadata.annotations)
    metadata.parent_task = parent
    metadata.group = child.task.metadata.group or children_group(parse_task_name(parent)[1])
    return request


def _request_id(parent: str, key: str) -> str:
    digest = hashlib.sha256(f"{parent} {key}".encode()).hexdigest()
    return f"child:{digest[:56]}"
