"""spec.limits: read from requests, and written back in its stored form."""

from __future__ import annotations

import re

from taskyard.errors import FieldInvalid, NotFound
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.limit import MAX_LIMITS, MAX_UNITS, LimitUse
from taskyard_taskdb.domain.names import limit_name

_LIMIT = re.compile(r"(?:tenants/([A-Za-z0-9._-]{1,64})/limits/)?([A-Za-z0-9._-]{1,64})")
_KEY = re.compile(r"[A-Za-z0-9._:@/+=-]{0,128}")
_PATH = "task.spec.limits"


def take_limits(spec: task_pb2.TaskSpec, tenant_id: str) -> tuple[tuple[LimitUse, ...], bytes]:
    """Remove the limits from the spec; return them, and the bytes that encode them with every default.

    Raises FieldInvalid, or NotFound for a limit of another tenant.
    """
    if not spec.limits:
        return (), b""
    if len(spec.limits) > MAX_LIMITS:
        raise FieldInvalid.of(_PATH, f"has {len(spec.limits)} entries; at most {MAX_LIMITS} are allowed")
    found: dict[str, LimitUse] = {}
    stored = task_pb2.TaskSpec()
    for index, entry in enumerate(spec.limits):
        use = _read(entry, tenant_id, f"{_PATH}[{index}]")
        if use.limit_id in found:
            raise FieldInvalid.of(f"{_PATH}[{index}].limit", f"names {use.limit_id!r} a second time")
        found[use.limit_id] = use
        stored.limits.add(limit=limit_name(tenant_id, use.limit_id), key=use.key, units=use.units)
    del spec.limits[:]
    return tuple(found.values()), stored.SerializeToString()


def _read(entry: task_pb2.LimitUse, tenant_id: str, path: str) -> LimitUse:
    match = _LIMIT.fullmatch(entry.limit)
    if match is None:
        problem = (
            f"must be tenants/{{tenant}}/limits/{{limit}} or the id of a limit, not {entry.limit[:100]!r}"
        )
        raise FieldInvalid.of(f"{path}.limit", problem)
    if match[1] is not None and match[1] != tenant_id:
        raise NotFound("limit", entry.limit)
    if _KEY.fullmatch(entry.key) is None:
        problem = f"must be at most 128 of A-Z a-z 0-9 . _ : @ / + = -, not {entry.key[:100]!r}"
        raise FieldInvalid.of(f"{path}.key", problem)
    if not 0 <= entry.units <= MAX_UNITS:
        raise FieldInvalid.of(f"{path}.units", f"must be 0 to {MAX_UNITS}, not {entry.units}; 0 means 1")
    return LimitUse(match[2], entry.key, entry.units or 1)
