"""CancelTask, PauseTask, ResumeTask, RetryTask, DeleteTask, and the batches of cancel, retry and reset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from google.protobuf.message import Message

from taskyard import status as wire
from taskyard.errors import DeletionProtected, NotFound, TaskyardError
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.filter_fields import TASK_LIST_FIELDS
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.rpc import access, convert
from taskyard_taskdb.rpc.reads import read_current
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.validate import check_text, validate_batch
from taskyard_taskdb.storage.action.actions import Actions, Ask
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import listing, tasks
from taskyard_taskdb.storage.read.listing import Query
from taskyard_taskdb.storage.read.tasks import Key
from taskyard_taskdb.storage.tenant.tenants import TenantCache

CANCEL_GRACE = timedelta(seconds=30)
PAUSE_GRACE = timedelta(seconds=60)
RESET_REASON = "Task timed out and was reset"
MAX_BATCH = 1000

BatchRequest = (
    task_service_pb2.BatchCancelTasksRequest
    | task_service_pb2.BatchRetryTasksRequest
    | task_service_pb2.BatchResetTasksRequest
)
Results = list[task_service_pb2.BatchTaskResult]


class ActionHandler:
    """TaskService.CancelTask, PauseTask, ResumeTask, RetryTask, DeleteTask, and the batches of them."""

    def __init__(self, pool: Pool, tenants: TenantCache, types: TypeCache, actions: Actions) -> None:
        self._pool = pool
        self._tenants = tenants
        self._types = types
        self._actions = actions

    async def CancelTask(
        self, request: task_service_pb2.CancelTaskRequest, context: Any
    ) -> task_service_pb2.CancelTaskResponse:
        check_text(request.reason, "reason")
        event = events.CancelRequested(
            actor=access.caller(), grace=_grace(request, CANCEL_GRACE), reason=request.reason
        )
        task = await self._act(request, event)
        await failpoints.CANCEL_AFTER_COMMIT.reach()
        return task_service_pb2.CancelTaskResponse(task=task)

    async def PauseTask(
        self, request: task_service_pb2.PauseTaskRequest, context: Any
    ) -> task_service_pb2.PauseTaskResponse:
        check_text(request.reason, "reason")
        event = events.PauseRequested(
            actor=access.caller(), grace=_grace(request, PAUSE_GRACE), reason=request.reason
        )
        return task_service_pb2.PauseTaskResponse(task=await self._act(request, event))

    async def ResumeTask(
        self, request: task_service_pb2.ResumeTaskRequest, context: Any
    ) -> task_service_pb2.ResumeTaskResponse:
        event = events.ResumeRequested(actor=access.caller())
        return task_service_pb2.ResumeTaskResponse(task=await self._act(request, event))

    async def RetryTask(
        self, request: task_service_pb2.RetryTaskRequest, context: Any
    ) -> task_service_pb2.RetryTaskResponse:
        key = access.visible_task(request.name)
        await self._tenants.admit(key[0])
        event = events.RetryRequested(
            actor=access.caller(),
            request_id=request.request_id or None,
            discard_checkpoints=request.discard_checkpoints,
            keep_retry_count=request.keep_retry_count,
            cascade=request.cascade,
        )
        repeatable = repeatable_request(request, request.request_id, key)
        await self._actions.one(Ask(key, event, request.resource_version), Method.RETRY_TASK, repeatable)
        return task_service_pb2.RetryTaskResponse(task=await read_current(self._pool, key, convert.FULL))

    async def DeleteTask(
        self, request: task_service_pb2.DeleteTaskRequest, context: Any
    ) -> task_service_pb2.DeleteTaskResponse:
        try:
            key, actor = access.visible_task(request.name), access.caller()
            await self._check_deletable(key)
            try:
                await self._actions.one(Ask(key, events.Deleted(actor=actor), request.resource_version))
            except NotFound:
                if not await self._pool.run(lambda tx: archive.delete(tx, key, actor)):
                    raise
        except NotFound:
            if not request.allow_missing:
                raise
        return task_service_pb2.DeleteTaskResponse()

    async def _check_deletable(self, key: Key) -> None:
        """Raises DeletionProtected if the type of the task keeps its tasks."""
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, *key)
        if record is None or record.task_type_tenant is None:
            return
        rules = await self._types.find(key[0], record.task_type)
        if rules is not None and rules.definition.deletion_protection:
            raise DeletionProtected(task_name(*key), rules.name)

    async def BatchResetTasks(
        self, request: task_service_pb2.BatchResetTasksRequest, context: Any
    ) -> task_service_pb2.BatchResetTasksResponse:
        validate_batch(request, "names", MAX_BATCH)
        check_text(request.reason, "reason")
        event = events.ResetRequested(actor=access.caller(), reason=request.reason or RESET_REASON)
        results, more = await self._act_on_each(request, event, listing.find_resettable)
        return task_service_pb2.BatchResetTasksResponse(results=results, more=more)

    async def BatchCancelTasks(
        self, request: task_service_pb2.BatchCancelTasksRequest, context: Any
    ) -> task_service_pb2.BatchCancelTasksResponse:
        validate_batch(request, "names", MAX_BATCH)
        check_text(request.reason, "reason")
        event = events.CancelRequested(
            actor=access.caller(), grace=_grace(request, CANCEL_GRACE), reason=request.reason
        )
        results, more = await self._act_on_each(request, event, listing.find_cancellable)
        await failpoints.CANCEL_AFTER_COMMIT.reach()
        return task_service_pb2.BatchCancelTasksResponse(results=results, more=more)

    async def BatchRetryTasks(
        self, request: task_service_pb2.BatchRetryTasksRequest, context: Any
    ) -> task_service_pb2.BatchRetryTasksResponse:
        validate_batch(request, "names", MAX_BATCH)
        await self._tenants.admit(access.visible_tenant(request.parent))
        event = events.RetryRequested(
            actor=access.caller(),
            discard_checkpoints=request.discard_checkpoints,
            keep_retry_count=request.keep_retry_count,
        )
        results, more = await self._act_on_each(request, event, listing.find_retryable)
        return task_service_pb2.BatchRetryTasksResponse(results=results, more=more)

    async def _act(self, request: Any, event: events.Event) -> task_pb2.Task:
        key = access.visible_task(request.name)
        await self._actions.one(Ask(key, event, request.resource_version))
        return await read_current(self._pool, key, convert.FULL)

    async def _act_on_each(
        self, request: BatchRequest, event: events.Event, find: Callable[..., Any]
    ) -> tuple[Results, bool]:
        keys, more = await self._choose(request, find)
        refused = await self._actions.each([Ask(key, event) for key in keys])
        return [_result(key, error) for key, error in zip(keys, refused, strict=True)], more

    async def _choose(self, request: BatchRequest, find: Callable[..., Any]) -> tuple[Sequence[Key], bool]:
        if request.names:
            return access.tasks_of(request.parent, request.names), False
        query = Query(access.visible_tenant(request.parent), filters.parse(request.filter, TASK_LIST_FIELDS))
        async with self._pool.reading(planned=True) as tx:
            found: list[Key] = await find(tx, query, MAX_BATCH + 1)
        return found[:MAX_BATCH], len(found) > MAX_BATCH


def repeatable_request(message: Message, request_id: str, key: Key) -> Request | None:
    """The request id and the hash by which a repeated message is recognised; None without a request_id."""
    if not request_id:
        return None
    body = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()[:16]
    return Request(key[0], request_id, body, key[1])


def _grace(request: Any, default: timedelta) -> timedelta:
    given: timedelta = request.grace_period.ToTimedelta() if request.HasField("grace_period") else default
    return given


def _result(key: Key, error: TaskyardError | None) -> task_service_pb2.BatchTaskResult:
    result = task_service_pb2.BatchTaskResult(name=task_name(*key))
    result.status.SetInParent()
    if error is not None:
        result.status.CopyFrom(wire.to_status(error))
    return result
