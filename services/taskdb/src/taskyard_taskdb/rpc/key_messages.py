"""API keys as callers see them: without the secret."""

from __future__ import annotations

from taskyard.v1 import api_key_pb2
from taskyard_taskdb.rpc.durations import set_time
from taskyard_taskdb.storage.tenant import api_keys


def fill_key(message: api_key_pb2.ApiKey, key: api_keys.StoredKey) -> None:
    """Fill in all but the secret, of which only a digest is stored."""
    message.name = f"apiKeys/{key.key_id}"
    message.kind = api_key_pb2.PrincipalKind.ValueType(key.kind)
    message.tenant = key.tenant_id or ""
    message.read_only = key.read_only
    message.description = key.description
    if key.kind == api_keys.RUNNER:
        scope = key.runner_scope
        message.runner_scope.runner_id = scope.runner_id
        message.runner_scope.tenants.extend(scope.tenants)
        message.runner_scope.labels.update(scope.labels)
    if key.create_time is not None:
        set_time(message.create_time, key.create_time)
    if key.expire_time is not None:
        set_time(message.expire_time, key.expire_time)
    if key.revoke_time is not None:
        set_time(message.revoke_time, key.revoke_time)
