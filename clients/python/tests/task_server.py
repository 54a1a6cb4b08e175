"""A small in-memory TaskService on a real socket, for tests of the client without the services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from taskyard import errors
from taskyard.status import GRPC_CODE, to_status, trailing_metadata
from taskyard.v1 import task_pb2, task_service_pb2_grpc
from taskyard.v1 import task_service_pb2 as pb

KEY = "ty_test_secret"
Fault = Callable[[Any], errors.TaskyardError | None]


class TaskServer(task_service_pb2_grpc.TaskServiceServicer):
    """Keeps tasks and scripts of streams; `calls` records every request, `faults` may refuse one."""

    def __init__(self) -> None:
        self.tasks: dict[str, task_pb2.Task] = {}
        self.by_request: dict[str, str] = {}
        self.calls: list[tuple[str, Any]] = []
        self._called = asyncio.Condition()
        self.metadata: list[dict[str, str]] = []
        self.time_left: list[float | None] = []
        self.faults: list[errors.TaskyardError] = []
        self.item_fault: Fault = lambda request: None
        # Each connection of a stream plays the next script: responses, then an error or a plain end.
        self.scripts: list[list[Any]] = []
        self.ended = asyncio.Event()
        self.outcome: tuple[int, int | None] = (task_pb2.TASK_PHASE_SUCCEEDED, 0)
        self.gate: asyncio.Event | None = None
        self.batch_limit = 1000
        self.batch_responses: list[pb.BatchCancelTasksResponse] = []

    def requests(self, method: str) -> list[Any]:
        """The requests of one method, in order."""
        return [request for name, request in self.calls if name == method]

    async def called(self, method: str, times: int = 1) -> None:
        """Returns once the method was called so many times."""
        async with self._called:
            await self._called.wait_for(lambda: len(self.requests(method)) >= times)

    async def _enter(self, method: str, request: Any, context: Any) -> None:
        headers = {str(key): str(value) for key, value in context.invocation_metadata()}
        self.calls.append((method, request))
        self.metadata.append(headers)
        self.time_left.append(context.time_remaining())
        async with self._called:
            self._called.notify_all()
        if headers.get("authorization") != f"Bearer {KEY}":
            await refuse(context, errors.Unauthenticated("unknown key"))
        if self.faults:
            await refuse(context, self.faults.pop(0))

    def _create(self, request: pb.CreateTaskRequest) -> pb.CreateTaskResponse:
        if request.request_id in self.by_request:
            task = self.tasks[self.by_request[request.request_id]]
            return pb.CreateTaskResponse(task=task, outcome=pb.CREATE_OUTCOME_REPLAYED)
        name = f"tenants/default/tasks/{request.task_id or f't{len(self.tasks)}'}"
        task = task_pb2.Task(name=name, metadata=request.task.metadata, spec=request.task.spec)
        task.metadata.uid, task.metadata.resource_version = f"u{len(self.tasks)}", 1
        task.status.phase = task_pb2.TASK_PHASE_PENDING
        self.tasks[name] = task
        self.by_request[request.request_id] = name
        return pb.CreateTaskResponse(task=task, outcome=pb.CREATE_OUTCOME_CREATED)

    async def CreateTask(self, request: Any, context: Any) -> Any:
        await self._enter("CreateTask", request, context)
        if fault := self.item_fault(request):
            await refuse(context, fault)
        return self._create(request)

    async def BatchCreateTasks(self, request: Any, context: Any) -> Any:
        await self._enter("BatchCreateTasks", request, context)
        if self.gate:
            await self.gate.wait()
        if len(request.requests) > self.batch_limit:
            await refuse(
                context, errors.BatchTooLarge.sized("requests", len(request.requests), self.batch_limit)
            )
        response = pb.BatchCreateTasksResponse()
        for item in request.requests:
            if fault := self.item_fault(item):
                response.results.add(error=to_status(fault))
                response.failed_count += 1
            else:
                response.results.add(created=self._create(item))
        return response

    async def GetTask(self, request: Any, context: Any) -> Any:
        await self._enter("GetTask", request, context)
        if request.name not in self.tasks:
            await refuse(context, errors.NotFound("task", request.name))
        return pb.GetTaskResponse(task=self.tasks[request.name])

    async def BatchGetTasks(self, request: Any, context: Any) -> Any:
        await self._enter("BatchGetTasks", request, context)
        for name in request.names:
            if name not in self.tasks:
                await refuse(context, errors.NotFound("task", name))
        return pb.BatchGetTasksResponse(tasks=[self.tasks[name] for name in request.names])

    async def BatchCancelTasks(self, request: Any, context: Any) -> Any:
        await self._enter("BatchCancelTasks", request, context)
        return self.batch_responses.pop(0)

    async def ListTasks(self, request: Any, context: Any) -> Any:
        await self._enter("ListTasks", request, context)
        first = int(request.page_token or 0)
        names = list(self.tasks)[first : first + request.page_size]
        following = first + len(names)
        token = str(following) if following < len(self.tasks) else ""
        return pb.ListTasksResponse(tasks=[self.tasks[name] for name in names], next_page_token=token)

    async def WaitTask(self, request: Any, context: Any) -> Any:
        await self._enter("WaitTask", request, context)
        try:
            await asyncio.wait_for(self.ended.wait(), request.timeout.ToTimedelta().total_seconds())
        except TimeoutError:
            return pb.WaitTaskResponse(task=self.tasks[request.name], satisfied=False)
        task = self.tasks[request.name]
        phase, exit_code = self.outcome
        status = task_pb2.TaskStatus(phase=task_pb2.TaskPhase.ValueType(phase), exit_code=exit_code)
        task.status.CopyFrom(status)
        return pb.WaitTaskResponse(task=task, satisfied=True)

    async def CancelTask(self, request: Any, context: Any) -> Any:
        await self._enter("CancelTask", request, context)
        if request.name not in self.tasks:
            await refuse(context, errors.NotFound("task", request.name))
        return pb.CancelTaskResponse(task=self.tasks[request.name])

    async def WatchTasks(self, request: Any, context: Any) -> AsyncIterator[Any]:
        await self._enter("WatchTasks", request, context)
        async for response in self._play(context):
            yield response

    async def TailTaskLogs(self, request: Any, context: Any) -> AsyncIterator[Any]:
        await self._enter("TailTaskLogs", request, context)
        async for response in self._play(context):
            yield response

    async def _play(self, context: Any) -> AsyncIterator[Any]:
        for step in self.scripts.pop(0):
            if isinstance(step, errors.TaskyardError):
                await refuse(context, step)
            elif isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step


async def refuse(context: Any, error: errors.TaskyardError) -> None:
    """Ends the call with the error, as the services do."""
    context.set_trailing_metadata(trailing_metadata(error))
    await context.abort(GRPC_CODE[error.code], error.message)


@asynccontextmanager
async def serving(servicer: TaskServer, port: int = 0) -> AsyncIterator[str]:
    """The address at which the server listens while the block runs."""
    server = grpc.aio.server()
    task_service_pb2_grpc.add_TaskServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
