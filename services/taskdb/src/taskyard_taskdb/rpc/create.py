"""CreateTask and BatchCreateTasks, and the creation of child tasks for their handler."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from taskyard import tracing
from taskyard.errors import (
    BatchTooLarge,
    FieldInvalid,
    InvalidArgument,
    TaskyardError,
)
from taskyard.v1 import common_pb2, task_service_pb2
from taskyard_kit import wellformed
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain import names
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import Kind
from taskyard_taskdb.rpc import access, convert
from taskyard_taskdb.rpc.create_answers import PART_SECONDS, Rest, batch_response, response
from taskyard_taskdb.rpc.entities import EntityChecks
from taskyard_taskdb.rpc.response_size import MAX_RESPONSE_BYTES
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.rpc.validate import prefixed, validate
from taskyard_taskdb.storage.create.creator import TaskCreator
from taskyard_taskdb.storage.create.new_task import Created, CreateResult, Dropped, NewTask, Refused, Replayed
from taskyard_taskdb.storage.create.queues import CreateQueues
from taskyard_taskdb.storage.create.request_ids import Method
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.tenant.stored_bytes import StoredBytes
from taskyard_taskdb.storage.tenant.tenants import Tenant, TenantCache

Request = task_service_pb2.CreateTaskRequest
Response = task_service_pb2.CreateTaskResponse
BatchRequest = task_service_pb2.BatchCreateTasksRequest
BatchResponse = task_service_pb2.BatchCreateTasksResponse

MAX_BATCH = 1000
# The mean size of a batch's items up to which they are compared with each other.
_REPEATED_BYTES = 4096


class _Items(NamedTuple):
    """The items of a batch as tasks, or why each is none, and the indices of those that are only checked."""

    read: Sequence[NewTask | TaskyardError]
    checked: Set[int]


class CreateHandler:
    """TaskService.CreateTask and BatchCreateTasks. Concurrent calls of CreateTask share a transaction."""

    def __init__(
        self,
        pool: Pool,
        tenants: TenantCache,
        types: TypeCache,
        specs: SpecReader,
        schemas: SchemaChecks,
        stored: StoredBytes,
        entities: EntityChecks,
        creator: TaskCreator,
        queues: CreateQueues,
        rest: Rest,
    ) -> None:
        self._pool = pool
        self._tenants = tenants
        self._types = types
        self._specs = specs
        self._schemas = schemas
        self._stored = stored
        self._entities = entities
        self._creator = creator
        self._queues = queues
        self._rest = rest

    async def close(self) -> None:
        """Store the tasks that were accepted and are still queued."""
        await self._queues.close()

    async def CreateTask(self, request: Request, context: Any) -> Response:
        return await self._create_one(request, context, embedded=False)

    async def create_embedded(self, request: Request, context: Any) -> Response:
        """Create a task of EmbeddedService, as CreateTask does for others."""
        return await self._create_one(request, context, embedded=True)

    async def _create_one(self, request: Request, context: Any, *, embedded: bool) -> Response:
        if not request.parent:
            raise FieldInvalid.of("parent", "is required: tenants/{tenant}")
        tenant_id = access.visible_tenant(request.parent)
        tenant = await self._tenants.admit(tenant_id)
        task_type = request.task.spec.task_type
        rules = (await self._types.find_all(tenant_id, [task_type])).get(task_type) if task_type else None
        if rules is not None:
            await self._check_payload(request, tenant_id, rules)
        if tenant.max_storage_bytes and not request.validate_only:
            await self._stored.admit(tenant_id, tenant.max_storage_bytes, request.ByteSize())
        if rules is not None and rules.definition.entities_must_exist:
            await self._entities.check(tenant_id, request.task.spec, rules)
        task = self._specs.read(request, tenant, access.caller(), _traceparent(), rules)
        _check_kind(task, embedded=embedded)
        if request.validate_only:
            result = await self._creator.check(task)
        else:
            result = await self._queues.submit(task)
        _when_replied(context)
        records = await self._read_existing([result])
        return response(result, convert.chosen_view(request.view, convert.FULL), records)

    async def BatchCreateTasks(self, request: BatchRequest, context: Any) -> BatchResponse:
        _validate_frame(request)
        tenant_id = access.visible_tenant(request.parent)
        tenant = await self._tenants.admit(tenant_id)
        tenant.check_batch(len(request.requests))
        view = convert.chosen_view(request.view, convert.NAME)
        if view == convert.FULL and request.ByteSize() > MAX_RESPONSE_BYTES:
            problem = (
                f"FULL would return more than {MAX_RESPONSE_BYTES} bytes; ask for NAME or BASIC, or send less"
            )
            raise BatchTooLarge.of("view", problem)
        atomic = request.mode != common_pb2.BATCH_MODE_PER_ITEM
        if request.request_id and not atomic:
            raise FieldInvalid.of("request_id", "is for mode ATOMIC; give each item its own")
        batch_hash = _hash_batch(request) if request.request_id else b""
        items = await self._read_items(request, tenant)
        with self._queues.batch(tenant_id):
            results = await (
                self._create_all(items, request, batch_hash) if atomic else self._create_each(items)
            )
        _when_replied(context)
        records = await self._read_existing(results)
        return await batch_response(results, view, records, self._rest)

    async def create_children(self, tenant_id: str, items: Sequence[Request], actor: Actor) -> list[str]:
        """Create all of these tasks or none, and return their names.

        Raises the errors of CreateTask, with requests[i]. before the field.
        """
        tenant = await self._tenants.admit(tenant_id)
        tenant.check_batch(len(items))
        request = BatchRequest(parent=names.tenant_name(tenant_id), requests=items)
        read = await self._read_items(request, tenant, actor)
        with self._queues.batch(tenant_id):
            results = await self._create_all(read, request, b"")
        return [names.task_name(tenant_id, _id_of(result)) for result in results]

    async def _read_items(self, request: BatchRequest, tenant: Tenant, actor: Actor | None = None) -> _Items:
        if tenant.max_storage_bytes and not all(item.validate_only for item in request.requests):
            await self._stored.admit(tenant.tenant_id, tenant.max_storage_bytes, request.ByteSize())
        actor, traceparent = actor or access.caller(), _traceparent()
        # Equal items are read once.
        small = request.ByteSize() <= _REPEATED_BYTES * len(request.requests)
        wire = [item.SerializeToString() if small else None for item in request.requests]
        unequal = dict(zip(wire, request.requests, strict=True)).values() if small else request.requests
        named = {item.task.spec.task_type for item in unequal}
        found = await self._types.find_all(tenant.tenant_id, named)
        rules = {name: of_type for name, of_type in found.items() if of_type is not None}
        read: list[NewTask | TaskyardError] = []
        checked: set[int] = set()
        missing = await self._missing_entities(request, tenant.tenant_id, rules) if rules else {}
        uids = self._specs.draw_uids(len(request.requests))
        known: dict[bytes, NewTask] = {}
        pause_at = time.perf_counter() + PART_SECONDS
        for index, (item, encoded) in enumerate(zip(request.requests, wire, strict=True)):
            if time.perf_counter() >= pause_at:
                await self._rest()
                pause_at = time.perf_counter() + PART_SECONDS
            same = known.get(encoded) if encoded is not None else None
            try:
                if same is not None:
                    of_type = rules.get(same.task_type) if rules else None
                    read.append(self._specs.repeat(same, uids[index], of_type))
                    continue
                if item.parent not in ("", request.parent):
                    raise FieldInvalid.of("parent", f"must be empty or {request.parent}, not {item.parent!r}")
                wellformed.check(item, encoded)
                of_type = rules.get(item.task.spec.task_type)
                if of_type is not None:
                    await self._check_payload(item, tenant.tenant_id, of_type)
                if index in missing:
                    raise missing[index]
                repeatable = not (item.task_id or item.validate_only)
                if item.validate_only:
                    checked.add(index)
                task = self._specs.read(item, tenant, actor, traceparent, of_type, uids[index])
                _check_kind(task, embedded=False)
                read.append(task)
                if repeatable and encoded is not None:
                    known[encoded] = task
            except InvalidArgument as error:
                read.append(prefixed(error, f"requests[{index}]."))
            except TaskyardError as error:
                read.append(error)
        return _Items(read, checked)

    async def _missing_entities(
        self, request: BatchRequest, tenant_id: str, rules: Mapping[str, TypeRules]
    ) -> dict[int, TaskyardError]:
        specs = {
            index: (item.task.spec, found)
            for index, item in enumerate(request.requests)
            if (found := rules.get(item.task.spec.task_type)) is not None
        }
        return await self._entities.missing(tenant_id, specs)

    async def _check_payload(self, request: Request, tenant_id: str, rules: TypeRules) -> None:
        rules.check_enabled()
        payload = request.task.spec.payload if request.task.spec.HasField("payload") else None
        await self._schemas.check_payload(tenant_id, rules, payload, "task.spec.payload")

    async def _create_all(
        self, items: _Items, request: BatchRequest, batch_hash: bytes
    ) -> list[CreateResult | Exception]:
        tasks: list[NewTask] = []
        for index, item in enumerate(items.read):
            if isinstance(item, TaskyardError):
                raise at_index(item, index)
            tasks.append(item)
        if request.request_id:
            tasks = _share_request_id(tasks, request.request_id, batch_hash)
        if items.checked and len(items.checked) < len(tasks):
            first = 0 in items.checked
            differing = next(index for index in range(len(tasks)) if (index in items.checked) != first)
            raise FieldInvalid.of(
                f"requests[{differing}].validate_only", "must be the same for all items of an atomic batch"
            )
        try:
            if items.checked:
                return [await self._check(task, index) for index, task in enumerate(tasks)]
            return list(await self._creator.create_all(tasks))
        except Refused as refused:
            index, error = min(refused.errors.items(), key=lambda entry: entry[0])
            raise at_index(error, index) from None

    async def _check(self, task: NewTask, index: int) -> CreateResult:
        try:
            return await self._creator.check(task)
        except TaskyardError as error:
            raise at_index(error, index) from None

    async def _try(self, task: NewTask) -> CreateResult | Exception:
        try:
            return await self._creator.check(task)
        except TaskyardError as error:
            return error

    async def _create_each(self, items: _Items) -> list[CreateResult | Exception]:
        decided: dict[int, CreateResult | Exception] = {}
        fresh: dict[int, NewTask] = {}
        for index, item in enumerate(items.read):
            if isinstance(item, TaskyardError):
                decided[index] = item
            elif index in items.checked:
                decided[index] = await self._try(item)
            else:
                fresh[index] = item
        results = await self._creator.create_each(list(fresh.values()))
        if not decided:
            return results
        decided.update(zip(fresh, results, strict=True))
        return [decided[index] for index in range(len(items.read))]

    async def _read_existing(
        self, results: Sequence[CreateResult | Exception]
    ) -> dict[tasks.Key, tasks.TaskRecord]:
        keys = [(r.tenant_id, r.task_id) for r in results if isinstance(r, Replayed | Dropped)]
        if not keys:
            return {}
        async with self._pool.reading() as tx:
            return await tasks.read_many(tx, keys)


def _check_kind(task: NewTask, *, embedded: bool) -> None:
    """Raises FieldInvalid for an embedded task that does not come through EmbeddedService."""
    if (task.kind == Kind.EMBEDDED) != embedded:
        problem = "is for EmbeddedService only, such as client.run_embedded of the Python client"
        raise FieldInvalid.of("task.spec.execution.embedded", problem)


def _id_of(result: CreateResult | Exception) -> str:
    if isinstance(result, Exception):
        raise result
    return result.task.task_id if isinstance(result, Created) else result.task_id


def _validate_frame(request: BatchRequest) -> None:
    """Validate the request without its items, which are validated one by one."""
    count = len(request.requests)
    if count > MAX_BATCH:
        raise BatchTooLarge.of("requests", f"{count} items; at most {MAX_BATCH} go into one batch")
    frame = BatchRequest(
        parent=request.parent, mode=request.mode, view=request.view, request_id=request.request_id
    )
    if count:
        frame.requests.add().task.SetInParent()
    validate(frame)


def _hash_batch(request: BatchRequest) -> bytes:
    whole = hashlib.sha256()
    for item in request.requests:
        encoded = item.SerializeToString(deterministic=True)
        whole.update(len(encoded).to_bytes(4) + encoded)
    return whole.digest()[:16]


def _share_request_id(tasks: Sequence[NewTask], request_id: str, batch_hash: bytes) -> list[NewTask]:
    """The items with request ids derived from that of the batch, so that a repeat finds each of them."""
    batch = hashlib.sha256(request_id.encode()).hexdigest()[:40]
    return [
        task
        if task.request_id
        else task._replace(
            request_id=f"{batch}:{index}", body_hash=batch_hash, method=Method.BATCH_CREATE_TASKS
        )
        for index, task in enumerate(tasks)
    ]


def _traceparent() -> str | None:
    return tracing.current_traceparent() or None


def _when_replied(context: Any) -> None:
    # A callback keeps its call in a cycle of references.
    if failpoints.CREATE_AFTER_REPLY.is_set:
        context.add_done_callback(lambda _: failpoints.CREATE_AFTER_REPLY.hit())


def at_index(error: Exception, index: int) -> Exception:
    """An item's error as the error of the call: field paths begin with the item, metadata has its index."""
    if not isinstance(error, TaskyardError):
        return error
    if isinstance(error, InvalidArgument) and not all(
        v.field.startswith("requests[") for v in error.violations
    ):
        error = prefixed(error, f"requests[{index}].")
    error.extra = {**error.extra, "index": str(index)}
    return error
