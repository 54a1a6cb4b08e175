"""spec.after: read from requests, and written back in its stored form."""

from __future__ import annotations

import re

from taskyard.errors import FieldInvalid, NotFound
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.dependency import MAX_DEPENDENCIES, Condition, Prerequisite
from taskyard_taskdb.domain.group import as_prerequisite, group_of
from taskyard_taskdb.domain.names import group_name, task_name

_TASK = re.compile(r"(?:tenants/([A-Za-z0-9._-]{1,64})/tasks/)?([A-Za-z0-9._-]{1,256})")
_GROUP = re.compile(r"(?:tenants/([A-Za-z0-9._-]{1,64})/groups/)?([A-Za-z0-9._-]{1,265})")
_ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_PATH = "task.spec.after"


def take_after(spec: task_pb2.TaskSpec, tenant_id: str) -> tuple[tuple[Prerequisite, ...], bytes]:
    """Remove the dependencies from the spec; return them, and the bytes that encode them with every default.

    They are checked here, entry by entry: a general validation of a thousand entries takes too long. Raises
    FieldInvalid, or NotFound for a task of another tenant.
    """
    if not spec.after:
        return (), b""
    if len(spec.after) > MAX_DEPENDENCIES:
        raise FieldInvalid.of(_PATH, f"has {len(spec.after)} entries; at most {MAX_DEPENDENCIES} are allowed")
    found: dict[str, Prerequisite] = {}
    aliases: set[str] = set()
    stored = task_pb2.TaskSpec()
    for index, entry in enumerate(spec.after):
        item = _read(entry, tenant_id, f"{_PATH}[{index}]")
        if item.task_id in found:
            field = "task" if group_of(item.task_id) is None else "group"
            raise FieldInvalid.of(f"{_PATH}[{index}].{field}", f"names {item.task_id!r} a second time")
        if item.alias in aliases:
            raise FieldInvalid.of(
                f"{_PATH}[{index}].alias", f"{item.alias!r} is the alias of an entry before"
            )
        found[item.task_id] = item
        if item.alias:
            aliases.add(item.alias)
        group_id = group_of(item.task_id)
        stored.after.add(
            task=task_name(tenant_id, item.task_id) if group_id is None else "",
            group=group_name(tenant_id, group_id) if group_id is not None else "",
            when=task_pb2.DependencyCondition.ValueType(item.condition),
            alias=item.alias or "",
        )
    del spec.after[:]
    return tuple(found.values()), stored.SerializeToString()


def _read(entry: task_pb2.Dependency, tenant_id: str, path: str) -> Prerequisite:
    prerequisite_id = _read_id(entry, tenant_id, path)
    if entry.alias and entry.group:
        raise FieldInvalid.of(f"{path}.alias", "is for a task: a group has no result of its own")
    if entry.alias and _ALIAS.fullmatch(entry.alias) is None:
        problem = (
            f"must be 1 to 64 of A-Z a-z 0-9 _ . -, and not begin with . or -, not {entry.alias[:100]!r}"
        )
        raise FieldInvalid.of(f"{path}.alias", problem)
    try:
        condition = Condition(entry.when or Condition.SUCCEEDED)
    except ValueError:
        known = ", ".join(one.name for one in Condition)
        raise FieldInvalid.of(f"{path}.when", f"must be one of {known}, not {entry.when}") from None
    return Prerequisite(prerequisite_id, condition, entry.alias or None)


def _read_id(entry: task_pb2.Dependency, tenant_id: str, path: str) -> str:
    if entry.task and entry.group:
        raise FieldInvalid.of(path, "has both task and group; make two entries of it")
    field, given = ("group", entry.group) if entry.group else ("task", entry.task)
    match = (_GROUP if entry.group else _TASK).fullmatch(given)
    if match is None:
        problem = (
            f"must be tenants/{{tenant}}/{field}s/{{{field}}} or the id of a {field}, not {given[:100]!r}"
        )
        raise FieldInvalid.of(f"{path}.{field}", problem)
    if match[1] is not None and match[1] != tenant_id:
        raise NotFound(field, given)
    return as_prerequisite(match[2]) if entry.group else match[2]
