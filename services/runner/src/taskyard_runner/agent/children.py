"""Tasks that running tasks create: passed on to the scheduler under the lease of the run."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format

from taskyard.errors import Code
from taskyard.status import from_rpc_error
from taskyard.v1.lease_pb2 import ChildTask
from taskyard.v1.runner_link_service_pb2 import SubmitChildTasksRequest
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from taskyard.v1.task_pb2 import Task
from taskyard_runner.agent.run import AgentRun

_TIMEOUT = 10.0
_ATTEMPTS = 6
_BACKOFF = 0.25
_PASSING = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)


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

    async def create(self, run: AgentRun, tasks: list[Any]) -> list[str]:
        """The names of the children; each key makes a repetition harmless. Raises ChildrenRefused."""
        request = SubmitChildTasksRequest(
            runner_id=self._runner_id,
            lease=run.lease,
            children=[_child(item, number) for number, item in enumerate(tasks)],
        )
        for attempt in range(_ATTEMPTS):
            try:
                response = await self._stub.SubmitChildTasks(request, timeout=_TIMEOUT)
                return list(response.tasks)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if failure.code not in _PASSING or attempt == _ATTEMPTS - 1:
                    raise ChildrenRefused(str(failure), failure.reason) from None
            await asyncio.sleep(_BACKOFF * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def _child(item: Any, number: int) -> ChildTask:
    try:
        task = json_format.ParseDict(item["task"], Task())
        return ChildTask(task=task, key=item["key"])
    except (json_format.ParseError, KeyError, TypeError) as error:
        raise ChildrenRefused(f"children[{number}] is no task: {error}", "FIELD_INVALID") from None
