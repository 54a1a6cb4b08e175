"""TaskTypeService: reusable configuration of tasks, with defaults, bounds and the schema of the payload."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from taskyard.errors import AlreadyExists, NotEmpty, NotFound, ResourceVersionMismatch
from taskyard.v1 import task_pb2, task_type_pb2, task_type_service_pb2
from taskyard_kit.auth import Kind, current_principal, require_tenant
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.domain.filter_fields import TASK_TYPE_FIELDS
from taskyard_taskdb.domain.names import parse_task_type_name, task_type_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.rpc import access, json_schema, masks
from taskyard_taskdb.rpc.access import visible_scope
from taskyard_taskdb.rpc.convert import hide_secrets
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.times import set_time, to_timedelta
from taskyard_taskdb.rpc.type_rules import check_definition
from taskyard_taskdb.rpc.validate import check_payload, check_spec, check_text
from taskyard_taskdb.rpc.webhooks import check_callback
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.create import request_ids
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant import task_types
from taskyard_taskdb.storage.tenant.task_types import TypeColumns, TypeKey, TypeRow
from taskyard_taskdb.storage.transition.load import database_time

Service = task_type_service_pb2
TaskType = task_type_pb2.TaskType

_SCHEMAS = ("payload_schema", "result_schema")
# Fields that only the server sets.
_OUTPUT = ("name", "revision", "resource_version", "create_time", "update_time")
_MUTABLE = tuple(name for name in TaskType.DESCRIPTOR.fields_by_name if name not in _OUTPUT)


class TaskTypeHandler:
    """TaskTypeService. Replicas are notified of changes; a missed notification is repaired within 2 s."""

    def __init__(self, pool: Pool, bus: Bus, egress: Egress, schemas: SchemaChecks) -> None:
        self._pool = pool
        self._bus = bus
        self._schemas = schemas
        self._egress = egress

    async def CreateTaskType(
        self, request: Service.CreateTaskTypeRequest, context: Any
    ) -> Service.CreateTaskTypeResponse:
        key = (access.visible_tenant(request.parent), request.task_type_id)
        await self._compile(key[0], request.task_type, _SCHEMAS)
        columns = self._columns(request.task_type)
        actor = access.caller()

        async def work(tx: Tx) -> TypeRow:
            if request.request_id and await _is_repeat(tx, request, key):
                found = await task_types.find(tx, key)
                if found is not None:
                    return found
            made = await task_types.insert(tx, key, columns)
            if made is None:
                raise AlreadyExists("task type", task_type_name(*key))
            await _log(tx, ChangeEvent.TASK_TYPE_CREATED, made, actor, request.request_id)
            return made

        made = await self._pool.run(work)
        self._bus.publish(CommitNotice.of_settings(key[0]))
        return Service.CreateTaskTypeResponse(task_type=type_message(made))

    async def GetTaskType(
        self, request: Service.GetTaskTypeRequest, context: Any
    ) -> Service.GetTaskTypeResponse:
        return Service.GetTaskTypeResponse(task_type=_visible_message(await self._find(request.name)))

    async def ListTaskTypes(
        self, request: Service.ListTaskTypesRequest, context: Any
    ) -> Service.ListTaskTypesResponse:
        tenant_id = visible_scope(request.parent)
        async with self._pool.reading(planned=True) as tx:

            async def read(after: tuple[str, ...], size: int) -> list[TypeRow]:
                return [_listed(row) for row in await task_types.page(tx, tenant_id, after, size)]

            found, token = await read_page(
                read,
                lambda row: row.key,
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListTaskTypes", request.parent),
                key_size=2,
                filter_text=request.filter,
                fields=TASK_TYPE_FIELDS,
                values=_values,
                # Definitions hold schemas of up to half a megabyte, which the list leaves out.
                step=50,
            )
        response = Service.ListTaskTypesResponse(next_page_token=token)
        response.task_types.extend(map(_visible_message, found))
        return response

    async def UpdateTaskType(
        self, request: Service.UpdateTaskTypeRequest, context: Any
    ) -> Service.UpdateTaskTypeResponse:
        given = request.task_type
        key = _visible_type(given.name, "task_type.name")
        paths = masks.chosen_paths(request.update_mask.paths, given, _MUTABLE, "a task type")
        await self._compile(key[0], given, [name for name in _SCHEMAS if (name,) in paths])
        actor = access.caller()

        async def work(tx: Tx) -> TypeRow:
            found = await task_types.lock(tx, key)
            if found is None:
                return await self._make_missing(tx, request, key, paths, actor)
            if given.resource_version and given.resource_version != found.version:
                raise ResourceVersionMismatch(found.name, str(given.resource_version), str(found.version))
            columns = self._columns(_changed(TaskType.FromString(found.definition), given, paths))
            if columns.definition == found.definition:
                return found
            stored = await task_types.update(tx, key, columns)
            await _log(tx, ChangeEvent.TASK_TYPE_UPDATED, stored, actor)
            return stored

        if request.validate_only:
            stored = await self._pool.rehearse(work)
            return Service.UpdateTaskTypeResponse(task_type=type_message(stored))
        stored = await self._pool.run(work)
        self._bus.publish(CommitNotice.of_settings(key[0]))
        return Service.UpdateTaskTypeResponse(task_type=type_message(stored))

    async def _make_missing(
        self,
        tx: Tx,
        request: Service.UpdateTaskTypeRequest,
        key: TypeKey,
        paths: list[masks.Path],
        actor: Actor,
    ) -> TypeRow:
        if not request.allow_missing:
            raise NotFound("task type", request.task_type.name)
        made = await task_types.insert(tx, key, self._columns(_changed(TaskType(), request.task_type, paths)))
        if made is None:
            raise AlreadyExists("task type", request.task_type.name)
        await _log(tx, ChangeEvent.TASK_TYPE_CREATED, made, actor)
        return made

    async def DeleteTaskType(
        self, request: Service.DeleteTaskTypeRequest, context: Any
    ) -> Service.DeleteTaskTypeResponse:
        key = _visible_type(request.name)
        actor = access.caller()

        async def work(tx: Tx) -> None:
            found = await task_types.lock(tx, key)
            if found is None:
                raise NotFound("task type", request.name)
            if request.resource_version and request.resource_version != found.version:
                raise ResourceVersionMismatch(found.name, str(request.resource_version), str(found.version))
            used = await task_types.count_live_tasks(tx, key)
            if used:
                problem = f'"{request.name}" is used by {used} live tasks; let them end, or disable the type'
                raise NotEmpty(request.name, used, message=problem)
            await task_types.delete(tx, key)
            deleted = found._replace(version=found.version + 1, update_time=await database_time(tx))
            await _log(tx, ChangeEvent.TASK_TYPE_DELETED, deleted, actor)

        await self._pool.run(work)
        self._bus.publish(CommitNotice.of_settings(key[0]))
        return Service.DeleteTaskTypeResponse()

    async def ValidatePayload(
        self, request: Service.ValidatePayloadRequest, context: Any
    ) -> Service.ValidatePayloadResponse:
        definition = TaskType.FromString((await self._find(request.name)).definition)
        check_payload(request.payload, "payload")
        response = Service.ValidatePayloadResponse(valid=True)
        payload = request.payload if request.HasField("payload") else None
        if definition.payload_schema:
            found = await self._schemas.check(
                _charged_tenant(request.name), definition.payload_schema, payload, "payload"
            )
        else:
            found = json_schema.check_object(payload, "payload")
        for finding in found:
            response.valid = False
            response.violations.add(field=finding.field, description=finding.description)
        return response

    async def _compile(self, tenant_id: str, given: TaskType, names: Iterable[str]) -> None:
        """Raises FieldInvalid for a schema that does not compile."""
        for name in names:
            if text := getattr(given, name):
                await self._schemas.compile(tenant_id, text, f"task_type.{name}")

    async def _find(self, name: str) -> TypeRow:
        key = _visible_type(name)
        async with self._pool.reading() as tx:
            found = await task_types.find(tx, key)
        if found is None:
            raise NotFound("task type", name)
        return found

    def _columns(self, given: TaskType) -> TypeColumns:
        """The stored columns of a type. Raises FieldInvalid or TooLarge."""
        definition = TaskType()
        definition.CopyFrom(given)
        cleared: Any = definition
        for name in _OUTPUT:
            cleared.ClearField(name)
        self._check(definition)
        return TypeColumns(
            description=definition.description,
            definition=definition.SerializeToString(deterministic=True),
            retention=_duration(definition, "retention"),
            attempt_timeout=_duration(definition, "attempt_timeout"),
            checkpoint_interval=_duration(definition, "checkpoint_interval"),
            max_retries=definition.retry.max_retries if definition.retry.HasField("max_retries") else None,
            archive=definition.archive,
            disabled=definition.disabled,
            queue_paused=definition.queue_paused,
            checks_result=bool(definition.result_schema),
            runner_id_pattern=definition.runner_id_pattern,
        )

    def _check(self, definition: TaskType) -> None:
        check_text(definition.description, "task_type.description")
        if definition.HasField("config"):
            check_payload(definition.config, "task_type.config")
        if definition.HasField("callback"):
            check_callback(definition.callback, "task_type.callback", self._egress)
        for index, entity_type in enumerate(definition.entity_types):
            check_text(entity_type, f"task_type.entity_types[{index}]")
        check_definition(definition, "task_type")
        spec = task_pb2.TaskSpec(env=definition.env)
        if definition.HasField("execution"):
            spec.execution.CopyFrom(definition.execution)
        check_spec(spec, "task_type")


def _visible_type(name: str, field: str = "name") -> TypeKey:
    """Tenant id and type id of a name. Raises FieldInvalid, or NotFound for a tenant that is not visible."""
    key = parse_task_type_name(name, field)
    require_tenant(key[0], "task type", name)
    return key


def _charged_tenant(name: str) -> str:
    """The tenant whose budget a check uses: the caller's; the type's for an administrator."""
    principal = current_principal()
    return principal.tenant if principal.kind is Kind.TENANT else _visible_type(name)[0]


def _changed(before: TaskType, given: TaskType, paths: list[masks.Path]) -> TaskType:
    for path in paths:
        masks.copy(given, before, path)
    return before


def _duration(definition: Any, name: str) -> Any:
    return to_timedelta(getattr(definition, name)) if definition.HasField(name) else None


def _listed(row: TypeRow) -> TypeRow:
    """The row without what a list leaves out."""
    definition: Any = TaskType.FromString(row.definition)
    for name in (*_SCHEMAS, "config"):
        definition.ClearField(name)
    return row._replace(definition=definition.SerializeToString())


def _values(row: TypeRow) -> Mapping[str, Any]:
    disabled = TaskType.FromString(row.definition).disabled
    return {"id": row.task_type, "disabled": disabled, "create_time": row.create_time}


async def _is_repeat(tx: Tx, request: Service.CreateTaskTypeRequest, key: TypeKey) -> bool:
    body = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()[:16]
    repeatable = Request(key[0], request.request_id, body, key[1])
    found = (await request_ids.claim(tx, Method.CREATE_TASK_TYPE, [repeatable])).get(repeatable.key)
    if isinstance(found, Exception):
        raise AlreadyExists("task type", task_type_name(*key))
    return found is not None


async def _log(tx: Tx, event: ChangeEvent, row: TypeRow, actor: Actor, request_id: str = "") -> None:
    await append_change(
        tx,
        event,
        row.tenant_id,
        row.task_type,
        actor,
        row.update_time,
        version=row.version,
        request_id=request_id or None,
        details={"revision": row.revision},
    )


def _visible_message(row: TypeRow) -> TaskType:
    """A type as the caller may see it: a key that only reads sees no environment and no headers."""
    message = type_message(row)
    if not current_principal().may("write"):
        hide_secrets(message)
    return message


def type_message(row: TypeRow) -> TaskType:
    """A type as callers see it."""
    message = TaskType.FromString(row.definition)
    message.name = row.name
    message.revision = row.revision
    message.resource_version = row.version
    set_time(message.create_time, row.create_time)
    set_time(message.update_time, row.update_time)
    return message
