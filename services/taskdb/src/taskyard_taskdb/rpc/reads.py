"""GetTask, BatchGetTasks, ListTasks, ListTaskRuns and CheckFence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from taskyard.errors import BatchTooLarge, NotFound, OrderByInvalid
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.filter_fields import TASK_LIST_FIELDS
from taskyard_taskdb.domain.names import parse_fencing_token, task_name
from taskyard_taskdb.rpc import access, convert, pages
from taskyard_taskdb.rpc.response_size import (
    HELD_BYTES,
    MAX_READ_BYTES,
    MAX_RESPONSE_BYTES,
    fitting,
    size_in_response,
)
from taskyard_taskdb.rpc.validate import validate_batch
from taskyard_taskdb.rpc.watch import watch_query
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import listing, runs, tasks
from taskyard_taskdb.storage.read.listing import Order, Position, Query
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.watch.token import ResumeToken

MAX_BATCH = 1000

_ORDERS = {
    "": Order(),
    "metadata.create_time": Order(descending=False),
    "metadata.create_time desc": Order(),
    "status.end_time": Order(by_end=True, descending=False),
    "status.end_time desc": Order(by_end=True),
}


class ReadHandler:
    """TaskService.GetTask, BatchGetTasks, ListTasks, ListTaskRuns and CheckFence."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub

    async def GetTask(
        self, request: task_service_pb2.GetTaskRequest, context: Any
    ) -> task_service_pb2.GetTaskResponse:
        record, _ = await self._find(request.name)
        view = convert.chosen_view(request.view, convert.FULL)
        return task_service_pb2.GetTaskResponse(task=convert.task_message(record, view))

    async def BatchGetTasks(
        self, request: task_service_pb2.BatchGetTasksRequest, context: Any
    ) -> task_service_pb2.BatchGetTasksResponse:
        validate_batch(request, "names", MAX_BATCH)
        keys = access.tasks_of(request.parent, request.names)
        view = convert.chosen_view(request.view, convert.BASIC)
        response = task_service_pb2.BatchGetTasksResponse()
        size = 0
        async with self._pool.reading() as tx:
            sizes = await archive.read_sizes_anywhere(tx, keys)
            _check_batch_bytes(keys, sizes, view)
            for part in tasks.sliced(keys, sizes, HELD_BYTES):
                found = await archive.read_many_anywhere(tx, part)
                for key in part:
                    if key in found:
                        task = convert.task_message(found[key], view)
                        size += size_in_response(task)
                        if response.tasks and size > MAX_RESPONSE_BYTES:
                            raise _batch_too_large(size, len(response.tasks))
                        response.tasks.append(task)
                    elif not request.allow_missing:
                        raise NotFound("task", task_name(*key))
        return response

    async def ListTasks(
        self, request: task_service_pb2.ListTasksRequest, context: Any
    ) -> task_service_pb2.ListTasksResponse:
        query = _query(request)
        bound = pages.binding(request.parent, request.filter, request.order_by)
        position = pages.decode(request.page_token, bound, datetime, str, str)
        after = Position(*position) if position else None
        response = task_service_pb2.ListTasksResponse()
        if after is None:
            # Taken before the list is read: a change meanwhile is in the watch, and perhaps in the list too.
            await self._hub.ready()
            token = ResumeToken(self._hub.epoch, self._hub.position, self._hub.time)
            response.resume_token = token.encode(watch_query(request.parent, (), request.filter))
        size = page.page_size(request.page_size)
        view = convert.chosen_view(request.view, convert.BASIC)
        max_bytes = HELD_BYTES if view in (convert.NAME, convert.BASIC) else MAX_RESPONSE_BYTES
        async with self._pool.reading(planned=True) as tx:
            found = await listing.list_page(tx, query, after, size, max_bytes)
            if request.count_total:
                response.total_size = await listing.count(tx, query)
        listed = fitting(convert.task_message(record, view) for record in found.records)
        response.tasks.extend(listed)
        last = found.next
        if len(listed) < len(found.records):
            last = listing.position_of(query, found.records[len(listed) - 1])
        if last is not None:
            response.next_page_token = pages.encode((last.time, last.tenant_id, last.task_id), bound)
        return response

    async def ListTaskRuns(
        self, request: task_service_pb2.ListTaskRunsRequest, context: Any
    ) -> task_service_pb2.ListTaskRunsResponse:
        record, archived = await self._find(request.parent, "parent")
        bound = pages.binding(request.parent)
        position = pages.decode(request.page_token, bound, int)
        before = position[0] if position else None
        size = page.page_size(request.page_size)
        async with self._pool.reading() as tx:
            if archived:
                found = await archive.list_runs(tx, record.key, before, size + 1)
            else:
                found = await runs.list_runs(tx, *record.key, before, size + 1)
        listed = fitting(convert.run_message(record.key, run) for run in found[:size])
        response = task_service_pb2.ListTaskRunsResponse(runs=listed)
        if len(found) > len(listed):
            response.next_page_token = pages.encode((listed[-1].generation,), bound)
        return response

    async def CheckFence(
        self, request: task_service_pb2.CheckFenceRequest, context: Any
    ) -> task_service_pb2.CheckFenceResponse:
        generation, lease_id = parse_fencing_token(request.fencing_token)
        key = access.visible_task(request.name)
        async with self._pool.reading() as tx:
            fence = await runs.read_fence(tx, *key)
        if fence is None:
            raise NotFound("task", request.name)
        response = task_service_pb2.CheckFenceResponse(generation=fence.generation)
        if (fence.generation, fence.lease_id) == (generation, lease_id):
            # An expired lease is no longer a fence, even if no other lease has replaced it yet.
            response.current = fence.left is not None and fence.left > timedelta(0)
            if response.current and fence.left is not None:
                response.lease_ttl.FromTimedelta(fence.left)
        return response

    async def _find(self, name: str, field: str = "name") -> tuple[TaskRecord, bool]:
        """The task, and whether it was read from the archive. Raises NotFound."""
        key = access.visible_task(name, field)
        async with self._pool.reading() as tx:
            record, archived = await archive.read_anywhere(tx, key)
        if record is None:
            raise NotFound("task", name)
        return record, archived


def _check_batch_bytes(keys: Sequence[Key], sizes: Mapping[Key, int], view: int) -> None:
    """Raises BatchTooLarge before tasks are read that are too large for one response."""
    most = MAX_READ_BYTES if view in (convert.NAME, convert.BASIC) else MAX_RESPONSE_BYTES
    total = 0
    for count, key in enumerate(keys):
        total += sizes.get(key, 0)
        if count and total > most:
            raise _batch_too_large(sum(sizes.get(key, 0) for key in keys), count)


def _batch_too_large(size: int, count: int) -> BatchTooLarge:
    problem = (
        f"its tasks have more than {size} bytes, above what one response may have; "
        f"ask for the first {count} names alone, or for view BASIC"
    )
    return BatchTooLarge.of("names", problem)


def _query(request: task_service_pb2.ListTasksRequest) -> Query:
    order = _ORDERS.get(" ".join(request.order_by.split()))
    if order is None:
        supported = ", ".join(filter(None, _ORDERS))
        raise OrderByInvalid.of("order_by", f"{request.order_by!r} is not supported; use one of {supported}")
    condition = filters.parse(request.filter, TASK_LIST_FIELDS) if request.filter else None
    return Query(access.visible_scope(request.parent), condition, order)


async def read_current(pool: Pool, key: Key, view: int) -> task_pb2.Task:
    """The task as it is after a call that changed it. Raises NotFound."""
    async with pool.reading() as tx:
        record = await tasks.read(tx, *key)
    if record is None:
        raise NotFound("task", task_name(*key))
    return convert.task_message(record, view)
