"""The reading half of the client: tasks, runs, logs, changes, and why a task does not run."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from taskyard import errors
from taskyard.channels import Channels
from taskyard.context import Context, find_context
from taskyard.convert import Seconds, to_duration, to_timedelta
from taskyard.explanation import Explanation
from taskyard.many import ended_batches
from taskyard.names import task_name, tenant_name
from taskyard.new_task import NewTask
from taskyard.pages import pages
from taskyard.retry_timer import RetryTimer
from taskyard.status import translated
from taskyard.stream import SILENCE_SECONDS, STREAM_SECONDS, Stream, log_batches, responses, watch_batches
from taskyard.task import Event, LogEntry, LogLevel, Phase, Run, Task
from taskyard.v1 import audit_pb2, checkpoint_pb2, explain_service_pb2, log_pb2
from taskyard.v1 import task_service_pb2 as pb
from taskyard.v1.explain_service_pb2_grpc import ExplainServiceStub
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub

if TYPE_CHECKING:
    # Exist for type checkers only: a generated module has one stub class for sync and async code.
    from taskyard.v1.explain_service_pb2_grpc import ExplainServiceAsyncStub
    from taskyard.v1.task_service_pb2_grpc import TaskServiceAsyncStub

View = Literal["name", "basic", "full"]
"""How much of a task is fetched: its identity and phase, all but its documents, or everything."""

# The page size of a list, and the longest wait of one WaitTask call before it is repeated.
PAGE_SIZE = 1000
WAIT_SECONDS = 60.0
# Time for the response of a WaitTask call beyond its wait.
RESPONSE_SECONDS = 15.0
# For the whole content of a checkpoint, at most 10 MiB.
CHECKPOINT_SECONDS = 120.0


class Reader:
    """The read-only half of a Client; an async context manager."""

    def __init__(
        self,
        address: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        scheduler: str | None = None,
        admin_key: str | None = None,
        tls_ca: str | Path | None = None,
        timeout: Seconds | None = None,
        outage_timeout: Seconds = 300.0,
    ) -> None:
        given = {
            "address": address,
            "key": key,
            "tenant": tenant,
            "scheduler": scheduler,
            "admin_key": admin_key,
            "tls_ca": str(tls_ca) if tls_ca else None,
        }
        self.context: Context = find_context(given)
        self._outage_timeout = to_timedelta(outage_timeout).total_seconds()
        self._parent = tenant_name(self.context.tenant)
        limit = None if timeout is None else to_timedelta(timeout).total_seconds()
        self._channels = Channels(self.context, limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection and cancels the calls in flight."""
        await self._channels.close()

    async def health(self) -> Mapping[str, bool]:
        """Whether each configured service reports SERVING; False for one that cannot be reached."""
        addresses = {"taskdb": self.context.address, "scheduler": self.context.scheduler}
        return {name: await self._channels.serves(address) for name, address in addresses.items() if address}

    # Reading

    async def get(self, task: str | Task, *, view: View = "full") -> Task:
        """Returns a task."""
        request = pb.GetTaskRequest(name=self._name(task), view=view_of(view))
        return Task((await self._channels.call(self._tasks.GetTask, request)).task)

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
        return Stream(self._list_batches(_and_phase(filter, phase), order_by, limit, view_of(view)))

    async def _list_batches(
        self, filter: str, order_by: str, limit: int | None, view: pb.TaskView.ValueType
    ) -> AsyncGenerator[Any]:
        request = pb.ListTasksRequest(parent=self._parent, filter=filter, order_by=order_by, view=view)
        left = limit
        while left is None or left > 0:
            request.page_size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
            page = await self._channels.call(self._tasks.ListTasks, request)
            yield [Task(task) for task in page.tasks]
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
            left = None if left is None else left - len(page.tasks)

    def runs(self, task: str | Task) -> Stream[Run]:
        """The runs of a task, newest first."""
        request = pb.ListTaskRunsRequest(parent=self._name(task))
        return Stream(pages(self._channels, lambda: self._tasks.ListTaskRuns, request, "runs", Run))

    async def wait(self, task: str | Task, *, timeout: Seconds | None = None, view: View = "full") -> Task:
        """Returns the task once it has ended; raises TimeoutError after `timeout`. Retries over outages."""
        name = self._name(task)
        ends = None if timeout is None else time.monotonic() + to_timedelta(timeout).total_seconds()
        retry_timer = RetryTimer(self._outage_timeout)
        while True:
            left = WAIT_SECONDS if ends is None else max(0.0, min(WAIT_SECONDS, ends - time.monotonic()))
            request = pb.WaitTaskRequest(name=name, timeout=to_duration(left), view=view_of(view))
            try:
                response = await self._channels.call(self._tasks.WaitTask, request, left + RESPONSE_SECONDS)
            except errors.TaskyardError as error:
                await retry_timer.wait(error)
                continue
            retry_timer.refresh()
            if response.satisfied:
                return Task(response.task)
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"{name} is still {Task(response.task).phase} after {timeout}")

    def wait_all(self, tasks: Iterable[str | Task]) -> Stream[Task]:
        """Each of these tasks once it has ended; a thousand at a time, in the order in which they end."""

        async def fetch(names: Sequence[str]) -> list[Task]:
            request = pb.BatchGetTasksRequest(parent=self._parent, names=names, view=pb.TASK_VIEW_BASIC)
            try:
                found = await self._channels.call(self._tasks.BatchGetTasks, request)
            except errors.BatchTooLarge:
                # The tasks have too many bytes for one response; a single one always fits.
                middle = len(names) // 2
                return [*await fetch(names[:middle]), *await fetch(names[middle:])]
            return [Task(task) for task in found.tasks]

        def watch(names: Sequence[str]) -> Stream[Event]:
            return self.watch(*names, snapshot=True, until_terminal=True)

        names = (self._name(task) for task in tasks)
        return Stream(ended_batches(names, fetch, watch, self._outage_timeout))

    async def explain(self, subject: str | Task | NewTask) -> Explanation:
        """Explains why a task does not run, or whether a new task would run."""
        request = explain_service_pb2.ExplainTaskRequest(parent=self._parent)
        if isinstance(subject, NewTask):
            request.spec.CopyFrom(subject.request.task.spec)
        else:
            request.name = self._name(subject)
        return Explanation(await self._channels.call(self._explain_stub.ExplainTask, request))

    async def stats(
        self,
        filter: str = "",
        *,
        window: Seconds | None = None,
        group_by: Sequence[Literal["tenant", "task_type", "runner"]] = (),
        tenant: str = "",
    ) -> pb.GetTaskStatsResponse:
        """Counts by phase, run durations and queue times; within `window` if given, else of all tasks."""
        request = pb.GetTaskStatsRequest(parent=tenant_name(tenant or self.context.tenant), filter=filter)
        request.group_by.extend(
            pb.StatsDimension.Value(f"STATS_DIMENSION_{word.upper()}") for word in group_by
        )
        if window is not None:
            request.time_range.window.CopyFrom(to_duration(window))
        return await self._channels.call(self._tasks.GetTaskStats, request)

    def audit(
        self, filter: str = "", *, tenant: str = "", page_size: int = 0
    ) -> Stream[audit_pb2.AuditEvent]:
        """Who did what, newest first; filter fields: event_type, actor.type, actor.id, resource, time."""
        request = pb.ListAuditEventsRequest(
            parent=tenant_name(tenant or self.context.tenant), filter=filter, page_size=page_size
        )
        return Stream(
            pages(self._channels, lambda: self._tasks.ListAuditEvents, request, "audit_events", _identity)
        )

    def checkpoints(self, task: str | Task) -> Stream[checkpoint_pb2.Checkpoint]:
        """The checkpoints of a task, newest first."""
        request = pb.ListCheckpointsRequest(parent=self._name(task))
        return Stream(
            pages(self._channels, lambda: self._tasks.ListCheckpoints, request, "checkpoints", _identity)
        )

    async def read_checkpoint(self, task: str | Task, sequence: int | None = None) -> bytes:
        """The content of a checkpoint, by default of the newest one."""
        name = f"{self._name(task)}/checkpoints/{'latest' if sequence is None else sequence}"
        call = self._tasks.ReadCheckpoint(pb.ReadCheckpointRequest(name=name), timeout=CHECKPOINT_SECONDS)
        with translated():
            return b"".join([part.data async for part in call])

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

        Begins now, after `resume_token`, or with the current tasks (`snapshot`), and resumes after broken
        connections and restarts. `until_terminal` ends it when all `tasks` have ended. `bookmarks` adds
        events that only carry a newer resume_token. Raises errors.OutOfRange if the history after the token
        is gone.
        """
        request = pb.WatchTasksRequest(
            parent=self._parent,
            names=[self._name(task) for task in tasks],
            filter=filter,
            snapshot=snapshot,
            until_terminal=until_terminal,
            view=view_of(view),
        )

        def connect(token: str) -> Any:
            request.resume_token, request.snapshot = token, snapshot and not token
            return self._tasks.WatchTasks(request, timeout=STREAM_SECONDS)

        source: AsyncGenerator[pb.WatchTasksResponse] = responses(
            connect,
            resume_token,
            endless=not until_terminal,
            silence=SILENCE_SECONDS,
            outage_timeout=self._outage_timeout,
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
        """The output of the task, all of it or the last `tail` lines; with `follow` until the task has ended.

        Resumes after broken connections and restarts, without gaps or repeats.
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
            connect, "", endless=False, silence=STREAM_SECONDS, outage_timeout=self._outage_timeout
        )
        return Stream(log_batches(source))

    # Calling

    @property
    def _tasks(self) -> TaskServiceAsyncStub:
        return self._channels.stub("taskdb", TaskServiceStub)

    @property
    def _explain_stub(self) -> ExplainServiceAsyncStub:
        return self._channels.stub("scheduler", ExplainServiceStub)

    def _name(self, task: str | Task) -> str:
        return task.name if isinstance(task, Task) else task_name(self.context.tenant, task)


def view_of(view: View) -> pb.TaskView.ValueType:
    return pb.TaskView.Value(f"TASK_VIEW_{view.upper()}")


def _and_phase(filter: str, phase: Phase | str | None) -> str:
    if phase is None:
        return filter
    wanted = f"status.phase = {str(phase).upper()}"
    return f"({filter}) AND {wanted}" if filter else wanted


def _identity(message: Any) -> Any:
    return message
