"""Resource names: taken apart, put together, and checked against what the caller may see."""

from __future__ import annotations

from taskyard.errors import FieldInvalid
from taskyard_kit.auth import require_tenant

# They match the pattern of an id but mean something else in a path or in AIP-159.
_RESERVED = frozenset({".", "..", "-"})


def task_name(tenant_id: str, task_id: str) -> str:
    """tenants/{tenant}/tasks/{task}"""
    return f"tenants/{tenant_id}/tasks/{task_id}"


def parse_task(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and task of a name; raises NotFound if the caller does not see the tenant."""
    parts = name.split("/")
    if len(parts) != 4 or parts[0] != "tenants" or parts[2] != "tasks" or not (parts[1] and parts[3]):
        raise FieldInvalid.of(field, f"must be tenants/{{tenant}}/tasks/{{task}}, not {name[:64]!r}")
    _refuse_reserved(field, parts[1], parts[3])
    require_tenant(parts[1], "task", name)
    return parts[1], parts[3]


def parse_tenant(name: str, field: str = "parent") -> str:
    """The tenant of tenants/{tenant}; raises NotFound if the caller does not see it."""
    parts = name.split("/")
    if len(parts) != 2 or parts[0] != "tenants" or not parts[1]:
        raise FieldInvalid.of(field, f"must be tenants/{{tenant}}, not {name[:64]!r}")
    _refuse_reserved(field, parts[1])
    require_tenant(parts[1], "tenant", name)
    return parts[1]


def _refuse_reserved(field: str, *segments: str) -> None:
    for segment in segments:
        if segment in _RESERVED:
            raise FieldInvalid.of(field, f"{segment!r} is not an id")
