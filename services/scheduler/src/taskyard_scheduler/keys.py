"""Keys of runners, tenants and administrators, verified by taskdb."""

from __future__ import annotations

from taskyard import errors
from taskyard.v1 import api_key_pb2
from taskyard_kit.auth import EVERYTHING, Kind, Principal
from taskyard_kit.keys import ApiKey
from taskyard_scheduler.taskdb import Taskdb

_KINDS = {
    api_key_pb2.PRINCIPAL_KIND_TENANT: Kind.TENANT,
    api_key_pb2.PRINCIPAL_KIND_ADMIN: Kind.ADMIN,
    api_key_pb2.PRINCIPAL_KIND_SCHEDULER: Kind.SCHEDULER,
    api_key_pb2.PRINCIPAL_KIND_RUNNER: Kind.RUNNER,
}
READ_ONLY = frozenset({"read"})


class TaskdbKeys:
    """Verifies keys with taskdb; the server caches the result for a short time."""

    def __init__(self, taskdb: Taskdb) -> None:
        self._taskdb = taskdb

    async def verify(self, key: ApiKey) -> Principal | None:
        """The principal of a key in force, None for any other key; raises StorageUnavailable."""
        try:
            response = await self._taskdb.verify_key(key.text)
        except errors.Unauthenticated:
            return None
        return principal_of(response.api_key)


def principal_of(key: api_key_pb2.ApiKey) -> Principal | None:
    """The principal of this key; None for a kind that this version does not have."""
    kind = _KINDS.get(key.kind)
    if kind is None:
        return None
    scope = key.runner_scope
    return Principal(
        kind,
        key.name.removeprefix("apiKeys/"),
        tenant=key.tenant,
        scopes=READ_ONLY if key.read_only else EVERYTHING,
        runner=scope.runner_id,
        tenants=frozenset(scope.tenants) or frozenset({"*"}),
        labels=frozenset(scope.labels.items()),
    )
