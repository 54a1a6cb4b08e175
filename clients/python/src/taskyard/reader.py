"""The reading half of the client: tasks, runs, logs, changes, and why a task does not run."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from taskyard import errors
from taskyard.channels import deferred
from taskyard.connection import Connected
from taskyard.convert import Seconds, to_duration, to_timedelta
from taskyard.many import chunks, ended_batches
from taskyard.new_task import NewTask
from taskyard.pages import pages
from taskyard.retry_timer import RetryTimer
from taskyard.status import translated
from taskyard.stream import (
    SILENCE_SECONDS,
    STREAM_SECONDS,
    Stream,
    log_batches,
    over_gaps,
    responses,
    watch_batches,
)
from taskyard.task import Event, LogEntry, LogLevel, Phase, Run, Task
from taskyard.v1 import audit_pb2, checkpoint_pb2, log_pb2
from taskyard.v1 import task_service_pb2 as pb

if TYPE_CHECKING:
    from taskyard.explanation import Explanation

    # Exist for type checkers only: a generated module has one stub class for sync and async code.
    from taskyard.v1.explain_service_pb2_grpc import ExplainServiceAsyncStub

View = Literal["name", "basic", "full"]
"""How much of a task is fetched: its identity and phase, all but its documents, or everything."""

# The page size of a list, and the longest wait of one WaitTask call before it is repeated.
PAGE_SIZE = 1000
WAIT_SECONDS = 60.0
# Time for the response of a WaitTask call beyond its wait.
RESPONSE_SECONDS = 15.0
# For the whole content of a checkpoint, at most 10 MiB.
CHECKPOINT_SECONDS = 120.0


def _still(task: Task, waited: str) -> str:
    """The message for a task that has not ended in time; one that waits has a reason to be looked up."""
    waits = task.phase in (Phase.PENDING, Phase.SCHEDULED)
    hint = f'; client.explain("{task.id}") or `taskyard explain {task.id}` gives the reason' if waits else ""
    return f"{task.name} is still {task.phase} after {waited}{hint}"


class Reader(Connected):
    """The read-only half of a Client."""

    async def get(self, task: str | Task, *, view: View = "full") -> Task:
        """Returns a task.

        Example:
            found = await client.get("encode-17")
            print(found.phase, found.output)
        """
        request = pb.GetTaskRequest(name=await self._name(task), view=view_of(view))
        return Task((await self._channels.call(self._tasks.GetTask, request)).task)

    def get_many(self, tasks: Iterable[str | Task], *, view: View = "basic") -> Stream[Task]:
        """Tasks in the order in which they are named; raises errors.NotFound if one is missing.

        Example:
            async for found in client.get_many(["encode-17", "encode-18"]):
                print(found.id, found.phase)
        """

        async def batches() -> AsyncGenerator[Sequence[Task]]:
            for names in chunks([await self._name(task) for task in tasks]):
                yield await self._fetch(names, view)

        return Stream(batches())

    def list(
        self,
        filter: str = "",
        *,
        phase: Phase | str | None = None,
        labels: Mapping[str, str] | None = None,
        order_by: str = "",
        limit: int | None = None,
        view: View = "basic",
        page_size: int = PAGE_SIZE,
    ) -> Stream[Task]:
        """Tasks, newest first, fetched page by page as they are read.

        `filter` is an expression such as 'metadata.labels.team = "a"'; `phase` also takes LIVE and TERMINAL;
        `labels` are required of each task.

        Example:
            async for found in client.list(phase="live", labels={"team": "video"}, limit=10):
                print(found.id, found.phase)
        """

        def set_token(token: str) -> None:
            stream.resume_token = stream.resume_token or token

        wanted = all_of(filter, phase, labels)
        stream = Stream(self._list_batches(wanted, order_by, limit, view_of(view), page_size, set_token))
        return stream

    async def _list_batches(
        self,
        filter: str,
        order_by: str,
        limit: int | None,
        view: pb.TaskView.ValueType,
        page_size: int,
        set_token: Callable[[str], None],
    ) -> AsyncGenerator[Sequence[Task]]:
        request = pb.ListTasksRequest(
            parent=await self._parent(), filter=filter, order_by=order_by, view=view
        )
        left = limit
        while left is None or left > 0:
            request.page_size = page_size if left is None else min(page_size, left)
            page = await self._channels.call(self._tasks.ListTasks, request)
            set_token(page.resume_token)
            yield [Task(task) for task in page.tasks]
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
            left = None if left is None else left - len(page.tasks)

    async def count(
        self,
        filter: str = "",
        *,
        phase: Phase | str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> int:
        """How many tasks match; the server stops counting at 100,000.

        Example:
            assert await client.count(labels={"team": "video"}) >= 1
        """
        request = pb.ListTasksRequest(
            parent=await self._parent(),
            filter=all_of(filter, phase, labels),
            page_size=1,
            count_total=True,
            view=pb.TASK_VIEW_NAME,
        )
        return (await self._channels.call(self._tasks.ListTasks, request)).total_size

    def runs(self, task: str | Task) -> Stream[Run]:
        """The runs of a task, newest first.

        Example:
            async for run in client.runs("encode-17"):
                print(run.attempt, run.runner, run.state)
        """

        async def first() -> AsyncGenerator[Sequence[Run]]:
            request = pb.ListTaskRunsRequest(parent=await self._name(task))
            return pages(self._channels, lambda: self._tasks.ListTaskRuns, request, "runs", Run)

        return Stream(deferred(first))

    async def wait(self, task: str | Task, *, timeout: Seconds | None = None, view: View = "full") -> Task:
        """Returns the task once it has ended; raises TimeoutError after `timeout`. Retries over outages.

        Example:
            ended = await client.wait("encode-17", timeout=60)
            assert ended.succeeded
        """
        name = await self._name(task)
        ends = None if timeout is None else time.monotonic() + to_timedelta(timeout).total_seconds()
        retry_timer = RetryTimer(self._outage_timeout)
        while True:
            left = WAIT_SECONDS if ends is None else max(0.0, min(WAIT_SECONDS, ends - time.monotonic()))
            request = pb.WaitTaskRequest(name=name, timeout=to_duration(left), view=view_of(view))
            try:
                response = await self._channels.call(
                    self._tasks.WaitTask, request, left + RESPONSE_SECONDS, waits_out=False
                )
            except errors.TaskyardError as error:
                if ends is not None and time.monotonic() >= ends:
                    raise
                await retry_timer.wait(error)
                continue
            retry_timer.refresh()
            if response.satisfied:
                return Task(response.task)
            if ends is not None and time.monotonic() >= ends:
                waited = f"{to_timedelta(timeout or 0).total_seconds():g} s"
                raise TimeoutError(_still(Task(response.task), waited))

    def wait_all(self, tasks: Iterable[str | Task]) -> Stream[Task]:
        """Each of these tasks once it has ended; a thousand at a time, in the order in which they end.

        Example:
            async for ended in client.wait_all(["encode-17", "encode-18"]):
                print(ended.id, ended.phase)
        """

        def watch(names: Sequence[str]) -> Stream[Event]:
            return self.watch(*names, snapshot=True, until_terminal=True)

        async def first() -> AsyncGenerator[Sequence[Task]]:
            names = [await self._name(task) for task in tasks]
            return ended_batches(names, self._fetch, watch, self._outage_timeout)

        return Stream(deferred(first))

    async def _fetch(self, names: Sequence[str], view: View = "basic") -> Sequence[Task]:
        request = pb.BatchGetTasksRequest(parent=await self._parent(), names=names, view=view_of(view))
        try:
            found = await self._channels.call(self._tasks.BatchGetTasks, request)
        except errors.BatchTooLarge:
            # The tasks have too many bytes for one response; a single one always fits.
            middle = len(names) // 2
            return [*await self._fetch(names[:middle], view), *await self._fetch(names[middle:], view)]
        return [Task(task) for task in found.tasks]

    async def explain(self, subject: str | Task | NewTask) -> Explanation:
        """Explains why a task does not run, or whether a new task would run.

        Example:
            answer = await client.explain(command("true", runner_labels={"zone": "moon"}))
            print(answer.runnable, answer.summary)
        """
        from taskyard.explanation import Explanation
        from taskyard.v1 import explain_service_pb2
        from taskyard.v1.explain_service_pb2_grpc import ExplainServiceStub

        stub: ExplainServiceAsyncStub = self._channels.stub("scheduler", ExplainServiceStub)
        request = explain_service_pb2.ExplainTaskRequest(parent=await self._parent())
        if isinstance(subject, NewTask):
            request.spec.CopyFrom(subject.request.task.spec)
        else:
            request.name = await self._name(subject)
        return Explanation(await self._channels.call(stub.ExplainTask, request))

    async def stats(
        self,
        filter: str = "",
        *,
        window: Seconds | None = None,
        group_by: Sequence[Literal["tenant", "task_type", "runner"]] = (),
        tenant: str = "",
    ) -> pb.GetTaskStatsResponse:
        """Counts by phase, run durations and queue times; within `window` if given, else of all tasks.

        Example:
            stats = await client.stats(group_by=["task_type"])
            print([(group.group, group.total) for group in stats.groups])
        """
        request = pb.GetTaskStatsRequest(parent=await self._parent(tenant), filter=filter)
        request.group_by.extend(
            pb.StatsDimension.Value(f"STATS_DIMENSION_{word.upper()}") for word in group_by
        )
        if window is not None:
            request.time_range.window.CopyFrom(to_duration(window))
        return await self._channels.call(self._tasks.GetTaskStats, request)

    def audit(
        self, filter: str = "", *, tenant: str = "", page_size: int = 0
    ) -> Stream[audit_pb2.AuditEvent]:
        """Who did what, newest first; filter fields: event_type, actor.type, actor.id, resource, time.

        Example:
            async for event in client.audit('event_type = "task.created"'):
                print(event.event_type, event.resource)
                break
        """

        async def first() -> AsyncGenerator[Sequence[audit_pb2.AuditEvent]]:
            request = pb.ListAuditEventsRequest(
                parent=await self._parent(tenant), filter=filter, page_size=page_size
            )
            return pages(
                self._channels, lambda: self._tasks.ListAuditEvents, request, "audit_events", _identity
            )

        return Stream(deferred(first))

    def checkpoints(self, task: str | Task) -> Stream[checkpoint_pb2.Checkpoint]:
        """The checkpoints of a task, newest first.

        Example:
            async for checkpoint in client.checkpoints("encode-17"):
                print(checkpoint.name)
        """

        async def first() -> AsyncGenerator[Sequence[checkpoint_pb2.Checkpoint]]:
            request = pb.ListCheckpointsRequest(parent=await self._name(task))
            return pages(
                self._channels, lambda: self._tasks.ListCheckpoints, request, "checkpoints", _identity
            )

        return Stream(deferred(first))

    async def read_checkpoint(self, task: str | Task, sequence: int | None = None) -> bytes:
        """The content of a checkpoint, by default of the newest one; raises errors.NotFound without one.

        Example:
            try:
                print(await client.read_checkpoint("encode-17"))
            except errors.NotFound:
                print("no checkpoint")
        """
        name = f"{await self._name(task)}/checkpoints/{'latest' if sequence is None else sequence}"
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
        events that only carry a newer resume_token. If a failover or a restore has replaced the history, an
        event of type GAP follows, then the tasks that differ from what was delivered, then every change.
        Raises errors.ResumeTokenExpired if the history after the token is no longer kept.

        Example:
            async for event in client.watch("encode-17", snapshot=True, until_terminal=True):
                print(event.time, event.phase)
        """
        request = pb.WatchTasksRequest(filter=filter, until_terminal=until_terminal, view=view_of(view))

        connected = False

        def open_watch(first_token: str, snapshot: bool) -> AsyncGenerator[pb.WatchTasksResponse]:
            nonlocal connected
            established, connected = connected, True

            def connect(token: str) -> Any:
                request.resume_token, request.snapshot = token, snapshot and not token
                return self._tasks.WatchTasks(request, timeout=STREAM_SECONDS)

            return responses(
                connect,
                first_token,
                endless=not until_terminal,
                silence=SILENCE_SECONDS,
                outage_timeout=self._outage_timeout,
                channels=self._channels,
                established=established,
            )

        async def first() -> AsyncGenerator[Sequence[Event]]:
            request.parent = await self._parent()
            request.names.extend([await self._name(task) for task in tasks])
            source = over_gaps(open_watch, resume_token, snapshot)
            return watch_batches(source, resume_token, bookmarks)

        return Stream(deferred(first))

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

        Example:
            async for line in client.logs("encode-17", follow=True):
                print(line.time, line.message)
        """
        request = pb.TailTaskLogsRequest(
            follow=follow,
            tail_lines=tail,
            generation=generation,
            min_level=cast("log_pb2.LogLevel.ValueType", int(min_level)),
        )

        def connect(token: str) -> Any:
            request.resume_token = token
            return self._tasks.TailTaskLogs(request, timeout=STREAM_SECONDS)

        async def first() -> AsyncGenerator[Sequence[LogEntry]]:
            request.parent = await self._name(task)
            source: AsyncGenerator[pb.TailTaskLogsResponse] = responses(
                connect,
                "",
                endless=False,
                silence=STREAM_SECONDS,
                outage_timeout=self._outage_timeout,
                channels=self._channels,
            )
            return log_batches(source)

        return Stream(deferred(first))


def view_of(view: View) -> pb.TaskView.ValueType:
    return pb.TaskView.Value(f"TASK_VIEW_{view.upper()}")


def all_of(filter: str, phase: Phase | str | None = None, labels: Mapping[str, str] | None = None) -> str:
    """A filter for what matches it, is in the phase, and has the labels."""
    terms = [f"({filter})"] if filter else []
    terms += [f"status.phase = {str(phase).upper()}"] if phase is not None else []
    terms += [f"metadata.labels.{name} = {quoted(value)}" for name, value in (labels or {}).items()]
    return filter if terms == [f"({filter})"] else " AND ".join(terms)


def quoted(text: str) -> str:
    """A text as a literal of a filter."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _identity(message: Any) -> Any:
    return message
