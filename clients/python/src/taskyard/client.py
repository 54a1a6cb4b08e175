"""The client: tasks created, read, watched and steered from asyncio code."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast
from uuid import uuid4

import grpc
import grpc.aio

from taskyard import errors, tracing
from taskyard.channel import MIB, client_channel_options, open_channel
from taskyard.context import Context, ContextError, find_context
from taskyard.convert import Seconds, to_duration, to_timedelta
from taskyard.names import task_name, tenant_name
from taskyard.new_task import NewTask
from taskyard.patience import Patience
from taskyard.status import translated
from taskyard.stream import SILENCE_SECONDS, STREAM_SECONDS, Stream, log_batches, responses, watch_batches
from taskyard.submit import Batches, Coalescer, Result, create_batches
from taskyard.task import Created, Event, LogEntry, LogLevel, Phase, Run, Task
from taskyard.v1 import log_pb2
from taskyard.v1 import task_service_pb2 as pb
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub

if TYPE_CHECKING:
    # Exists for type checkers only: the generated module has one stub class for both worlds.
    from taskyard.v1.task_service_pb2_grpc import TaskServiceAsyncStub

View = Literal["name", "basic", "full"]
"""How much of a task is fetched: its identity and phase, all but its documents, or everything."""

A = TypeVar("A")

# The page of a list, and what one wait asks of the server before it asks again.
PAGE_SIZE = 1000
WAIT_SECONDS = 60.0
# For the answer to a wait, beyond the waiting itself.
ANSWER_SECONDS = 15.0
# How long single creates that share a batch are sent again, about as long as gRPC repeats one alone.
COALESCED_PATIENCE = 5.0
MAX_RECEIVE_BYTES = 64 * MIB
_SERVING = b"\x08\x01"


class Client:
    """A connection to Taskyard, safe to share between coroutines; an async context manager.

    What is not given as an argument comes from TASKYARD_ADDRESS, TASKYARD_KEY and TASKYARD_TENANT, then from
    .taskyard/context.toml in this folder or one above, then from ~/.config/taskyard/config.toml. `timeout`
    bounds one call instead of what service_config.json says, `patience` an outage that watch, logs, wait and
    create_many sit out.

    Methods raise taskyard.errors; a task is named by its id, its full name, or a Task.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        scheduler: str | None = None,
        tls_ca: str | Path | None = None,
        timeout: Seconds | None = None,
        patience: Seconds = 300.0,
    ) -> None:
        given = {
            "address": address,
            "key": key,
            "tenant": tenant,
            "scheduler": scheduler,
            "tls_ca": str(tls_ca) if tls_ca else None,
        }
        self.context: Context = find_context(given)
        self._timeout = None if timeout is None else to_timedelta(timeout).total_seconds()
        self._patience = to_timedelta(patience).total_seconds()
        self._parent = tenant_name(self.context.tenant)
        self._channel: grpc.aio.Channel | None = None
        self._stub: TaskServiceAsyncStub | None = None
        self._coalescer = Coalescer(self._create_now)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection and what is under way on it."""
        self._coalescer.close()
        if self._channel is not None:
            channel, self._channel, self._stub = self._channel, None, None
            await channel.close()

    # Creating

    async def create(self, task: NewTask) -> Created:
        """Creates a task; once this returns, it is stored durably.

        Repeats after a broken connection create nothing twice. Calls made at the same time share batches.
        """
        return await self._coalescer.create(self._prepared(task))

    def create_many(
        self, tasks: Iterable[NewTask] | AsyncIterable[NewTask], *, in_flight: int = 4, view: View = "name"
    ) -> Stream[Result]:
        """Creates any number of tasks; gives for each, in order, the created task or the error it met.

        `tasks` is read only as fast as the server takes them; a server that asks to slow down is obeyed.
        """
        batches = Batches(self._batch_create, self._parent, self._patience, _view(view))
        return Stream(create_batches(tasks, self._prepared, batches.send, in_flight))

    async def _create_now(self, requests: Sequence[pb.CreateTaskRequest]) -> Sequence[Result]:
        if len(requests) > 1:
            batches = Batches(self._batch_create, self._parent, COALESCED_PATIENCE, pb.TASK_VIEW_BASIC)
            return await batches.send(requests)
        request = requests[0]
        request.parent, request.view = self._parent, pb.TASK_VIEW_BASIC
        try:
            return [Created.of(await self._call(self._tasks.CreateTask, request))]
        except errors.TaskyardError as error:
            return [error]

    async def _batch_create(self, request: pb.BatchCreateTasksRequest) -> pb.BatchCreateTasksResponse:
        return await self._call(self._tasks.BatchCreateTasks, request)

    def _prepared(self, task: NewTask) -> pb.CreateTaskRequest:
        request = pb.CreateTaskRequest()
        request.CopyFrom(task.request)
        request.request_id = request.request_id or uuid4().hex
        return request

    # Reading

    async def get(self, task: str | Task, *, view: View = "full") -> Task:
        """The task as it is now."""
        request = pb.GetTaskRequest(name=self._name(task), view=_view(view))
        return Task((await self._call(self._tasks.GetTask, request)).task)

    def list(
        self,
        filter: str = "",
        *,
        phase: Phase | str | None = None,
        order_by: str = "",
        limit: int | None = None,
        view: View = "basic",
    ) -> Stream[Task]:
        """Tasks, newest first, fetched page by page as they are read.

        `filter` is an expression such as 'metadata.labels.team = "a"'; `phase` also takes LIVE and TERMINAL.
        """
        return Stream(self._list_batches(_and_phase(filter, phase), order_by, limit, _view(view)))

    async def _list_batches(
        self, filter: str, order_by: str, limit: int | None, view: pb.TaskView.ValueType
    ) -> AsyncGenerator[Any]:
        request = pb.ListTasksRequest(parent=self._parent, filter=filter, order_by=order_by, view=view)
        left = limit
        while left is None or left > 0:
            request.page_size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
            page = await self._call(self._tasks.ListTasks, request)
            yield [Task(task) for task in page.tasks]
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
            left = None if left is None else left - len(page.tasks)

    def runs(self, task: str | Task) -> Stream[Run]:
        """The runs of a task, newest first."""
        return Stream(self._run_batches(self._name(task)))

    async def _run_batches(self, name: str) -> AsyncGenerator[Any]:
        request = pb.ListTaskRunsRequest(parent=name)
        while True:
            page = await self._call(self._tasks.ListTaskRuns, request)
            yield [Run(run) for run in page.runs]
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def wait(self, task: str | Task, *, timeout: Seconds | None = None, view: View = "full") -> Task:
        """The task once it has ended; raises TimeoutError after `timeout`. Sits out the server's restarts."""
        name = self._name(task)
        ends = None if timeout is None else time.monotonic() + to_timedelta(timeout).total_seconds()
        patience = Patience(self._patience)
        while True:
            left = WAIT_SECONDS if ends is None else max(0.0, min(WAIT_SECONDS, ends - time.monotonic()))
            request = pb.WaitTaskRequest(name=name, timeout=to_duration(left), view=_view(view))
            try:
                answer = await self._call(self._tasks.WaitTask, request, left + ANSWER_SECONDS)
            except errors.TaskyardError as error:
                await patience.wait(error)
                continue
            patience.refresh()
            if answer.satisfied:
                return Task(answer.task)
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"{name} is still {Task(answer.task).phase} after {timeout}")

    # Following

    def watch(
        self,
        *tasks: str | Task,
        filter: str = "",
        resume_token: str = "",
        snapshot: bool = False,
        until_terminal: bool = False,
        bookmarks: bool = False,
        view: View = "basic",
    ) -> Stream[Event]:
        """Every change of these tasks, or of all that match `filter`, once and in order.

        Begins now, after `resume_token`, or with what there is (`snapshot`), and goes on over broken
        connections and restarts. `until_terminal` ends it with the last of `tasks`. `bookmarks` adds events
        that only carry a newer resume_token. Raises errors.OutOfRange if the history after the token is gone.
        """
        request = pb.WatchTasksRequest(
            parent=self._parent,
            names=[self._name(task) for task in tasks],
            filter=filter,
            snapshot=snapshot,
            until_terminal=until_terminal,
            view=_view(view),
        )

        def connect(token: str) -> Any:
            request.resume_token, request.snapshot = token, snapshot and not token
            return self._tasks.WatchTasks(request, timeout=STREAM_SECONDS)

        source: AsyncGenerator[pb.WatchTasksResponse] = responses(
            connect,
            resume_token,
            endless=not until_terminal,
            silence=SILENCE_SECONDS,
            patience=self._patience,
        )
        return Stream(watch_batches(source, resume_token, bookmarks))

    def logs(
        self,
        task: str | Task,
        *,
        follow: bool = False,
        tail: int = 0,
        generation: int = 0,
        min_level: LogLevel = LogLevel.UNSPECIFIED,
    ) -> Stream[LogEntry]:
        """What the task wrote, all of it or the last `tail` lines; with `follow` until the task has ended.

        Goes on over broken connections and restarts, without gap or repeat.
        """
        request = pb.TailTaskLogsRequest(
            parent=self._name(task),
            follow=follow,
            tail_lines=tail,
            generation=generation,
            min_level=cast("log_pb2.LogLevel.ValueType", int(min_level)),
        )

        def connect(token: str) -> Any:
            request.resume_token = token
            return self._tasks.TailTaskLogs(request, timeout=STREAM_SECONDS)

        source: AsyncGenerator[pb.TailTaskLogsResponse] = responses(
            connect, "", endless=False, silence=STREAM_SECONDS, patience=self._patience
        )
        return Stream(log_batches(source))

    # Steering

    async def cancel(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Asks for the task's end; from now on no new attempt starts. Repeating it is safe."""
        request = pb.CancelTaskRequest(name=self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._call(self._tasks.CancelTask, request)).task)

    async def pause(self, task: str | Task, *, reason: str = "", grace: Seconds | None = None) -> Task:
        """Asks for a pause, before which the workload may write a checkpoint. Repeating it is safe."""
        request = pb.PauseTaskRequest(name=self._name(task), reason=reason)
        if grace is not None:
            request.grace_period.CopyFrom(to_duration(grace))
        return Task((await self._call(self._tasks.PauseTask, request)).task)

    async def resume(self, task: str | Task) -> Task:
        """Lets a paused task go on. Repeating it is safe."""
        request = pb.ResumeTaskRequest(name=self._name(task))
        return Task((await self._call(self._tasks.ResumeTask, request)).task)

    async def retry(self, task: str | Task, *, from_scratch: bool = False) -> Task:
        """Starts a task that ended without success once more, by default from its latest checkpoint."""
        request = pb.RetryTaskRequest(
            name=self._name(task), discard_checkpoints=from_scratch, request_id=uuid4().hex
        )
        return Task((await self._call(self._tasks.RetryTask, request)).task)

    async def delete(self, task: str | Task, *, missing_ok: bool = False) -> None:
        """Removes an ended task with its runs and logs; its audit trail stays."""
        request = pb.DeleteTaskRequest(name=self._name(task), allow_missing=missing_ok)
        await self._call(self._tasks.DeleteTask, request)

    async def health(self) -> Mapping[str, bool]:
        """Whether each configured service says that it serves; one that cannot be reached does not."""
        addresses = {"taskdb": self.context.address, "scheduler": self.context.scheduler}
        found = {}
        for service, address in addresses.items():
            if address:
                async with self._open_to(address) as channel:
                    found[service] = await _serves(channel)
        return found

    # Calling

    @property
    def _tasks(self) -> TaskServiceAsyncStub:
        # Not in __init__: a channel belongs to the event loop that runs when it is made.
        if self._stub is None:
            self._channel = self._open_to(self.context.address)
            self._stub = TaskServiceStub(self._channel)
        return self._stub

    def _open_to(self, address: str) -> grpc.aio.Channel:
        tracing.enable_if_in_use()
        ca = self.context.tls_ca
        try:
            return open_channel(
                address.removeprefix("https://").removeprefix("http://"),
                key=self.context.key,
                tls=address.startswith("https://"),
                tls_ca=Path(ca) if ca else None,
                options=client_channel_options(MAX_RECEIVE_BYTES),
            )
        except (ValueError, OSError) as error:
            raise ContextError(str(error)) from error

    async def _call(
        self, method: Callable[..., Awaitable[A]], request: Any, timeout: float | None = None
    ) -> A:
        with translated():
            return await method(request, timeout=timeout or self._timeout)

    def _name(self, task: str | Task) -> str:
        return task.name if isinstance(task, Task) else task_name(self.context.tenant, task)


def _view(view: View) -> pb.TaskView.ValueType:
    return pb.TaskView.Value(f"TASK_VIEW_{view.upper()}")


def _and_phase(filter: str, phase: Phase | str | None) -> str:
    if phase is None:
        return filter
    wanted = f"status.phase = {str(phase).upper()}"
    return f"({filter}) AND {wanted}" if filter else wanted


async def _serves(channel: grpc.aio.Channel) -> bool:
    # Two bytes do not justify another dependency: an empty HealthCheckRequest, status SERVING back.
    check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        return bytes(await check(b"", timeout=5.0)) == _SERVING
    except grpc.RpcError:
        return False
