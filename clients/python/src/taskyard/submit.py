"""Creates tasks in batches whose items succeed or fail independently, and retries until each has a result."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from dataclasses import dataclass, replace

from taskyard import errors, tracing
from taskyard.new_task import NewTask
from taskyard.retry_timer import RetryTimer
from taskyard.status import from_status
from taskyard.task import Created
from taskyard.v1 import common_pb2
from taskyard.v1 import task_service_pb2 as pb

MAX_ITEMS = 1000
# Below the server's message limit, with room for one large item.
MAX_BYTES = 3 * 1024 * 1024

Result = Created | errors.TaskyardError
Send = Callable[[Sequence[pb.CreateTaskRequest]], Awaitable[Sequence[Result]]]
Call = Callable[[pb.BatchCreateTasksRequest], Awaitable[pb.BatchCreateTasksResponse]]


@dataclass(frozen=True)
class Batches:
    """Sends requests that carry a request_id each, so that sending one again is safe."""

    call: Call
    parent: str
    outage_timeout: float
    view: pb.TaskView.ValueType
    retries: Callable[[errors.TaskyardError], bool]

    async def send(self, requests: Sequence[pb.CreateTaskRequest]) -> Sequence[Result]:
        """One result per request, in order; requests that fail with a retryable error are sent again."""
        results: dict[int, Result] = {}
        pending = list(range(len(requests)))
        retry_timer = RetryTimer(self.outage_timeout)
        while pending:
            received = await self._once([requests[i] for i in pending])
            results.update(zip(pending, received, strict=True))
            refused = [i for i in pending if self._sends_again(results[i])]
            if len(refused) < len(pending):
                retry_timer.refresh()
            if refused and not await _wait_to_retry(retry_timer, _longest_delay(results[i] for i in refused)):
                break
            pending = refused
        return [results[i] for i in range(len(requests))]

    def _sends_again(self, result: Result) -> bool:
        return isinstance(result, errors.TaskyardError) and self.retries(result)

    async def _once(self, requests: list[pb.CreateTaskRequest]) -> list[Result]:
        request = pb.BatchCreateTasksRequest(
            parent=self.parent, requests=requests, mode=common_pb2.BATCH_MODE_PER_ITEM, view=self.view
        )
        try:
            response = await self.call(request)
        except errors.BatchTooLarge as error:
            if len(requests) > 1:
                return await self._split(requests, error.limit)
            return [error]
        except errors.TaskyardError as error:
            return [error] * len(requests)
        return [_result(item) for item in response.results]

    async def _split(self, requests: list[pb.CreateTaskRequest], limit: int) -> list[Result]:
        half = (len(requests) + 1) // 2
        size = limit if 0 < limit < len(requests) else half
        parts = [requests[i : i + size] for i in range(0, len(requests), size)]
        return [result for part in parts for result in await self._once(part)]


def _result(item: pb.BatchCreateTasksResult) -> Result:
    if item.WhichOneof("result") == "created":
        return Created.of(item.created)
    error = from_status(item.error)
    if isinstance(error, errors.InvalidArgument):
        # Remove the index within the batch, which the caller does not see.
        error.violations = tuple(replace(v, field=_unindexed(v.field)) for v in error.violations)
        error.message = _unindexed(error.message)
    return error


def _unindexed(path: str) -> str:
    return re.sub(r"\brequests\[\d+\]\.", "", path)


def is_retryable(error: errors.TaskyardError) -> bool:
    """Whether the server asks for a retry, or is away."""
    return error.retryable


def _longest_delay(results: Iterable[Result]) -> errors.TaskyardError:
    refused = [result for result in results if isinstance(result, errors.TaskyardError)]
    return max(refused, key=lambda error: error.retry_after.total_seconds() if error.retry_after else 0.0)


async def _wait_to_retry(retry_timer: RetryTimer, error: errors.TaskyardError) -> bool:
    try:
        await retry_timer.wait(error)
    except errors.TaskyardError:
        return False
    return True


class Coalescer:
    """Gathers single creates that arrive while others are in flight into the next batch."""

    def __init__(self, send: Send, in_flight: int = 2) -> None:
        self._send = send
        self._free = in_flight
        self._waiting: deque[_Waiting] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    async def create(self, request: pb.CreateTaskRequest) -> Created:
        """The created task; raises the error of this one request."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(
            request, loop.create_future(), tracing.current_traceparent(), contextvars.copy_context()
        )
        self._waiting.append(waiting)
        # At the end of this iteration of the loop, so that all creates of a gather() share a batch.
        loop.call_soon(self._start_batches)
        return await waiting.future

    def _start_batches(self) -> None:
        while self._waiting and self._free:
            batch = self._next_batch()
            if batch:
                self._free -= 1
                call = asyncio.get_running_loop().create_task(
                    self._send_batch(batch), context=batch[0].context
                )
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)

    def _next_batch(self) -> list[_Waiting]:
        """The next requests of one trace: a batch is one call, and a call belongs to one trace."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < MAX_ITEMS:
            first = self._waiting[0]
            if batch and (first.traceparent != batch[0].traceparent or size > MAX_BYTES):
                break
            self._waiting.popleft()
            if not first.future.done():
                size += first.request.ByteSize()
                batch.append(first)
        return batch

    async def _send_batch(self, batch: list[_Waiting]) -> None:
        try:
            results = await self._send([waiting.request for waiting in batch])
            for waiting, result in zip(batch, results, strict=True):
                waiting.settle(result)
        finally:
            # After a cancellation or a bug no caller may wait endlessly.
            for waiting in batch:
                waiting.future.cancel()
            self._free += 1
            self._start_batches()

    def close(self) -> None:
        """Cancels the calls in flight; their callers see a cancellation."""
        for call in self._calls:
            call.cancel()


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: pb.CreateTaskRequest
    future: asyncio.Future[Created]
    traceparent: str
    context: contextvars.Context

    def settle(self, result: Result) -> None:
        if self.future.done():
            return
        if isinstance(result, errors.TaskyardError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


async def create_batches(
    tasks: Iterable[NewTask] | AsyncIterable[NewTask],
    prepare: Callable[[NewTask], pb.CreateTaskRequest],
    send: Send,
    in_flight: int,
) -> AsyncGenerator[Sequence[Result]]:
    """Results in the order of `tasks`, which is read only as fast as the server accepts them."""
    calls: deque[asyncio.Future[Sequence[Result]]] = deque()
    try:
        async for chunk in _chunks(tasks, prepare):
            if len(calls) >= in_flight:
                yield await calls.popleft()
            calls.append(asyncio.ensure_future(send(chunk)))
        while calls:
            yield await calls.popleft()
    finally:
        for call in calls:
            call.cancel()


async def _chunks(
    tasks: Iterable[NewTask] | AsyncIterable[NewTask], prepare: Callable[[NewTask], pb.CreateTaskRequest]
) -> AsyncIterator[list[pb.CreateTaskRequest]]:
    chunk: list[pb.CreateTaskRequest] = []
    size = 0
    async for task in _each(tasks):
        request = prepare(task)
        bytes_ = request.ByteSize()
        if chunk and (len(chunk) >= MAX_ITEMS or size + bytes_ > MAX_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(request)
        size += bytes_
    if chunk:
        yield chunk


async def _each(tasks: Iterable[NewTask] | AsyncIterable[NewTask]) -> AsyncIterator[NewTask]:
    if isinstance(tasks, AsyncIterable):
        async for task in tasks:
            yield task
    else:
        for task in tasks:
            yield task


async def counted(
    batches: AsyncGenerator[Sequence[Result]], progress: Callable[[int], None]
) -> AsyncGenerator[Sequence[Result]]:
    """The same batches; calls `progress` after each with the number of results so far."""
    count = 0
    try:
        async for batch in batches:
            count += len(batch)
            progress(count)
            yield batch
    finally:
        await batches.aclose()
