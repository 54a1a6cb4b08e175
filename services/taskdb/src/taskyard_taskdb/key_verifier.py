"""Verifies API keys against the database and returns their principals."""

from __future__ import annotations

from taskyard_kit.auth import EVERYTHING, Kind, Principal
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenant import api_keys

KINDS = {
    api_keys.TENANT: Kind.TENANT,
    api_keys.ADMIN: Kind.ADMIN,
    api_keys.SCHEDULER: Kind.SCHEDULER,
    api_keys.RUNNER: Kind.RUNNER,
}


_REMEMBERED = 10_000


class StoredKeyVerifier:
    """The KeyVerifier of taskdb; the server caches its results for a few seconds.

    Under load all connections for work are in use. Schedulers and runners must renew leases meanwhile, so
    their keys are read again through the reserve that heartbeats have.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._internal: dict[str, api_keys.StoredKey] = {}

    async def verify(self, key: ApiKey) -> Principal | None:
        """Return the principal of a valid key, None for any other."""
        found = await self._find(key)
        if found is None or not key.matches(found.secret_hash):
            return None
        if found.kind in (api_keys.SCHEDULER, api_keys.RUNNER) and (
            key.id in self._internal or len(self._internal) < _REMEMBERED
        ):
            self._internal[key.id] = found
        return principal_of(found)

    async def _find(self, key: ApiKey) -> api_keys.StoredKey | None:
        """The stored key. Keys of schedulers and runners that were valid before use the reserve."""
        before = self._internal.get(key.id)
        if before is not None and key.matches(before.secret_hash):
            async with self._pool.single(reserve=True) as tx:
                return await api_keys.find_key(tx, key.id)
        async with self._pool.reading() as tx:
            return await api_keys.find_key(tx, key.id)


def principal_of(key: api_keys.StoredKey) -> Principal:
    """Return the principal that a key authenticates."""
    scope = key.runner_scope
    is_runner = key.kind == api_keys.RUNNER
    return Principal(
        KINDS[key.kind],
        key.key_id,
        tenant=key.tenant_id or "",
        scopes=frozenset({"read"}) if key.read_only else EVERYTHING,
        runner=scope.runner_id,
        tenants=frozenset(scope.tenants or ("*",)) if is_runner else frozenset(),
        labels=frozenset(scope.labels.items()),
    )
