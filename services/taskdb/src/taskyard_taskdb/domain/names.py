"""Resource names: parsing, formatting, and the identity rule for ids."""

import re

from taskyard.errors import FieldInvalid

LENGTHS = {
    "tenants": 64,
    "tasks": 256,
    "runners": 128,
    "taskTypes": 128,
    "slots": 64,
    "apiKeys": 64,
    "schedules": 55,
    # The group of the children of a task has ".children" behind its id.
    "groups": 265,
    "limits": 64,
}
# They match the characters of an id but mean something else in a path or, "-", in AIP-159.
RESERVED = frozenset({".", "..", "-"})
_ID = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN = 80


def tenant_name(tenant_id: str) -> str:
    """tenants/{tenant}"""
    return f"tenants/{tenant_id}"


def task_name(tenant_id: str, task_id: str) -> str:
    """tenants/{tenant}/tasks/{task}"""
    return f"tenants/{tenant_id}/tasks/{task_id}"


def run_name(tenant_id: str, task_id: str, generation: int) -> str:
    """tenants/{tenant}/tasks/{task}/runs/{generation}"""
    return f"tenants/{tenant_id}/tasks/{task_id}/runs/{generation}"


def checkpoint_name(tenant_id: str, task_id: str, sequence: int) -> str:
    """tenants/{tenant}/tasks/{task}/checkpoints/{sequence}"""
    return f"tenants/{tenant_id}/tasks/{task_id}/checkpoints/{sequence}"


def runner_name(runner_id: str) -> str:
    """runners/{runner}"""
    return f"runners/{runner_id}"


def task_type_name(tenant_id: str, task_type: str) -> str:
    """tenants/{tenant}/taskTypes/{task_type}"""
    return f"tenants/{tenant_id}/taskTypes/{task_type}"


def limit_name(tenant_id: str, limit_id: str) -> str:
    """tenants/{tenant}/limits/{limit}"""
    return f"tenants/{tenant_id}/limits/{limit_id}"


def schedule_name(tenant_id: str, schedule_id: str) -> str:
    """tenants/{tenant}/schedules/{schedule}"""
    return f"tenants/{tenant_id}/schedules/{schedule_id}"


def group_name(tenant_id: str, group_id: str) -> str:
    """tenants/{tenant}/groups/{group}"""
    return f"tenants/{tenant_id}/groups/{group_id}"


def parse_tenant_name(name: str, field: str = "parent") -> str:
    """The tenant id; "-", the wildcard for every tenant, is returned unchanged. Raises FieldInvalid."""
    if name == "tenants/-":
        return "-"
    return _segments(name, field, "tenants")[0]


def parse_task_name(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and task id. Raises FieldInvalid."""
    tenant_id, task_id = _segments(name, field, "tenants", "tasks")
    return tenant_id, task_id


def parse_task_type_name(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and task type id. Raises FieldInvalid."""
    tenant_id, task_type = _segments(name, field, "tenants", "taskTypes")
    return tenant_id, task_type


def parse_limit_name(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and limit id. Raises FieldInvalid."""
    tenant_id, limit_id = _segments(name, field, "tenants", "limits")
    return tenant_id, limit_id


def parse_schedule_name(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and schedule id. Raises FieldInvalid."""
    tenant_id, schedule_id = _segments(name, field, "tenants", "schedules")
    return tenant_id, schedule_id


def parse_group_name(name: str, field: str = "name") -> tuple[str, str]:
    """Tenant and group id. Raises FieldInvalid."""
    tenant_id, group_id = _segments(name, field, "tenants", "groups")
    return tenant_id, group_id


def parse_runner_name(name: str, field: str = "name") -> str:
    """The runner id. Raises FieldInvalid."""
    return _segments(name, field, "runners")[0]


def parse_checkpoint_name(name: str, field: str = "name") -> tuple[str, str, int]:
    """Tenant, task id and sequence; 0 for "latest". Raises FieldInvalid."""
    task, found, last = name.rpartition("/checkpoints/")
    number = "0" if last == "latest" else last
    if not found or not number.isascii() or not number.isdigit() or int(number) >= 2**63:
        raise _malformed(name, field, "tenants/{tenant}/tasks/{task}/checkpoints/{sequence or latest}")
    if last != "latest" and int(number) == 0:
        raise FieldInvalid.of(
            field, 'checkpoint 0 does not exist; sequences start at 1, "latest" is the newest'
        )
    return *parse_task_name(task, field), int(number)


def is_id(value: str, collection: str) -> bool:
    """Whether it keeps the identity rule."""
    well_formed = len(value) <= LENGTHS[collection] and _ID.fullmatch(value) is not None
    return well_formed and value not in RESERVED


def check_id(value: str, collection: str, field: str) -> str:
    """The id itself. Raises FieldInvalid when it breaks the identity rule or is too long."""
    limit = LENGTHS[collection]
    if len(value) > limit:
        raise FieldInvalid.of(
            field, f"an id of {collection} has at most {limit} characters, not {len(value)}"
        )
    if value in RESERVED or not _ID.fullmatch(value):
        allowed = 'letters, digits, ".", "_" and "-", and not "-", "." or ".." alone'
        message = f"{value[:_SHOWN]!r} is not an id; use {allowed}"
        raise FieldInvalid.of(field, message)
    return value


def _segments(name: str, field: str, *collections: str) -> list[str]:
    parts = name.split("/")
    if len(parts) != 2 * len(collections) or tuple(parts[::2]) != collections:
        raise _malformed(name, field, "/".join(f"{c}/{{{c.removesuffix('s')}}}" for c in collections))
    return [check_id(part, of, field) for part, of in zip(parts[1::2], collections, strict=True)]


def _malformed(name: str, field: str, form: str) -> FieldInvalid:
    return FieldInvalid.of(field, f"must be {form}, not {name[:_SHOWN]!r}")


def parse_fencing_token(token: str, field: str = "fencing_token") -> tuple[int, int]:
    """Generation and lease id. Raises FieldInvalid."""
    match = re.fullmatch(r"([0-9]{1,19})\.(-?[0-9]{1,19})", token)
    if match is None:
        message = f"must be {{generation}}.{{lease_id}} as in TASKYARD_FENCE, not {token[:_SHOWN]!r}"
        raise FieldInvalid.of(field, message)
    return int(match[1]), int(match[2])
