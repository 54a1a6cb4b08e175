"""The asyncio client: creates, reads, watches and controls tasks."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import Any, Literal
from uuid import uuid4

from google.protobuf.field_mask_pb2 import FieldMask

from taskyard import errors
from taskyard.admin import Admin
from taskyard.convert import Seconds, to_duration, to_payload
from taskyard.many import each_result
from taskyard.names import new_request_id
from taskyard.new_task import NewTask
from taskyard.reader import Reader, View, view_of
from taskyard.stream import Stream
from taskyard.submit import Batches, Coalescer, Result, counted, create_batches
from taskyard.task import Created, Task
from taskyard.v1 import task_pb2
from taskyard.v1 import task_service_pb2 as pb

# How long single creates that share a batch are retried; about as long as gRPC retries a single call.
COALESCED_RETRY_SECONDS = 5.0


class Client(Reader):
    """A connection to Taskyard, safe to share between coroutines; an async context manager.

    Arguments that are not given are read from TASKYARD_ADDRESS, TASKYARD_KEY and TASKYARD_TENANT, then from
    .taskyard/context.toml in this folder or the nearest parent that has one, then from
    ~/.config/taskyard/config.toml. `timeout` replaces the per-method timeout of service_config.json.
    `outage_timeout` is how long watch, logs, wait and create_many retry while the server cannot be reached.

    Methods raise taskyard.errors. A task is given as its id, its full name, or a Task.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._coalescer = Coalescer(self._create_now)
        self.admin = Admin(self._channels)

    async def close(self) -> None:
        """Closes the connection and cancels the calls in flight."""
        self._coalescer.close()
        await super().close()

    # Creating

    async def create(self, task: NewTask) -> Created:
        """Creates a task; when this returns, the task is stored durably.

        A retry after a broken connection creates no second task. Concurrent calls share batches.
        """
        return await self._coalescer.create(self._prepared(task))

    def create_many(
        self,
        tasks: Iterable[NewTask] | AsyncIterable[NewTask],
        *,
        in_flight: int = 4,
        view: View = "name",
        progress: Callable[[int], None] | None = None,
    ) -> Stream[Result]:
        """Creates any number of tasks; yields for each, in order, the created task or its error.

        `tasks` is read only as fast as the server accepts them; retry delays of the server are honoured.
        `progress` is called with the number of results so far.
        """
        batches = Batches(self._batch_create, self._parent, self._outage_timeout, view_of(view))
        made = create_batches(tasks, self._prepared, batches.send, in_flight)
        return Stream(counted(made, progress) if progress else made)

    async def check(self, task: NewTask) -> Task:
        """Validates a create without storing it; returns the task with its defaults filled in."""
        request = self._prepared(task)
        request.parent, request.validate_only = self._parent, True
        return Task((await self._channels.call(self._tasks.CreateTask, request)).task)

    async def _create_now(self, requests: Sequence[pb.CreateTaskRequest]) -> Sequence[Result]:
        if len(requests) > 1:
            batches = Batches(self._batch_create, self._parent, COALESCED_RETRY_SECONDS, pb.TASK_VIEW_BASIC)
            return await batches.send(requests)
        request = requests[0]
        request.parent, request.view = self._parent, pb.TASK_VIEW_BASIC
        try:
            return [Created.of(await self._channels.call(self._tasks.CreateTask, request))]
        except errors.TaskyardError as error:
            return [error]

    async def _batch_create(self, request: pb.BatchCreateTasksRequest) -> pb.BatchCreateTasksResponse:
        return await self._channels.call(self._tasks.BatchCreateTasks, request)

    def _prepared(self, task: NewTask) -> pb.CreateTaskRequest:
        request = pb.CreateTaskRequest()
        request.CopyFrom(task.request)
        request.request_id = request.request_id or new_request_id()
        return request

    # Controlling

    async def cancel(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Requests cancellation; no new attempt starts after this returns. Repeating it is safe."""
        request = pb.CancelTaskRequest(name=self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._channels.call(self._tasks.CancelTask, request)).task)

    async def pause(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Requests a pause; the workload may write a checkpoint before it stops. Repeating it is safe."""
        request = pb.PauseTaskRequest(name=self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._channels.call(self._tasks.PauseTask, request)).task)

    async def resume(self, task: str | Task) -> Task:
        """Resumes a paused task. Repeating it is safe."""
        request = pb.ResumeTaskRequest(name=self._name(task))
        return Task((await self._channels.call(self._tasks.ResumeTask, request)).task)

    async def retry(self, task: str | Task, *, from_scratch: bool = False) -> Task:
        """Runs a task that ended without success again, by default from its latest checkpoint."""
        request = pb.RetryTaskRequest(
            name=self._name(task), discard_checkpoints=from_scratch, request_id=uuid4().hex
        )
        return Task((await self._channels.call(self._tasks.RetryTask, request)).task)

    async def delete(self, task: str | Task, *, missing_ok: bool = False) -> None:
        """Deletes an ended task with its runs and logs; its audit trail is kept."""
        request = pb.DeleteTaskRequest(name=self._name(task), allow_missing=missing_ok)
        await self._channels.call(self._tasks.DeleteTask, request)

    def cancel_all(self, filter: str, *, reason: str = "") -> Stream[tuple[str, errors.TaskyardError | None]]:
        """Cancels every task that matches the filter; yields each task's name and its error, if any."""
        request = pb.BatchCancelTasksRequest(parent=self._parent, filter=filter, reason=reason)
        return Stream(each_result(lambda: self._channels.call(self._tasks.BatchCancelTasks, request)))

    def retry_all(
        self, filter: str, *, from_scratch: bool = False
    ) -> Stream[tuple[str, errors.TaskyardError | None]]:
        """Retries every task that matches the filter; yields each task's name and its error, if any."""
        request = pb.BatchRetryTasksRequest(
            parent=self._parent, filter=filter, discard_checkpoints=from_scratch
        )
        return Stream(each_result(lambda: self._channels.call(self._tasks.BatchRetryTasks, request)))

    async def update(self, task: Task, *paths: str) -> Task:
        """Changes the fields of `task.proto` that `paths` name, such as "spec.priority".

        Raises errors.ResourceVersionMismatch if the task has changed since it was read.
        """
        request = pb.UpdateTaskRequest(
            task=task.proto, update_mask=FieldMask(paths=paths), request_id=uuid4().hex
        )
        return Task((await self._channels.call(self._tasks.UpdateTask, request)).task)

    async def report(
        self,
        task: str | Task,
        phase: Literal["running", "succeeded", "failed"] | None = None,
        *,
        percent: int = 0,
        message: str = "",
        output: Any = None,
    ) -> Task:
        """Reports the status of an external task, as its owner."""
        request = pb.ReportTaskStatusRequest(name=self._name(task), request_id=uuid4().hex)
        if phase:
            request.phase = task_pb2.TaskPhase.Value(f"TASK_PHASE_{phase.upper()}")
        if percent or (message and phase != "failed"):
            request.progress.percent, request.progress.message = percent, message
        if phase == "failed":
            request.error.message = message
        if output is not None:
            request.result.output.CopyFrom(to_payload(output))
        return Task((await self._channels.call(self._tasks.ReportTaskStatus, request)).task)
