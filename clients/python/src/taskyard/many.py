"""Operations on many tasks: waiting for all of them, cancelling and retrying by filter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from taskyard import errors
from taskyard.retry_timer import RetryTimer
from taskyard.status import from_status
from taskyard.stream import Stream
from taskyard.task import Event, EventType, Task
from taskyard.v1 import task_service_pb2 as pb

# How many names one call or one watch may have.
MAX_NAMES = 1000
# Deletes in flight at a time.
MAX_DELETES = 16

Fetch = Callable[[Sequence[str]], Any]
Watch = Callable[[Sequence[str]], Stream[Event]]


def chunks(names: Iterable[str], size: int = MAX_NAMES) -> Iterable[list[str]]:
    """The names, as many at a time as one call takes."""
    left = iter(names)
    while chunk := list(islice(left, size)):
        yield chunk


async def ended_batches(
    names: Iterable[str], fetch: Fetch, watch: Watch, outage_timeout: float
) -> AsyncGenerator[Sequence[Task]]:
    """Yields each task once it has ended, retrying over outages; raises NotFound for a missing task."""
    for chunk in chunks(dict.fromkeys(names)):
        live = set(chunk)
        retry_timer = RetryTimer(outage_timeout)
        while live:
            try:
                async for done in _ended_of(live, fetch, watch):
                    retry_timer.refresh()
                    yield done
            except errors.TaskyardError as error:
                await retry_timer.wait(error)


async def _ended_of(live: set[str], fetch: Fetch, watch: Watch) -> AsyncGenerator[list[Task]]:
    """Yields the tasks of `live` that end and removes them from it, until it is empty or an error."""
    done = [task for task in await fetch(sorted(live)) if task.phase.terminal]
    live.difference_update(task.name for task in done)
    yield done
    if not live:
        return
    stream = watch(sorted(live))
    try:
        async for events in stream.batches:
            done = [event.task for event in events if _ended(event) and event.task.name in live]
            live.difference_update(task.name for task in done)
            yield done
    finally:
        await stream.aclose()


def _ended(event: Event) -> bool:
    if event.type is EventType.DELETED:
        raise errors.NotFound("task", event.task.name)
    return event.phase.terminal


async def each_result(
    call: Callable[[], Any],
) -> AsyncGenerator[Sequence[tuple[str, errors.TaskyardError | None]]]:
    """Yields the result of each task that matches a filter, call after call until none is left."""
    while True:
        response: pb.BatchCancelTasksResponse | pb.BatchRetryTasksResponse = await call()
        results = [(item.name, _error(item)) for item in response.results]
        yield results
        # Stop after a call that changed nothing; it would be repeated endlessly.
        if not response.more or all(error for _, error in results):
            return


def _error(item: pb.BatchTaskResult) -> errors.TaskyardError | None:
    return from_status(item.status) if item.status.code else None


async def deleted_batches(
    ended: Stream[Task], delete: Callable[[str], Awaitable[None]]
) -> AsyncGenerator[Sequence[tuple[str, errors.TaskyardError | None]]]:
    """Deletes tasks, a few at a time; yields each task's name and its error, if any."""
    limit = asyncio.Semaphore(MAX_DELETES)

    async def result(name: str) -> tuple[str, errors.TaskyardError | None]:
        async with limit:
            try:
                await delete(name)
            except errors.TaskyardError as error:
                return name, error
            return name, None

    async for batch in ended.batches:
        yield await asyncio.gather(*(result(task.name) for task in batch))
