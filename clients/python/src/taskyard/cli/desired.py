"""Compares the resources of a file with those of the server, and makes the calls that update the server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict

from taskyard import errors
from taskyard.cli.manifest import Resource
from taskyard.client import Client
from taskyard.names import group_name, limit_name, schedule_name, task_name, task_type_name, tenant_name
from taskyard.new_task import NewTask
from taskyard.task import Task
from taskyard.v1 import limit_pb2, schedule_pb2, task_pb2, tenant_pb2


@dataclass(frozen=True)
class Change:
    """The change of one resource: `verb` is created, changed or unchanged.

    `make(validate_only=True)` has the server check the change as it would make it.
    """

    verb: str
    difference: list[str]
    make: Callable[..., Awaitable[Any]]


async def change_of(client: Client, resource: Resource) -> Change:
    """Compares a resource with the server's; raises taskyard.errors."""
    if resource.kind == "Tenant":
        return await _tenant(client, resource.id, resource.message)
    if resource.kind == "TaskType":
        return await _task_type(client, resource.id, resource.message)
    if resource.kind == "Limit":
        return await _limit(client, resource.id, resource.message)
    if resource.kind == "Schedule":
        return await _schedule(client, resource.id, resource.message)
    return await _task(client, resource.id, resource.message)


async def _tenant(client: Client, id_: str, wanted: tenant_pb2.Tenant) -> Change:
    try:
        current = await client.admin.get_tenant(id_)
    except errors.NotFound:
        wanted.display_name = wanted.display_name or id_
        return Change("created", list(_added(wanted)), partial(client.admin.create_tenant, id_, wanted))
    wanted.name = tenant_name(id_)
    merged, paths, difference = merge(current, wanted)
    if not paths:
        return _unchanged()
    return Change("changed", difference, partial(client.admin.update_tenant, merged, *paths))


async def _task_type(client: Client, id_: str, wanted: Any) -> Change:
    wanted.name = task_type_name(await client.tenant(), id_)
    try:
        current = await client.admin.get_type(id_)
    except errors.NotFound:
        return Change("created", list(_added(wanted)), partial(client.admin.put_type, wanted))
    merged, paths, difference = merge(current, wanted)
    if not paths:
        return _unchanged()
    return Change("changed", difference, partial(client.admin.put_type, merged, *paths))


async def _limit(client: Client, id_: str, wanted: limit_pb2.Limit) -> Change:
    wanted.name = limit_name(await client.tenant(), id_)
    try:
        current = await client.limits.get(id_)
    except errors.NotFound:
        return Change("created", list(_added(wanted)), partial(client.limits.put, wanted))
    merged, paths, difference = merge(current, wanted)
    if not paths:
        return _unchanged()
    return Change("changed", difference, partial(client.limits.put, merged, *paths))


async def _schedule(client: Client, id_: str, wanted: schedule_pb2.Schedule) -> Change:
    wanted.name = schedule_name(await client.tenant(), id_)
    try:
        current = await client.schedules.get(id_)
    except errors.NotFound:
        return Change("created", list(_added(wanted)), partial(client.schedules.put, wanted))
    # PauseSchedule and ResumeSchedule change these; a file names how a schedule begins.
    for name in ("paused", "pause_note"):
        replace_field(wanted, wanted.DESCRIPTOR.fields_by_name[name], getattr(current, name))
    merged, paths, difference = merge(current, wanted)
    if not paths:
        return _unchanged()
    return Change("changed", difference, partial(client.schedules.put, merged, *paths))


async def _task(client: Client, id_: str, wanted: NewTask) -> Change:
    task = wanted.request.task
    tenant = await client.tenant()
    # As the server stores them.
    for entry in task.spec.after:
        if entry.group:
            entry.group = group_name(tenant, entry.group)
        else:
            entry.task = task_name(tenant, entry.task)
        entry.when = entry.when or task_pb2.DEPENDENCY_CONDITION_SUCCEEDED
    for use in task.spec.limits:
        use.limit = limit_name(tenant, use.limit)
        use.units = use.units or 1
    try:
        current = await client.get(id_)
    except errors.NotFound:

        async def create(*, validate_only: bool = False) -> None:
            await (client.check(wanted) if validate_only else client.create(wanted))

        return Change("created", [], create)
    merged, paths, difference = merge(current.proto, task_pb2.Task(metadata=task.metadata, spec=task.spec), 2)
    if not paths:
        return _unchanged()
    return Change("changed", difference, partial(client.update, Task(merged), *paths))


def _unchanged() -> Change:
    async def nothing(*, validate_only: bool = False) -> None:
        """Nothing is to be changed."""

    return Change("unchanged", [], nothing)


def merge(current: Any, wanted: Any, depth: int = 1) -> tuple[Any, list[str], list[str]]:
    """The current message merged with the wanted one, the paths of changed fields, and the differences.

    Only fields that `wanted` sets count. Maps and lists are replaced as a whole, messages field by field.
    """
    merged = type(current)()
    merged.CopyFrom(current)
    paths, difference = list[str](), list[str]()
    _merge_fields(merged, wanted, (), depth, paths, difference)
    return merged, paths, difference


def _merge_fields(
    merged: Any, wanted: Any, path: tuple[str, ...], depth: int, paths: list[str], difference: list[str]
) -> None:
    for field, value in wanted.ListFields():
        below = (*path, field.name)
        if field.name == "name" and not path:
            continue
        if field.message_type and not field.is_repeated and not _opaque(field):
            if len(below) < depth:
                _merge_fields(getattr(merged, field.name), value, below, depth, paths, difference)
                continue
            before = len(difference)
            _merge_fields(getattr(merged, field.name), value, below, 0, [], difference)
            if len(difference) > before:
                paths.append(".".join(below))
        elif not _equal(field, getattr(merged, field.name), value):
            difference += _differences(".".join(below), field, merged, wanted)
            replace_field(merged, field, value)
            paths.append(".".join(below))


def _opaque(field: FieldDescriptor) -> bool:
    """Whether a message is compared as one value: times, durations, documents."""
    full_name = field.message_type.full_name if field.message_type else ""
    return full_name.startswith("google.protobuf.") or full_name in ("taskyard.v1.Payload",)


def _equal(field: FieldDescriptor, current: Any, wanted: Any) -> bool:
    if field.type == FieldDescriptor.TYPE_BYTES and not field.is_repeated:
        return bool(_document(current) == _document(wanted))
    return bool(current == wanted)


def replace_field(merged: Any, field: FieldDescriptor, value: Any) -> None:
    """Sets a field of a message to a value, whatever it was before."""
    merged.ClearField(field.name)
    if field.is_repeated and hasattr(value, "items"):
        target = getattr(merged, field.name)
        for key, one in value.items():
            if field.message_type and field.message_type.fields_by_name["value"].message_type:
                target[key].CopyFrom(one)
            else:
                target[key] = one
    elif field.is_repeated:
        getattr(merged, field.name).extend(value)
    elif field.message_type:
        getattr(merged, field.name).CopyFrom(value)
    else:
        setattr(merged, field.name, value)


def _differences(path: str, field: FieldDescriptor, current: Any, wanted: Any) -> Iterator[str]:
    old, new = _plain(current, field), _plain(wanted, field)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old:
                yield f"+ {path}.{key}: {_text(new[key])}"
            elif key not in new:
                yield f"- {path}.{key}: {_text(old[key])}"
            elif old[key] != new[key]:
                yield f"~ {path}.{key}: {_text(old[key])} → {_text(new[key])}"
    elif old is None:
        yield f"+ {path}: {_text(new)}"
    else:
        yield f"~ {path}: {_text(old)} → {_text(new)}"


def _added(wanted: Any) -> Iterator[str]:
    for field, _ in wanted.ListFields():
        if field.name != "name":
            yield f"+ {field.name}: {_text(_plain(wanted, field))}"


def _plain(message: Any, field: FieldDescriptor) -> Any:
    """A field as people would write it; None if it is not set."""
    if field.type == FieldDescriptor.TYPE_BYTES and not field.is_repeated:
        return _document(getattr(message, field.name))
    return MessageToDict(message, preserving_proto_field_name=True).get(field.name)


def _document(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:99] + "…"
