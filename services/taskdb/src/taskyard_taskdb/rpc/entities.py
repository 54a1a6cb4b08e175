"""EntityService, and the check that the entities of new tasks exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taskyard.errors import NotFound, TaskyardError
from taskyard.v1 import entity_pb2, entity_service_pb2, task_pb2
from taskyard_kit.auth import require_tenant
from taskyard_taskdb.rpc import access
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.storage.entity import entities
from taskyard_taskdb.storage.entity.entities import Entity, StoredEntity
from taskyard_taskdb.storage.pool import Pool

_ID = re.compile(r"[A-Za-z0-9._-]+")


def entity_name(tenant_id: str, entity: Entity) -> str:
    """The resource name."""
    return f"tenants/{tenant_id}/entityTypes/{entity.type}/entities/{entity.id}"


class EntityHandler:
    """EntityService."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def RegisterEntities(
        self, request: entity_service_pb2.RegisterEntitiesRequest, context: Any
    ) -> entity_service_pb2.RegisterEntitiesResponse:
        """Store entities; those that are stored stay as they are."""
        tenant_id = access.visible_tenant(request.parent)
        given = [Entity(item.type, item.id) for item in request.entities]
        count = await self._pool.run(lambda tx: entities.register(tx, tenant_id, given))
        return entity_service_pb2.RegisterEntitiesResponse(created_count=count)

    async def ListEntities(
        self, request: entity_service_pb2.ListEntitiesRequest, context: Any
    ) -> entity_service_pb2.ListEntitiesResponse:
        """Return one page of the entities of a type."""
        _, tenant_id, _, type_ = request.parent.split("/")
        require_tenant(tenant_id, "tenant", f"tenants/{tenant_id}")
        async with self._pool.reading() as tx:

            async def read(after: tuple[str, ...], size: int) -> list[StoredEntity]:
                return list(await entities.page(tx, tenant_id, type_, after[0] if after else "", size))

            found, token = await read_page(
                read,
                lambda entity: (entity.id,),
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListEntities", request.parent),
            )
        response = entity_service_pb2.ListEntitiesResponse(next_page_token=token)
        for entity in found:
            message: entity_pb2.Entity = response.entities.add()
            message.name = entity_name(tenant_id, Entity(type_, entity.id))
            set_time(message.create_time, entity.create_time)
        return response

    async def DeleteEntity(
        self, request: entity_service_pb2.DeleteEntityRequest, context: Any
    ) -> entity_service_pb2.DeleteEntityResponse:
        """Remove an entity from the registry."""
        _, tenant_id, _, type_, _, entity_id = request.name.split("/")
        require_tenant(tenant_id, "entity", request.name)
        found = await self._pool.run(lambda tx: entities.delete(tx, tenant_id, Entity(type_, entity_id)))
        if not found and not request.allow_missing:
            raise NotFound("entity", request.name)
        return entity_service_pb2.DeleteEntityResponse()


class EntityChecks:
    """Compares the entities of new tasks with the registry, for types with entities_must_exist."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def check(self, tenant_id: str, spec: task_pb2.TaskSpec, rules: TypeRules) -> None:
        """Raises NotFound for an entity that must exist and does not."""
        for error in (await self.missing(tenant_id, {0: (spec, rules)})).values():
            raise error

    async def missing(
        self, tenant_id: str, specs: Mapping[int, tuple[task_pb2.TaskSpec, TypeRules]]
    ) -> dict[int, TaskyardError]:
        """The error of each spec whose entity must exist and does not; one query for all of them.

        An entity that breaks the rules of ids is left to the validation of its task.
        """
        wanted = {
            position: Entity(spec.entity.type, spec.entity.id)
            for position, (spec, rules) in specs.items()
            if rules.definition.entities_must_exist and _ID.fullmatch(spec.entity.type + spec.entity.id)
        }
        if not wanted:
            return {}
        async with self._pool.reading() as tx:
            known = await entities.find(tx, tenant_id, set(wanted.values()))
        return {
            position: NotFound("entity", entity_name(tenant_id, entity))
            for position, entity in wanted.items()
            if entity not in known
        }
