"""The registry of entities: which business objects of a tenant exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from psycopg import errors as pg

from taskyard.errors import NotFound
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


class Entity(NamedTuple):
    """Type and id of an entity."""

    type: str
    id: str


class StoredEntity(NamedTuple):
    """An entity of a known type, and since when it is registered."""

    id: str
    create_time: datetime


def _keys(tenant_id: str, entities: Collection[Entity]) -> dict[str, object]:
    return {
        "tenant": tenant_id,
        "types": arrays.texts([entity.type for entity in entities]),
        "ids": arrays.texts([entity.id for entity in entities]),
    }


async def register(tx: Tx, tenant_id: str, entities: Collection[Entity]) -> int:
    """Store entities; returns how many are new. Raises NotFound for the tenant."""
    try:
        row = await tx.fetch_row(statement("insert_entities"), _keys(tenant_id, entities))
    except pg.ForeignKeyViolation:
        raise NotFound("tenant", f"tenants/{tenant_id}") from None
    assert row is not None, "an aggregate has a row"
    count: int = row[0]
    return count


async def find(tx: Tx, tenant_id: str, entities: Collection[Entity]) -> set[Entity]:
    """Return those of the entities that are registered."""
    return {Entity(*row) for row in await tx.fetch(statement("find_entities"), _keys(tenant_id, entities))}


async def page(tx: Tx, tenant_id: str, type_: str, after: str, limit: int) -> Sequence[StoredEntity]:
    """Return up to `limit` entities of a type behind an id, by id."""
    values = {"tenant": tenant_id, "type": type_, "after": after, "limit": limit}
    return [StoredEntity(*row) for row in await tx.fetch(statement("list_entities"), values)]


async def delete(tx: Tx, tenant_id: str, entity: Entity) -> bool:
    """Remove an entity; whether it was registered."""
    values = {"tenant": tenant_id, "type": entity.type, "id": entity.id}
    return await tx.execute(statement("delete_entity"), values) > 0
