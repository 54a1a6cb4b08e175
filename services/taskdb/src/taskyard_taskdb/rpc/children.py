"""Tasks that running tasks create: as their tenant, linked to them, and only by who holds the lease."""

from __future__ import annotations

import hashlib
from typing import Any

from taskyard.errors import FieldInvalid, LeaseNotHeld, StaleGeneration
from taskyard.v1 import lease_pb2, lease_service_pb2, task_service_pb2
from taskyard_kit.validation import validate
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.create import CreateMethods
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report import checkpoints

MAX_CHILDREN = 100


class ChildCreation:
    """LeaseService.CreateChildTasks."""

    _pool: Pool
    _tasks: CreateMethods

    async def CreateChildTasks(
        self, request: lease_service_pb2.CreateChildTasksRequest, context: Any
    ) -> lease_service_pb2.CreateChildTasksResponse:
        """Check the lease, then create as the tenant would."""
        if not request.runner_id:
            raise FieldInvalid.of("runner_id", "must not be empty")
        if not 1 <= len(request.children) <= MAX_CHILDREN:
            raise FieldInvalid.of(
                "children", f"must have 1 to {MAX_CHILDREN} items, not {len(request.children)}"
            )
        validate(request.lease)
        tenant_id, task_id = parse_task_name(request.lease.task)
        await self._check_lease(request.runner_id, request.lease, tenant_id, task_id)
        items = [_request(request.lease.task, child, n) for n, child in enumerate(request.children)]
        made = await self._tasks.create_children(tenant_id, items, Actor(ActorType.RUNNER, request.runner_id))
        return lease_service_pb2.CreateChildTasksResponse(tasks=made)

    async def _check_lease(
        self, runner_id: str, lease: lease_pb2.LeaseRef, tenant_id: str, task_id: str
    ) -> None:
        # A lease that ends between this and the create is no harm: the child might have come just before.
        async with self._pool.reading() as tx:
            holder = await checkpoints.holder(tx, tenant_id, task_id)
        if holder is None or holder.runner_id != runner_id:
            raise LeaseNotHeld(lease.task, lease.generation)
        if (holder.generation, holder.lease_id) != (lease.generation, lease.lease_id):
            raise StaleGeneration(lease.task, lease.generation, holder.generation)


def _request(parent: str, child: lease_pb2.ChildTask, number: int) -> task_service_pb2.CreateTaskRequest:
    if not 1 <= len(child.key) <= 256:
        raise FieldInvalid.of(
            f"children[{number}].key", f"must have 1 to 256 characters, not {len(child.key)}"
        )
    request = task_service_pb2.CreateTaskRequest(request_id=_request_id(parent, child.key))
    request.task.spec.CopyFrom(child.task.spec)
    metadata = request.task.metadata
    metadata.labels.update(child.task.metadata.labels)
    if child.task.metadata.HasField("annotations"):
        metadata.annotations.CopyFrom(child.task.metadata.annotations)
    metadata.parent_task = parent
    return request


def _request_id(parent: str, key: str) -> str:
    digest = hashlib.sha256(f"{parent} {key}".encode()).hexdigest()
    return f"child:{digest[:56]}"
