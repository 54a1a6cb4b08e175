"""Tasks that running tasks create, and their outcomes: through the scheduler, under the lease of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import Message

from taskyard.errors import Code, Overloaded
from taskyard.status import from_rpc_error
from taskyard.v1.lease_pb2 import ChildOutcome, ChildTask
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_STOPPING,
    FetchChildOutcomesRequest,
    SubmitChildTasksRequest,
)
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from taskyard.v1.task_pb2 import Task, TaskPhase
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.executors.function import JSON, text_of

_TIMEOUT = 10.0
_FIRST_DELAY = 0.25
_MAX_DELAY = 2.0
# Spawned children of one request; the bytes stay below the 4 MiB that gRPC receives by default.
_BATCH = 100
_BATCH_BYTES = 2 << 20


class ChildrenRefused(Exception):
    """Why no task was created; for the workload that asked for it."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Children:
    """Creates tasks for runs of this runner."""

    def __init__(self, channel: grpc.aio.Channel, runner_id: str) -> None:
        self._stub: Any = RunnerLinkServiceStub(channel)
        self._runner_id = runner_id

    async def create(self, run: AgentRun, tasks: list[Any], *, spawned: bool = False) -> list[str]:
        """The names of the children; each key makes a repetition harmless. Raises ChildrenRefused.

        Spawned ones are created in batches, others all or none.
        """
        children = [_child(item, number, spawned) for number, item in enumerate(tasks)]
        names: list[str] = []
        for batch in _batches(children) if spawned else [children]:
            request = SubmitChildTasksRequest(runner_id=self._runner_id, lease=run.lease, children=batch)
            response = await self._call(run, self._stub.SubmitChildTasks, request)
            names += response.tasks
        return names

    async def outcomes(self, run: AgentRun, tasks: list[Any]) -> list[list[Any]]:
        """How the first of these children have ended, all of them if one is live: name, phase (empty: live),
        result and its type, code and message of the error. Raises ChildrenRefused.
        """
        request = FetchChildOutcomesRequest(
            runner_id=self._runner_id, lease=run.lease, tasks=[str(task) for task in tasks]
        )
        response = await self._call(run, self._stub.FetchChildOutcomes, request)
        return [_outcome(one) for one in response.outcomes]

    async def _call(self, run: AgentRun, method: Callable[..., Awaitable[Any]], request: Message) -> Any:
        """The response, after an outage if there is one: its run may last as long, so the call does too."""
        delay = _FIRST_DELAY
        while True:
            try:
                return await method(request, timeout=_TIMEOUT)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            passing = failure.retryable or isinstance(failure, Overloaded)
            if not passing and failure.code != Code.DEADLINE_EXCEEDED:
                raise ChildrenRefused(str(failure), failure.reason)
            if run.ended or run.held.state == HELD_STATE_STOPPING:
                raise ChildrenRefused(f"the run is to stop during an outage: {failure}", failure.reason)
            await asyncio.sleep(delay)
            delay = min(_MAX_DELAY, 2 * delay)


def _batches(children: list[ChildTask]) -> Iterator[list[ChildTask]]:
    """Parts that one request may carry, by number and by bytes."""
    batch: list[ChildTask] = []
    size = 0
    for child in children:
        if batch and (len(batch) == _BATCH or size + child.ByteSize() > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(child)
        size += child.ByteSize()
    if batch:
        yield batch


def _outcome(child: ChildOutcome) -> list[Any]:
    phase = TaskPhase.Name(child.phase).removeprefix("TASK_PHASE_") if child.phase else ""
    output = child.result.output
    raw = text_of(output.raw) if output.WhichOneof("value") else None
    return [child.task, phase, raw, output.content_type or JSON, child.error.code, child.error.message]


def _child(item: Any, number: int, spawned: bool) -> ChildTask:
    try:
        task = json_format.ParseDict(item["task"], Task())
        return ChildTask(task=task, key=item["key"], spawned=spawned)
    except (json_format.ParseError, KeyError, TypeError) as error:
        raise ChildrenRefused(f"children[{number}] is no task: {error}", "FIELD_INVALID") from None
