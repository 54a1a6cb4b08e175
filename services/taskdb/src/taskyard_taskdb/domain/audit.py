"""The audit's view of the change log: names of what changed, and filters that ask for them."""

from __future__ import annotations

from dataclasses import dataclass

from taskyard.errors import FilterInvalid
from taskyard_taskdb.domain.change import BY_WORD, ResourceKind
from taskyard_taskdb.domain.filter import Comparison

_COLLECTIONS = {
    "tasks": ResourceKind.TASK,
    "taskTypes": ResourceKind.TASK_TYPE,
    "quarantines": ResourceKind.QUARANTINE,
    "webhooks": ResourceKind.WEBHOOK,
    "runners": ResourceKind.RUNNER,
    "apiKeys": ResourceKind.API_KEY,
    "tenants": ResourceKind.TENANT,
    "auditRanges": ResourceKind.AUDIT,
    "schedules": ResourceKind.SCHEDULE,
    "groups": ResourceKind.GROUP,
    "limits": ResourceKind.LIMIT,
}
_NAMES = {kind: collection for collection, kind in _COLLECTIONS.items()}
_OWNED = (
    ResourceKind.TASK,
    ResourceKind.TASK_TYPE,
    ResourceKind.QUARANTINE,
    ResourceKind.WEBHOOK,
    ResourceKind.SCHEDULE,
    ResourceKind.GROUP,
    ResourceKind.LIMIT,
)
_UNOWNED = tuple(name for name, kind in _COLLECTIONS.items() if kind not in _OWNED)


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource that a name refers to; `tenant_id` is None where the name has none."""

    kind: ResourceKind
    tenant_id: str | None
    resource_id: str


def resource_name(kind: int, tenant_id: str, resource_id: str) -> str:
    """The name of what a change is about."""
    known = ResourceKind(kind)
    own = f"{_NAMES[known]}/{resource_id}"
    return f"tenants/{tenant_id}/{own}" if known in _OWNED else own


def read_resource(node: Comparison) -> Resource:
    """What a filter's comparison of `resource` names; with a prefix the last part may be cut off.

    Raises FilterInvalid for what can be no name.
    """
    parts = str(node.value).split("/")
    if len(parts) == 2 and parts[0] in _UNOWNED:
        return Resource(_COLLECTIONS[parts[0]], None, parts[1])
    if len(parts) == 4 and parts[0] == "tenants" and _COLLECTIONS.get(parts[2]) in _OWNED:
        return Resource(_COLLECTIONS[parts[2]], parts[1], parts[3])
    raise FilterInvalid.of(
        "filter",
        f'"{str(node.value)[:80]}" names no resource; write a full name such as "tenants/acme/tasks/t-1", '
        '"runners/host-1" or, for a prefix, "tenants/acme/tasks/*"',
    )


def read_events(node: Comparison) -> list[int]:
    """The events that a filter's comparison of `event_type` names. Raises FilterInvalid for none."""
    value = str(node.value)
    found = [
        int(e) for word, e in BY_WORD.items() if word == value or (node.prefix and word.startswith(value))
    ]
    if not found:
        raise FilterInvalid.of(
            "filter", f'"{value[:80]}" is no event type; known are {", ".join(sorted(BY_WORD))}'
        )
    return found
