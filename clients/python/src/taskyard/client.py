"""The asyncio client: creates, reads, watches and controls tasks."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from google.protobuf.field_mask_pb2 import FieldMask

from taskyard import errors
from taskyard.builders import function as function_task
from taskyard.channels import deferred
from taskyard.convert import Seconds, to_duration, to_payload
from taskyard.many import deleted_batches, each_result
from taskyard.names import new_request_id
from taskyard.new_task import CommonOptions, NewTask, Options, new_task
from taskyard.reader import Reader, View, view_of
from taskyard.retry_timer import is_outage
from taskyard.stream import Stream
from taskyard.submit import Batches, Coalescer, Result, counted, create_batches, is_retryable
from taskyard.task import Created, Outcome, Task
from taskyard.v1 import common_pb2, task_pb2
from taskyard.v1 import task_service_pb2 as pb

if TYPE_CHECKING:
    from taskyard.admin import Admin
    from taskyard.groups import Groups
    from taskyard.named_limits import Limits
    from taskyard.schedules import Schedules

# The largest request that a server accepts unless it is configured otherwise, with room for the frame.
MAX_REQUEST_BYTES = 4 * 1024 * 1024 - 1024

TaskResult = tuple[str, errors.TaskyardError | None]
"""The name of a task, and the error if its operation failed."""


class Client(Reader):
    """A connection to Taskyard, safe to share between coroutines; an async context manager.

    Arguments that are not given are read from TASKYARD_ADDRESS, TASKYARD_KEY and TASKYARD_TENANT, then from
    .taskyard/context.toml in this folder or the nearest parent that has one, then from
    ~/.config/taskyard/config.toml, of which `context` selects an entry. Without a tenant it is that of the
    key; a tenant other than the key's is accessible with `admin_key`.

    `timeout` replaces the per-method timeout of service_config.json. `patience` is how long calls that are
    safe to repeat wait out an outage (30 s, or TASKYARD_PATIENCE); `outage_timeout` is the same for watch,
    logs, wait and create_many once they have begun.

    Methods raise taskyard.errors. A task is given as its id, its full name, or a Task.

    Example:
        async with Client(patience=60) as other:
            print([found.id async for found in other.list(limit=3)])
    """

    @cached_property
    def admin(self) -> Admin:
        """The administrator's API.

        Example:
            print([runner.name async for runner in client.admin.runners()])
        """
        from taskyard.admin import Admin

        return Admin(self._channels)

    @cached_property
    def limits(self) -> Limits:
        """Named limits.

        Example:
            print([limit.name async for limit in client.limits.list()])
        """
        from taskyard.named_limits import Limits

        return Limits(self._channels)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules of tasks.

        Example:
            print([schedule.name async for schedule in client.schedules.list()])
        """
        from taskyard.schedules import Schedules

        return Schedules(self._channels)

    @cached_property
    def groups(self) -> Groups:
        """Groups of tasks.

        Example:
            print([group.name async for group in client.groups.list()])
        """
        from taskyard.groups import Groups

        return Groups(self._channels, self._outage_timeout)

    @cached_property
    def _coalescer(self) -> Coalescer:
        return Coalescer(self._create_now)

    async def close(self) -> None:
        """Closes the connection and cancels the calls in flight.

        Example:
            other = Client()
            await other.close()
        """
        self._coalescer.close()
        await super().close()

    # Creating

    async def create(self, task: NewTask) -> Created:
        """Creates a task; when this returns, the task is stored durably.

        A retry after a broken connection creates no second task. Concurrent calls share batches.

        Example:
            made = await client.create(command("echo", "hello", labels={"team": "docs"}, retry=2))
            print(made.id, made.outcome)
        """
        return await self._coalescer.create(self._prepared(task))

    async def call(
        self,
        function: str | Callable[..., Any],
        payload: Any = None,
        *,
        deadline: Seconds | None = None,
        **options: Unpack[CommonOptions],
    ) -> Any:
        """Runs a function of a runner's application and returns its result.

        `function` is its name, or the function itself where the application can be imported. Raises
        TaskFailed, with the traceback of the remote exception, if it did not succeed, and TimeoutError if
        there is no result within `deadline` seconds; the task continues then.

        Example:
            try:
                print(await client.call("greet", {"name": "Ada"}, deadline=1, queue_timeout=0.5))
            except TaskFailed as failed:
                print(failed.failure.message, failed.traceback)
            except TimeoutError:
                print("no runner has the function")
        """
        name = function if isinstance(function, str) else function_name(function)
        task = await self.create(function_task(name, payload, **options))
        return (await self.wait(task, timeout=deadline)).result

    async def run_embedded(
        self,
        function: Callable[..., Any],
        payload: Any = None,
        *,
        task_type: str = "",
        permanent: tuple[type[BaseException], ...] = (),
        **options: Unpack[CommonOptions],
    ) -> Task:
        """Runs a function of this process as a task: with lease, timeout, retries and status as any other.

        `function` is called with the payload, if there is one; a plain function in a thread, which a timeout
        or a cancel cannot stop. Exceptions are transient, except those that `permanent` lists. If the process
        dies, the task fails as lost; no runner ever claims it. Returns the ended task, or the live one of its
        slot if the admission policy dropped this one.

        Example:
            ended = await client.run_embedded(lambda: 6 * 7, timeout=10, retry=0)
            assert ended.result == 42
        """
        given = cast(Options, {**options, "task_type": task_type})
        if payload is not None:
            given["payload"] = payload
        request = self._prepared(new_task(None, given))
        request.parent = await self._parent()
        from taskyard.embedded import Embedded

        embedded = Embedded(self._channels, permanent)
        made = Created.of(await embedded.create(request, function_name(function)))
        if made.outcome is Outcome.DROPPED:
            return await self.get(made)
        call = function if payload is None else functools.partial(function, payload)
        while not await embedded.attempt(made.name, call) or not await self._ended(made):
            found = await self.get(made, view="basic")
            if found.phase.terminal:
                break
            # It waits for its slot or its next attempt, and its version grows when that wait is over.
            waiting = pb.WaitTaskRequest(name=made.name, after_resource_version=found.version)
            waiting.timeout.FromSeconds(5)
            await self._channels.call(self._tasks.WaitTask, waiting)
        return await self.wait(made)

    async def _ended(self, task: Task) -> bool:
        return (await self.get(task, view="name")).phase.terminal

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

        Example:
            async for result in client.create_many(command("echo", str(n)) for n in range(3)):
                print(result if isinstance(result, errors.TaskyardError) else result.id)
        """

        async def first() -> AsyncGenerator[Sequence[Result]]:
            batches = Batches(
                self._batch_create, await self._parent(), self._outage_timeout, view_of(view), is_retryable
            )
            made = create_batches(tasks, self._prepared, batches.send, in_flight)
            return counted(made, progress) if progress else made

        return Stream(deferred(first))

    async def create_all(self, tasks: Iterable[NewTask]) -> list[Created]:
        """Creates up to 1,000 tasks, all or none; they may name each other's ids in `after`.

        Example:
            first, last = await client.create_all([
                command("echo", "first", id="first-1"),
                command("echo", "last", id="last-1", after=["first-1"]),
            ])
            print(first.phase, last.phase)
        """
        requests = [self._prepared(task) for task in tasks]
        if not requests:
            return []
        batch = pb.BatchCreateTasksRequest(
            parent=await self._parent(),
            requests=requests,
            mode=common_pb2.BATCH_MODE_ATOMIC,
            view=pb.TASK_VIEW_BASIC,
        )
        response = await self._batch_create(batch)
        return [Created.of(result.created) for result in response.results]

    async def check(self, task: NewTask) -> Task:
        """Validates a create without storing it; returns the task with its defaults filled in.

        Example:
            checked = await client.check(command("echo", "hello"))
            print(checked.proto.spec.priority)
        """
        request = self._prepared(task)
        request.parent, request.validate_only = await self._parent(), True
        return Task((await self._channels.call(self._tasks.CreateTask, request)).task)

    async def _create_now(self, requests: Sequence[pb.CreateTaskRequest]) -> Sequence[Result]:
        try:
            parent = await self._parent()
            if len(requests) > 1:
                patience = self._channels.patience
                batches = Batches(self._batch_create, parent, patience, pb.TASK_VIEW_BASIC, is_outage)
                return await batches.send(requests)
            request = requests[0]
            request.parent, request.view = parent, pb.TASK_VIEW_BASIC
            return [Created.of(await self._channels.call(self._tasks.CreateTask, request))]
        except errors.TaskyardError as error:
            return [error] * len(requests)

    async def _batch_create(self, request: pb.BatchCreateTasksRequest) -> pb.BatchCreateTasksResponse:
        return await self._channels.call(self._tasks.BatchCreateTasks, request)

    def _prepared(self, task: NewTask) -> pb.CreateTaskRequest:
        request = pb.CreateTaskRequest()
        request.CopyFrom(task.request)
        request.request_id = request.request_id or new_request_id()
        if (size := request.ByteSize()) > MAX_REQUEST_BYTES:
            raise _too_large(request, size)
        return request

    # Controlling

    async def cancel(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Requests cancellation; no new attempt starts after this returns. Repeating it is safe.

        Example:
            made = await client.create(command("sleep", "1000"))
            await client.cancel(made, reason="not needed", grace=5)
        """
        request = pb.CancelTaskRequest(name=await self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._channels.call(self._tasks.CancelTask, request)).task)

    async def pause(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Requests a pause; the workload may write a checkpoint before it stops. Repeating it is safe.

        Example:
            made = await client.create(command("true", runner_labels={"zone": "moon"}))
            print((await client.pause(made)).phase)
            await client.cancel(made)
        """
        request = pb.PauseTaskRequest(name=await self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._channels.call(self._tasks.PauseTask, request)).task)

    async def resume(self, task: str | Task) -> Task:
        """Resumes a paused task. Repeating it is safe.

        Example:
            made = await client.create(command("true", runner_labels={"zone": "moon"}))
            await client.pause(made)
            print((await client.resume(made)).phase)
            await client.cancel(made)
        """
        request = pb.ResumeTaskRequest(name=await self._name(task))
        return Task((await self._channels.call(self._tasks.ResumeTask, request)).task)

    async def retry(
        self,
        task: str | Task,
        *,
        from_scratch: bool = False,
        keep_retry_count: bool = False,
        cascade: bool = False,
    ) -> Task:
        """Runs a task that ended without success again, by default from its latest checkpoint.

        With `keep_retry_count` the retries that were used up stay so, and a task without any left is refused.
        With `cascade` the tasks that ended because of it, by DEPENDENCY_FAILED, are revived as well.

        Example:
            failed = await client.wait(await client.create(command("false", retry=0)))
            print((await client.retry(failed)).phase)
        """
        request = pb.RetryTaskRequest(
            name=await self._name(task),
            discard_checkpoints=from_scratch,
            keep_retry_count=keep_retry_count,
            request_id=new_request_id(),
            cascade=cascade,
        )
        return Task((await self._channels.call(self._tasks.RetryTask, request)).task)

    async def delete(self, task: str | Task, *, missing_ok: bool = False) -> None:
        """Deletes an ended task with its runs and logs; its audit trail is kept.

        Example:
            ended = await client.wait(await client.create(command("true")))
            await client.delete(ended)
            await client.delete(ended, missing_ok=True)
        """
        request = pb.DeleteTaskRequest(name=await self._name(task), allow_missing=missing_ok)
        await self._channels.call(self._tasks.DeleteTask, request)

    def cancel_all(
        self, filter: str, *, reason: str = "", grace: Seconds | None = None
    ) -> Stream[TaskResult]:
        """Cancels every live task that matches the filter; yields each task's name and its error, if any.

        Example:
            async for name, error in client.cancel_all('metadata.labels.team = "nobody"'):
                print(name, error)
        """
        request = pb.BatchCancelTasksRequest(filter=filter, reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))

        async def first() -> AsyncGenerator[Sequence[TaskResult]]:
            request.parent = await self._parent()
            return each_result(lambda: self._channels.call(self._tasks.BatchCancelTasks, request))

        return Stream(deferred(first))

    def retry_all(self, filter: str, *, from_scratch: bool = False) -> Stream[TaskResult]:
        """Retries every task that matches the filter; yields each task's name and its error, if any.

        Example:
            async for name, error in client.retry_all('metadata.labels.team = "nobody"'):
                print(name, error)
        """
        request = pb.BatchRetryTasksRequest(filter=filter, discard_checkpoints=from_scratch)

        async def first() -> AsyncGenerator[Sequence[TaskResult]]:
            request.parent = await self._parent()
            return each_result(lambda: self._channels.call(self._tasks.BatchRetryTasks, request))

        return Stream(deferred(first))

    def reset_all(self, filter: str, *, reason: str = "") -> Stream[TaskResult]:
        """Takes every running task that matches the filter from its runner and queues it again.

        For tasks that hang although their runner is alive; yields each task's name and its error, if any.

        Example:
            async for name, error in client.reset_all('metadata.update_time < "2026-01-01T00:00:00Z"'):
                print(name, error)
        """
        request = pb.BatchResetTasksRequest(filter=filter, reason=reason)

        async def first() -> AsyncGenerator[Sequence[TaskResult]]:
            request.parent = await self._parent()
            return each_result(lambda: self._channels.call(self._tasks.BatchResetTasks, request))

        return Stream(deferred(first))

    def delete_all(self, filter: str) -> Stream[TaskResult]:
        """Deletes every ended task that matches the filter; yields each task's name and its error, if any.

        Example:
            async for name, error in client.delete_all('metadata.labels.team = "nobody"'):
                print(name, error)
        """
        ended = self.list(filter, phase="terminal", view="name")
        return Stream(deleted_batches(ended, lambda name: self.delete(name, missing_ok=True)))

    async def update(self, task: Task, *paths: str, validate_only: bool = False) -> Task:
        """Changes the fields of `task.proto` that `paths` name, such as "spec.priority".

        With `validate_only` nothing is changed. Raises errors.ResourceVersionMismatch if the task has changed
        since it was read.

        Example:
            found = await client.get("encode-17")
            found.proto.metadata.labels["team"] = "video"
            await client.update(found, "metadata.labels")
        """
        request = pb.UpdateTaskRequest(
            task=task.proto,
            update_mask=FieldMask(paths=paths),
            request_id=new_request_id(),
            validate_only=validate_only,
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
        details: Mapping[str, Any] | None = None,
    ) -> Task:
        """Reports the status of an external task, as its owner; `details` are merged into those it has.

        Example:
            made = await client.create(external())
            await client.report(made, "running", percent=50, details={"added": 2})
            await client.report(made, "succeeded", output={"pages": 3})
        """
        request = pb.ReportTaskStatusRequest(name=await self._name(task), request_id=new_request_id())
        if phase:
            request.phase = task_pb2.TaskPhase.Value(f"TASK_PHASE_{phase.upper()}")
        if percent or (message and phase != "failed"):
            request.progress.percent, request.progress.message = percent, message
        if phase == "failed":
            request.error.message = message
        if output is not None:
            request.result.output.CopyFrom(to_payload(output))
        if details is not None:
            request.details.update(dict(details))
        return Task((await self._channels.call(self._tasks.ReportTaskStatus, request)).task)


def function_name(function: Callable[..., Any]) -> str:
    """The name under which an application has registered a function; its own name otherwise."""
    return str(getattr(function, "__taskyard_name__", getattr(function, "__name__", function)))


def _too_large(request: pb.CreateTaskRequest, size: int) -> errors.TooLarge:
    """The error for a request that no server accepts; it names the largest field of the spec."""
    fields = {field.name: _size(value) for field, value in request.task.spec.ListFields()}
    largest = max(fields, key=lambda name: fields[name], default="payload")
    error = errors.TooLarge.sized(f"task.spec.{largest}", fields.get(largest, size), MAX_REQUEST_BYTES)
    error.message += "; pass large data by reference, such as the URL of a file"
    return error


def _size(value: Any) -> int:
    return int(value.ByteSize()) if hasattr(value, "ByteSize") else len(str(value))
