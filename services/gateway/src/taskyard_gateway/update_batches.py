"""Global updates of concurrent requests, sent to taskdb many at a time: a call costs more than an update."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc.aio
from google.protobuf.message import Message

from taskyard.compat.v1 import global_task_service_pb2 as pb
from taskyard.service_config import timeouts
from taskyard_gateway.answers import Refusal, refusal_of
from taskyard_gateway.contract import Rpc
from taskyard_gateway.upstream import Metadata, Upstream

SINGLE = "/taskyard.compat.v1.GlobalTaskService/PushGlobalTaskUpdate"
BATCH = "/taskyard.compat.v1.GlobalTaskService/PushGlobalTaskUpdates"
_MAX_ITEMS = 500
_MAX_BYTES = 1024 * 1024

_Waiting = deque[tuple[pb.PushGlobalTaskUpdateRequest, asyncio.Future[None]]]


class UpdateBatches:
    """One call at a time for each caller, by its key and tenant; what arrives meanwhile is the next call."""

    def __init__(self, upstream: Upstream, single: Rpc, batch: Rpc, limit: float) -> None:
        self._upstream = upstream
        self._single = single
        self._batch = batch
        self._timeout = min(limit, timeouts().get(batch.path, limit))
        self._waiting: dict[Metadata, _Waiting] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def push(self, request: Message, metadata: Metadata) -> Message:
        """The answer to one update, once it is stored. Raises Refusal."""
        assert isinstance(request, pb.PushGlobalTaskUpdateRequest)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        caller = tuple(metadata)
        if caller not in self._waiting:
            self._waiting[caller] = deque()
            task = asyncio.create_task(self._send(caller))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        self._waiting[caller].append((request, stored))
        try:
            await stored
        except grpc.aio.AioRpcError as error:
            raise refusal_of(error) from None
        return pb.PushGlobalTaskUpdateResponse()

    async def _send(self, caller: Metadata) -> None:
        waiting = self._waiting[caller]
        while waiting:
            batch = _take(waiting)
            try:
                errors = await self._call([request for request, _ in batch], caller)
            except Exception as error:
                # Each request raises it; what is no answer of taskdb becomes INTERNAL there.
                errors = [error] * len(batch)
            for (_, stored), problem in zip(batch, errors, strict=True):
                if stored.done():
                    # Its client has gone away.
                    continue
                if problem is None:
                    stored.set_result(None)
                else:
                    stored.set_exception(problem)
        del self._waiting[caller]

    async def _call(
        self, updates: list[pb.PushGlobalTaskUpdateRequest], caller: Metadata
    ) -> Sequence[Exception | None]:
        if len(updates) == 1:
            await self._upstream.call(self._single, updates[0], caller, self._timeout)
            return [None]
        request = pb.PushGlobalTaskUpdatesRequest(updates=updates)
        answer: Any = await self._upstream.call(self._batch, request, caller, self._timeout)
        if len(answer.results) != len(updates):
            raise ValueError(f"{len(answer.results)} results of {len(updates)} updates")
        return [Refusal(status) if status.code else None for status in answer.results]


def _take(waiting: _Waiting) -> list[tuple[pb.PushGlobalTaskUpdateRequest, asyncio.Future[None]]]:
    batch = [waiting.popleft()]
    size = batch[0][0].ByteSize()
    while waiting and len(batch) < _MAX_ITEMS:
        size += waiting[0][0].ByteSize()
        if size > _MAX_BYTES:
            break
        batch.append(waiting.popleft())
    return batch
