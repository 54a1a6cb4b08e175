"""Task types by the name in a task: of its tenant, else of tenant "system", cached for a short time."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from taskyard.v1 import common_pb2, task_type_pb2
from taskyard_taskdb.domain.bounded_cache import BoundedCache
from taskyard_taskdb.domain.names import is_id
from taskyard_taskdb.rpc.convert import raw_payload
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenant import task_types
from taskyard_taskdb.storage.tenant.tenants import TTL

_CAPACITY = 2000
_CAPACITY_BYTES = 32 * 1024 * 1024
_SYSTEM = "system"

K = TypeVar("K")
T = TypeVar("T")
Revision = tuple[str, str, int]
"""Tenant, type and revision. Revisions start again at 1 when a type is deleted and created again."""
_Cached = BoundedCache[K, tuple[float, T]]
"""With the time until which a value is used."""


class TypeCache:
    """Types and their revisions as they were at most `ttl` ago; missing types are cached too."""

    def __init__(self, pool: Pool, ttl: timedelta = TTL) -> None:
        self._pool = pool
        self._ttl = ttl.total_seconds()
        self._rules: _Cached[tuple[str, str], TypeRules | None] = _cached()
        self._configs: _Cached[Revision, common_pb2.Payload | None] = _cached()
        self._results: _Cached[Revision, bytes] = _cached()
        self._checking: tuple[float, Container[str]] = (0.0, ())

    async def find(self, tenant_id: str, task_type: str) -> TypeRules | None:
        """The rules for a task of this tenant with this type; None if the type is not registered."""
        key = (tenant_id, task_type)
        found = self._rules.get(key)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        async with self._pool.reading() as tx:
            row = await task_types.resolve(tx, tenant_id, task_type)
        old = found[1] if found is not None else None
        rules = None
        if row is not None:
            # Compiled patterns and schemas are kept while the type is unchanged.
            rules = old if old is not None and old.is_of(row) else TypeRules(row)
        # A parsed definition takes a multiple of its bytes.
        size = 1000 + (3 * len(row.definition) if row is not None else 0)
        self._rules.put(key, (time.monotonic() + self._ttl, rules), size)
        return rules

    async def find_all(self, tenant_id: str, types: Iterable[str]) -> dict[str, TypeRules | None]:
        """The rules for each of these types; names that are empty or malformed are left out."""
        return {name: await self.find(tenant_id, name) for name in set(types) if is_id(name, "taskTypes")}

    async def configs(self, revisions: Iterable[Revision]) -> dict[Revision, common_pb2.Payload | None]:
        """The configurations of these revisions in raw form, as runners receive them; None without one."""
        return await self._of_revisions(self._configs, revisions, _config)

    async def result_schemas(self, revisions: Iterable[Revision]) -> dict[Revision, bytes]:
        """The texts of the result schemas of these revisions; empty for a revision without one."""
        return await self._of_revisions(self._results, revisions, _result_schema)

    async def _of_revisions(
        self,
        cached: _Cached[Revision, T],
        revisions: Iterable[Revision],
        read: Callable[[bytes | None], T],
    ) -> dict[Revision, T]:
        keys, now = set(revisions), time.monotonic()
        kept = {key: cached.get(key) for key in keys}
        values = {key: found[1] for key, found in kept.items() if found is not None and found[0] > now}
        missing = keys - values.keys()
        if missing:
            async with self._pool.reading() as tx:
                found = await task_types.read_revisions(tx, missing)
            for key in missing:
                definition = found.get(key)
                values[key] = read(definition)
                cached.put(key, (time.monotonic() + self._ttl, values[key]), 500 + len(definition or b""))
        return values

    async def checking(self) -> Container[str]:
        """The tenants whose results may have to match a schema; empty (false) if there are none."""
        due, found = self._checking
        if due <= time.monotonic():
            async with self._pool.reading() as tx:
                tenants = await task_types.checking_tenants(tx)
            found = _ALL_TENANTS if _SYSTEM in tenants else tenants
            self._checking = (time.monotonic() + self._ttl, found)
        return found

    def forget(self, tenant_id: str | None = None) -> None:
        """Drop cached types of a tenant after a change; of all tenants for None or the system tenant."""
        self._checking = (0.0, ())
        all_tenants = tenant_id in (None, _SYSTEM)
        self._rules.drop_all(lambda key: all_tenants or key[0] == tenant_id)
        for cached in (self._configs, self._results):
            cached.drop_all(lambda key: all_tenants or key[0] == tenant_id)


def _cached() -> BoundedCache[Any, Any]:
    return BoundedCache(_CAPACITY, _CAPACITY_BYTES)


def _config(definition: bytes | None) -> common_pb2.Payload | None:
    if definition is None:
        return None
    parsed = task_type_pb2.TaskType.FromString(definition)
    return raw_payload(parsed.config) if parsed.HasField("config") else None


def _result_schema(definition: bytes | None) -> bytes:
    return b"" if definition is None else task_type_pb2.TaskType.FromString(definition).result_schema


class _AllTenants:
    def __contains__(self, tenant_id: object) -> bool:
        return True


_ALL_TENANTS = _AllTenants()
