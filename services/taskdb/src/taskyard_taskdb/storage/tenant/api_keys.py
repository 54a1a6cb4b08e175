"""API keys in the database: made, found by id, revoked. Only a digest of the secret is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from psycopg import errors as pg

from taskyard.errors import AlreadyExists, NotFound
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement

TENANT, ADMIN, SCHEDULER, RUNNER = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class RunnerScope:
    """What the holder of a runner key may be and claim; empty means any."""

    runner_id: str = ""
    tenants: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    # Rules that are checked when a runner registers.
    runner_id_pattern: str = ""
    backend_type_required: bool = False

    def pack(self) -> str:
        """The JSON document of the column."""
        fields = {
            "runner_id": self.runner_id,
            "tenants": list(self.tenants),
            "labels": dict(self.labels),
            "runner_id_pattern": self.runner_id_pattern,
            "backend_type_required": self.backend_type_required,
        }
        return json.dumps({name: value for name, value in fields.items() if value})

    @classmethod
    def unpack(cls, stored: Mapping[str, object] | None) -> RunnerScope:
        """The scope of the column's document."""
        if stored is None:
            return cls()
        tenants, labels = stored.get("tenants", ()), stored.get("labels", {})
        assert isinstance(tenants, list | tuple) and isinstance(labels, dict)
        return cls(
            str(stored.get("runner_id", "")),
            tuple(tenants),
            labels,
            str(stored.get("runner_id_pattern", "")),
            bool(stored.get("backend_type_required", False)),
        )


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A row of api_keys."""

    key_id: str
    kind: int
    secret_hash: bytes = field(repr=False)
    tenant_id: str | None = None
    read_only: bool = False
    runner_scope: RunnerScope = RunnerScope()
    description: str = ""
    create_time: datetime | None = None
    expire_time: datetime | None = None
    revoke_time: datetime | None = None
    parent_key_id: str | None = None


async def insert_key(tx: Tx, key: StoredKey) -> datetime:
    """Stores a new key; its creation time. Raises NotFound for the tenant, AlreadyExists for the id."""
    scope = key.runner_scope.pack() if key.kind == RUNNER else None
    values = (
        key.key_id,
        key.kind,
        key.tenant_id,
        key.secret_hash,
        key.read_only,
        scope,
        key.description,
        key.expire_time,
        key.parent_key_id,
    )
    try:
        row = await tx.fetch_row(statement("insert_api_key"), values)
    except pg.ForeignKeyViolation:
        raise NotFound("tenant", f"tenants/{key.tenant_id}") from None
    if row is None:
        raise AlreadyExists("API key", f"apiKeys/{key.key_id}")
    created: datetime = row[0]
    return created


async def find_key(tx: Tx, key_id: str) -> StoredKey | None:
    """The key of this id if it is in force now."""
    row = await tx.fetch_row(statement("find_api_key"), (key_id,))
    return _read(row) if row is not None else None


async def lock_key(tx: Tx, key_id: str) -> StoredKey | None:
    """The key of this id, in force or not, locked against revocation until the end of the transaction."""
    row = await tx.fetch_row(statement("lock_api_key"), (key_id,))
    return _read(row) if row is not None else None


async def list_keys(tx: Tx, tenant_id: str | None, after: str, size: int) -> list[StoredKey]:
    """Up to `size` keys whose ids follow `after`, of one tenant or of all principals."""
    params = {"tenant_id": tenant_id, "after": after, "size": size}
    return [_read(row) for row in await tx.fetch(statement("list_api_keys"), params)]


async def revoke_key(tx: Tx, key: StoredKey) -> tuple[StoredKey, list[str]]:
    """Revoke a locked key, and with it those of its sign-ins; the key, and the ids of the others."""
    revoked: dict[str, datetime] = dict(await tx.fetch(statement("revoke_api_key"), {"key_id": key.key_id}))
    revoke_time = revoked.pop(key.key_id)
    return replace(key, revoke_time=revoke_time), list(revoked)


def _read(row: Row) -> StoredKey:
    (
        found_id,
        kind,
        secret_hash,
        tenant_id,
        read_only,
        scope,
        description,
        created,
        expires,
        revoked,
        parent,
    ) = row
    return StoredKey(
        found_id,
        kind,
        secret_hash,
        tenant_id,
        read_only,
        RunnerScope.unpack(scope),
        description,
        created,
        expires,
        revoked,
        parent,
    )
