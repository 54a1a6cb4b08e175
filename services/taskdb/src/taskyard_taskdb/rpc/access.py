"""Resource names in requests: parsed, and not found where the caller does not see the tenant."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard.errors import FieldInvalid
from taskyard_kit.auth import Kind, current_principal, find_principal, require_tenant
from taskyard_taskdb.domain.names import parse_task_name, parse_tenant_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType


def visible_task(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant id and task id of a name. Raises FieldInvalid, or NotFound for a tenant that is not visible."""
    tenant_id, task_id = parse_task_name(name, field)
    require_tenant(tenant_id, "task", name)
    return tenant_id, task_id


def visible_tenant(name: str, field: str = "parent") -> str:
    """The tenant id of a name. Raises FieldInvalid, or NotFound if the caller does not see it."""
    tenant_id = parse_tenant_name(name, field)
    if tenant_id == "-":
        raise FieldInvalid.of(field, 'must name one tenant, not "-"')
    require_tenant(tenant_id, "tenant", name)
    return tenant_id


def visible_scope(parent: str) -> str | None:
    """The tenant that a list is restricted to, None for all; with a tenant's key, "-" is that tenant."""
    if parse_tenant_name(parent) != "-":
        return visible_tenant(parent)
    principal = current_principal()
    return principal.tenant if principal.kind is Kind.TENANT else None


def tasks_of(parent: str, names: Sequence[str], field: str = "names") -> list[tuple[str, str]]:
    """Tenant and task ids of names that must all belong to `parent`. Raises FieldInvalid or NotFound."""
    tenant_id = visible_tenant(parent)
    keys = [visible_task(name, f"{field}[{index}]") for index, name in enumerate(names)]
    for index, key in enumerate(keys):
        if key[0] != tenant_id:
            raise FieldInvalid.of(f"{field}[{index}]", f"must be a task of {parent}, not {names[index]!r}")
    return keys


def calling_tenant() -> str:
    """The tenant whose key the running call has; empty for other keys and outside of a call."""
    principal = find_principal()
    return "" if principal is None else principal.tenant


def caller() -> Actor:
    """The caller, as the actor of the changes that the call makes."""
    return Actor(ActorType.USER, current_principal().id)
