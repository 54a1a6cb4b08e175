"""GlobalTaskService: external tasks in the flat form of the Global tasks DB."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.rpc.status_pb2 import Status

from taskyard import status as wire
from taskyard.compat.v1 import global_task_service_pb2 as pb
from taskyard.errors import BatchTooLarge, FieldInvalid, NotFound, PageTokenInvalid, TaskyardError
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_kit import wellformed
from taskyard_kit.auth import Kind as PrincipalKind
from taskyard_kit.auth import current_principal
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.filter_fields import Field, FieldType
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.words import LIVE, Kind, Phase
from taskyard_taskdb.rpc import access, pages
from taskyard_taskdb.rpc.actions import ActionHandler
from taskyard_taskdb.rpc.convert import raw_payload
from taskyard_taskdb.rpc.create import CreateHandler
from taskyard_taskdb.rpc.create_answers import public_error
from taskyard_taskdb.rpc.response_size import MAX_RESPONSE_BYTES, fitting
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.validate import MAX_STRUCT_BYTES, check_payload, check_struct, parse_json, validate
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import listing
from taskyard_taskdb.storage.read.listing import Order, Position, Query
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord
from taskyard_taskdb.storage.report.global_updates import Respec, Update, UpdateWriter

TENANT_HEADER = "x-tenant"
DEFAULT_TENANT = "default"
MAX_UPDATES = 1000
PENDING, IN_PROGRESS, COMPLETED, FAILED = "pending", "in_progress", "completed", "failed"
# The phase that each word reports, and the word of each phase.
_REPORTED = {
    PENDING: Phase.PENDING,
    IN_PROGRESS: Phase.RUNNING,
    COMPLETED: Phase.SUCCEEDED,
    FAILED: Phase.FAILED,
}
_WORDS: Mapping[Phase, str] = {
    Phase.RUNNING: IN_PROGRESS,
    Phase.SUCCEEDED: COMPLETED,
    **dict.fromkeys((Phase.FAILED, Phase.TIMED_OUT, Phase.CANCELLED, Phase.EXHAUSTED), FAILED),
}
_TYPE = Field("spec.task_type", FieldType.TEXT)
_PHASE = Field("status.phase", FieldType.PHASE)
_KIND = Field("spec.execution.kind", FieldType.NUMBER)


class GlobalTaskHandler:
    """GlobalTaskService."""

    def __init__(
        self,
        pool: Pool,
        create: CreateHandler,
        actions: ActionHandler,
        types: TypeCache,
        updates: UpdateWriter,
    ) -> None:
        self._pool = pool
        self._types = types
        self._create = create
        self._actions = actions
        self._updates = updates

    async def CreateGlobalTask(
        self, request: pb.CreateGlobalTaskRequest, context: Any
    ) -> pb.CreateGlobalTaskResponse:
        tenant_id = _tenant(context)
        check_struct(request.task_status_data, "task_status_data")
        create = task_service_pb2.CreateTaskRequest(
            parent=f"tenants/{tenant_id}",
            task_id=request.task_id or str(uuid.uuid4()),
            view=task_service_pb2.TASK_VIEW_NAME,
        )
        create.task.spec.payload.CopyFrom(_payload(request.task_data))
        await self._set_type(create.task.spec, tenant_id, request.task_type)
        task_id = (await self._create.CreateTask(create, context)).task.metadata.id
        status = request.task_status or PENDING
        if status != PENDING or request.task_status_data.fields:
            key = (tenant_id, task_id)
            report = _report(key, status, request.task_status_data)
            await self._updates.change(key, report, access.caller(), None)
        return pb.CreateGlobalTaskResponse(task_id=task_id)

    async def GetGlobalTask(self, request: pb.GetGlobalTaskRequest, context: Any) -> pb.GetGlobalTaskResponse:
        record = await self._find((_tenant(context), request.task_id))
        return pb.GetGlobalTaskResponse(**_members(record))

    async def UpdateGlobalTask(
        self, request: pb.UpdateGlobalTaskRequest, context: Any
    ) -> pb.UpdateGlobalTaskResponse:
        key = (_tenant(context), request.task_id)
        details = request.task_status_data if request.HasField("task_status_data") else None
        if details is not None:
            check_struct(details, "task_status_data")
        report = None
        if request.task_status or details is not None:
            report = _report(key, request.task_status, details)
        respec = _respec(_payload(request.task_data)) if request.HasField("task_data") else None
        record = await self._updates.change(key, report, access.caller(), respec)
        return pb.UpdateGlobalTaskResponse(**_members(record))

    async def DeleteGlobalTask(
        self, request: pb.DeleteGlobalTaskRequest, context: Any
    ) -> pb.DeleteGlobalTaskResponse:
        key = (_tenant(context), request.task_id)
        record = await self._find(key)
        name = task_name(*key)
        if Phase(record.phase) in LIVE:
            reason = "deleted through the Global tasks DB"
            await self._actions.CancelTask(
                task_service_pb2.CancelTaskRequest(name=name, reason=reason), context
            )
        await self._actions.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name), context)
        return pb.DeleteGlobalTaskResponse()

    async def ListGlobalTasks(
        self, request: pb.ListGlobalTasksRequest, context: Any
    ) -> pb.ListGlobalTasksResponse:
        tenant_id = _tenant(context)
        query = Query(tenant_id, _filter(request.task_type, request.task_status), Order())
        bound = pages.binding("global", tenant_id, request.task_type, request.task_status)
        after = _position(request.page_token, bound)
        size = page.page_size(request.page_size or page.MAX_SIZE)
        async with self._pool.reading(planned=True) as tx:
            found = await listing.list_page(tx, query, after, size, MAX_RESPONSE_BYTES)
        listed = fitting(pb.GlobalTask(**_members(record)) for record in found.records)
        response = pb.ListGlobalTasksResponse(tasks=listed)
        last = found.next
        if len(listed) < len(found.records):
            last = listing.position_of(query, found.records[len(listed) - 1])
        if last is not None:
            values = (last.time, last.tenant_id, last.task_id)
            response.next_page_token = page.encode_page(values, bound, datetime.now(UTC))
        return response

    async def PushGlobalTaskUpdate(
        self, request: pb.PushGlobalTaskUpdateRequest, context: Any
    ) -> pb.PushGlobalTaskUpdateResponse:
        await self._updates.push(_update(request, _tenant(context)))
        return pb.PushGlobalTaskUpdateResponse()

    async def PushGlobalTaskUpdates(
        self, request: pb.PushGlobalTaskUpdatesRequest, context: Any
    ) -> pb.PushGlobalTaskUpdatesResponse:
        """Store updates; each has its own result."""
        count = len(request.updates)
        if not 1 <= count <= MAX_UPDATES:
            raise BatchTooLarge.of("updates", f"must have 1 to {MAX_UPDATES} items, not {count}")
        tenant_id = _tenant(context)
        read = [_read_update(item, tenant_id) for item in request.updates]
        stored = iter(await self._updates.push_all([item for item in read if isinstance(item, Update)]))
        outcomes = [next(stored) if isinstance(item, Update) else item for item in read]
        return pb.PushGlobalTaskUpdatesResponse(
            results=[wire.to_status(public_error(error)) if error else Status() for error in outcomes]
        )

    async def _set_type(self, spec: task_pb2.TaskSpec, tenant_id: str, task_type: str) -> None:
        """External work of this type. Raises FieldInvalid for a type whose tasks are run by runners."""
        spec.task_type = task_type
        found = await self._types.find_all(tenant_id, [task_type])
        rules = found.get(task_type)
        if rules is None or not rules.definition.HasField("execution"):
            spec.execution.external.SetInParent()
        elif rules.definition.execution.WhichOneof("kind") != "external":
            message = f"{rules.name} is for tasks that runners execute; create them with CreateTask"
            raise FieldInvalid.of("task_type", message)
        if rules is None:
            # Kept until it is deleted.
            spec.retention.SetInParent()

    async def _find(self, key: Key) -> TaskRecord:
        async with self._pool.reading() as tx:
            record, _ = await archive.read_anywhere(tx, key)
        if record is None or record.kind != Kind.EXTERNAL:
            raise NotFound("task", task_name(*key))
        return record


def _tenant(context: Any) -> str:
    """The tenant that the call is about. Raises FieldInvalid, or NotFound if the caller does not see it."""
    for name, value in context.invocation_metadata() or ():
        if name == TENANT_HEADER:
            return access.visible_tenant(f"tenants/{value}", TENANT_HEADER)
    principal = current_principal()
    return principal.tenant if principal.kind is PrincipalKind.TENANT else DEFAULT_TENANT


def _payload(data: Struct) -> common_pb2.Payload:
    """The input as it is stored; a large one as its text. Raises FieldInvalid or TooLarge."""
    payload = common_pb2.Payload(json=data)
    if data.ByteSize() > MAX_STRUCT_BYTES:
        payload = raw_payload(payload)
        validate(payload, "task_data.")
    else:
        check_payload(payload, "task_data")
    return payload


def _read_update(request: pb.PushGlobalTaskUpdateRequest, tenant_id: str) -> Update | TaskyardError:
    """An item of a batch, or what is wrong with it."""
    try:
        wellformed.check(request)
        validate(request)
        return _update(request, tenant_id)
    except TaskyardError as error:
        return error


def _update(request: pb.PushGlobalTaskUpdateRequest, tenant_id: str) -> Update:
    """What is stored of a pushed update. Raises FieldInvalid or TooLarge."""
    key = (tenant_id, request.task_id)
    details = request.task_status_data if request.HasField("task_status_data") else None
    if details is not None:
        check_struct(details, "task_status_data")
    return Update(key, _report(key, request.status, details), access.caller().id)


def _respec(payload: common_pb2.Payload) -> Respec:
    def respec(encoded: bytes) -> bytes:
        spec = task_pb2.TaskSpec.FromString(encoded)
        spec.payload.CopyFrom(payload)
        return spec.SerializeToString()

    return respec


def _report(key: Key, status: str, details: Struct | None) -> bytes:
    """What ReportTaskStatus stores for the same; no status leaves it as it is."""
    report = task_service_pb2.ReportTaskStatusRequest(name=task_name(*key), replace_details=True)
    if status:
        report.phase = task_pb2.TaskPhase.ValueType(_REPORTED[status])
    if details is not None:
        report.details.CopyFrom(details)
    return report.SerializeToString()


def _members(record: TaskRecord) -> dict[str, Any]:
    """The members of the document's data class."""
    return {
        "task_id": record.task_id,
        "task_data": _data(record.spec),
        "task_type": record.task_type,
        "task_update_timestamp": int(record.update_time.timestamp()),
        "task_create_timestamp": int(record.create_time.timestamp()),
        "task_status": _WORDS.get(Phase(record.phase), PENDING),
        "task_status_data": _details(record),
    }


def _data(encoded: bytes) -> Struct:
    payload = task_pb2.TaskSpec.FromString(encoded).payload
    if payload.WhichOneof("value") != "raw":
        return payload.json
    data = Struct()
    try:
        document = parse_json(payload.raw or b"{}")
        data.update(document if isinstance(document, dict) else {"value": document})
    except (ValueError, OverflowError, RecursionError):
        # No JSON, or numbers and texts that a Struct does not hold: the rest of the task is shown.
        return Struct()
    return data


def _details(record: TaskRecord) -> Struct:
    return Struct.FromString(record.details or b"")


def _filter(task_type: str, status: str) -> filters.Filter:
    terms: list[filters.Node] = [filters.Comparison(_KIND, "=", int(Kind.EXTERNAL))]
    if task_type:
        terms.append(filters.Comparison(_TYPE, "=", task_type))
    if status:
        phases = frozenset(int(phase) for phase in Phase if phase and _WORDS.get(phase, PENDING) == status)
        terms.append(filters.Comparison(_PHASE, "=", phases))
    return filters.Filter("", filters.And(tuple(terms)))


def _position(token: str, bound: str) -> Position | None:
    if not token:
        return None
    match page.decode_page(token, bound, datetime.now(UTC)):
        case (datetime() as time, str() as tenant_id, str() as task_id):
            return Position(time, tenant_id, task_id)
    raise PageTokenInvalid.of("page_token", "it belongs to another method; start again without a token")
