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


class StoredKeyVerifier:
    """The KeyVerifier of taskdb; the server caches its results for a few seconds."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def verify(self, key: ApiKey) -> Principal | None:
        """Return the principal of a valid key, None for any other."""
        async with self._pool.reading() as tx:
            found = await api_keys.find_key(tx, key.id)
        return principal_of(found) if found is not None and key.matches(found.secret_hash) else None


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
