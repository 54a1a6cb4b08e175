"""WatchTasks and WaitTask over a real socket: snapshot, changes, filters, tokens, and their errors."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.yard import Yard, succeeded, with_start
from taskyard.errors import (
    ConsumerStalled,
    FieldInvalid,
    FilterInvalid,
    LogEpochChanged,
    NotFound,
    ResumeTokenExpired,
    ResumeTokenInvalid,
    StreamLimit,
)
from taskyard.status import from_rpc_error, translated
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.rpc import task_events
from taskyard_taskdb.rpc.watch import watch_query
from taskyard_taskdb.watch import hub as hub_module
from taskyard_taskdb.watch import subscription
from taskyard_taskdb.watch.token import ResumeToken

PARENT = "tenants/default"
SNAPSHOT = task_service_pb2.TASK_EVENT_TYPE_SNAPSHOT
ENTERED = task_service_pb2.TASK_EVENT_TYPE_ENTERED
EXITED = task_service_pb2.TASK_EVENT_TYPE_EXITED


def spec(task_type: str = "") -> task_pb2.Task:
    command = task_pb2.CommandExecution(program="true")
    return task_pb2.Task(
        spec=task_pb2.TaskSpec(task_type=task_type, execution=task_pb2.Execution(command=command))
    )


async def create(caller: Any, task_id: str, task_type: str = "") -> str:
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task=spec(task_type), task_id=task_id)
    name: str = (await caller.tasks.CreateTask(request)).task.name
    return name


async def cancel(caller: Any, name: str) -> None:
    await caller.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))


class Stream:
    """A watch whose responses are awaited one by one."""

    def __init__(self, caller: Any, **fields: Any) -> None:
        self.call = caller.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent=PARENT, **fields))
        self.token = ""

    async def responses(self) -> AsyncIterator[task_service_pb2.WatchTasksResponse]:
        async for response in self.call:
            self.token = response.resume_token or self.token
            yield response

    async def begin(self) -> None:
        """Return once the server has sent its first response, so that every later change is seen."""
        with translated():
            async with asyncio.timeout(10):
                await anext(self.responses())

    async def events(self, count: int) -> list[task_service_pb2.TaskEvent]:
        found: list[task_service_pb2.TaskEvent] = []
        with translated():
            async with asyncio.timeout(30):
                async for response in self.responses():
                    found += response.events
                    if len(found) >= count:
                        return found
        return found


def summary(event: task_service_pb2.TaskEvent) -> tuple[str, int, str]:
    return event.task.metadata.id, event.resource_version, event.event_type


async def test_a_watch_delivers_every_change_in_version_order(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller)
    await stream.begin()
    name = await create(caller, "a")
    await cancel(caller, name)
    events = await stream.events(2)
    assert [summary(event) for event in events] == [("a", 1, "task.created"), ("a", 2, "task.cancelled")]
    assert events[0].type == ENTERED
    assert events[0].status.phase == task_pb2.TASK_PHASE_PENDING
    assert events[1].previous_phase == task_pb2.TASK_PHASE_PENDING
    assert events[1].status.phase == task_pb2.TASK_PHASE_CANCELLED


async def test_a_snapshot_comes_first_and_changes_follow_without_a_gap(taskdb: Any) -> None:
    caller = await taskdb.caller()
    first = await create(caller, "a")
    stream = Stream(caller, snapshot=True)
    events = await stream.events(1)
    assert [(event.type, event.task.name) for event in events] == [(SNAPSHOT, first)]
    await create(caller, "b")
    assert [summary(event)[0] for event in await stream.events(1)] == ["b"]


async def test_a_watch_resumes_exactly_behind_its_token(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller)
    await stream.begin()
    await create(caller, "a")
    await stream.events(1)
    stream.call.cancel()
    await create(caller, "b")
    resumed = Stream(caller, resume_token=stream.token)
    await create(caller, "c")
    assert [summary(event)[0] for event in await resumed.events(2)] == ["b", "c"]


async def short_run(yard: Yard) -> None:
    """Claim what waits, and report start and success together."""
    runner, _ = await yard.hello()
    for assignment in (await yard.claim(runner)).assignments:
        await yard.report(runner, with_start(succeeded(assignment)))


async def test_a_start_and_the_success_that_came_with_it_are_two_events(taskdb: Any, yard: Yard) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller)
    await stream.begin()
    await create(caller, "a")
    await short_run(yard)
    events = await stream.events(4)
    assert [summary(event)[1:] for event in events[2:]] == [(3, "task.started"), (4, "task.succeeded")]
    phases = [(event.previous_phase, event.status.phase) for event in events[2:]]
    running = task_pb2.TASK_PHASE_RUNNING
    assert phases == [
        (task_pb2.TASK_PHASE_SCHEDULED, running),
        (running, task_pb2.TASK_PHASE_SUCCEEDED),
    ]


@pytest.mark.parametrize("window", [2, subscription.WINDOW])
async def test_a_watch_resumes_between_a_start_and_the_success_that_came_with_it(
    taskdb: Any, yard: Yard, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """Also where the part of the log that it reads at a time ends between the two."""
    monkeypatch.setattr(task_events, "SLICE", 1)
    monkeypatch.setattr(subscription, "WINDOW", window)
    caller = await taskdb.caller()
    token = (await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=PARENT))).resume_token
    await create(caller, "a")
    await create(caller, "b")
    await short_run(yard)
    seen: list[tuple[str, int, str]] = []
    while len(seen) < 8:
        # One event of each stream: the next one goes on exactly behind it.
        stream = Stream(caller, resume_token=token)
        async with asyncio.timeout(10):
            async for response in stream.responses():
                if response.events:
                    break
        seen += map(summary, response.events)
        token = response.resume_token
        stream.call.cancel()
    for task_id in ("a", "b"):
        assert [version for found, version, _ in seen if found == task_id] == [1, 2, 3, 4]


async def test_filtered_watch_sends_entered_and_exited_tasks(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller, filter='spec.task_type = "wanted" AND status.phase = PENDING')
    await stream.begin()
    await create(caller, "other", "unwanted")
    name = await create(caller, "mine", "wanted")
    await cancel(caller, name)
    events = await stream.events(2)
    assert [(event.type, event.task.metadata.id) for event in events] == [(ENTERED, "mine"), (EXITED, "mine")]


async def test_watch_filtered_by_parent_task_delivers_its_children(taskdb: Any) -> None:
    caller = await taskdb.caller()
    parent = await create(caller, "parent")
    stream = Stream(caller, filter=f'metadata.parent_task = "{parent}"')
    await stream.begin()
    for task_id, parent_task in (("orphan", ""), ("child", parent)):
        request = task_service_pb2.CreateTaskRequest(parent=PARENT, task=spec(), task_id=task_id)
        request.task.metadata.parent_task = parent_task
        await caller.tasks.CreateTask(request)
    assert [event.task.metadata.id for event in await stream.events(1)] == ["child"]


async def test_a_watch_of_named_tasks_ends_when_all_have_ended(taskdb: Any) -> None:
    caller = await taskdb.caller()
    names = [await create(caller, "a"), await create(caller, "b")]
    await create(caller, "c")
    stream = Stream(caller, names=names, until_terminal=True)
    await stream.begin()
    for name in names:
        await cancel(caller, name)
    assert [event.task.name for event in await stream.events(10)] == names


async def test_an_idle_watch_gets_bookmarks(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller, bookmark_interval=Duration(seconds=1))
    await stream.begin()
    async with asyncio.timeout(5):
        response = await anext(stream.responses())
    assert not response.events
    assert response.resume_token


@pytest.mark.covers("WaitTask", "NOT_FOUND")
async def test_changes_that_do_not_concern_a_watch_send_it_nothing(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller, filter='spec.task_type = "wanted"')
    await stream.begin()
    for index in range(5):
        await create(caller, f"other{index}", "unwanted")
        await taskdb.taskdb.hub.flush()
    await create(caller, "mine", "wanted")
    async with asyncio.timeout(10):
        response = await anext(stream.responses())
    assert [event.task.metadata.id for event in response.events] == ["mine"]


async def test_a_foreign_tenant_is_not_found(taskdb: Any) -> None:
    await taskdb.add_tenant("other")
    caller = await taskdb.caller(tenant_id="other")
    with pytest.raises(NotFound):
        await Stream(caller).begin()
    request = task_service_pb2.WaitTaskRequest(name=f"{PARENT}/tasks/a")
    with pytest.raises(NotFound):
        await caller.tasks.WaitTask(request)


@pytest.mark.covers("WatchTasks", "RESUME_TOKEN_INVALID")
async def test_a_damaged_token_and_one_of_another_watch_are_refused(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller)
    await stream.begin()
    with pytest.raises(ResumeTokenInvalid):
        await Stream(caller, resume_token="nonsense").begin()
    with pytest.raises(ResumeTokenInvalid):
        await Stream(caller, resume_token=stream.token, filter="status.phase = PENDING").begin()


@pytest.mark.covers("WatchTasks", "LOG_EPOCH_CHANGED")
@pytest.mark.covers("WatchTasks", "RESUME_TOKEN_EXPIRED")
async def test_a_token_of_another_history_and_an_expired_one_are_refused(taskdb: Any) -> None:
    caller = await taskdb.caller()
    stream = Stream(caller)
    await stream.begin()
    await create(caller, "a")
    await stream.events(1)
    hub = taskdb.taskdb.hub
    query = watch_query(PARENT, (), "")
    other = ResumeToken(hub.epoch + 1, hub.position, hub.time).encode(query)
    with pytest.raises(LogEpochChanged):
        await Stream(caller, resume_token=other).begin()
    await taskdb.rows("DELETE FROM changes WHERE id < %s RETURNING id", hub.position)
    await create(caller, "b")
    await stream.events(1)
    await taskdb.rows("DELETE FROM changes WHERE id <= %s RETURNING id", hub.position - 1)
    old = ResumeToken(hub.epoch, 0, hub.time.replace(year=2000)).encode(query)
    with pytest.raises(ResumeTokenExpired):
        await Stream(caller, resume_token=old).begin()


async def test_until_terminal_needs_names(taskdb: Any) -> None:
    caller = await taskdb.caller()
    with pytest.raises(FieldInvalid):
        await Stream(caller, until_terminal=True).begin()


async def test_wait_returns_when_the_task_has_ended(taskdb: Any) -> None:
    caller = await taskdb.caller()
    name = await create(caller, "a")
    request = task_service_pb2.WaitTaskRequest(name=name, timeout=Duration(seconds=20))
    waiting = asyncio.ensure_future(caller.tasks.WaitTask(request))
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    await cancel(caller, name)
    async with asyncio.timeout(5):
        response = await waiting
    assert response.satisfied
    assert response.task.status.phase == task_pb2.TASK_PHASE_CANCELLED


async def test_wait_returns_the_current_state_when_its_time_is_up(taskdb: Any) -> None:
    caller = await taskdb.caller()
    name = await create(caller, "a")
    request = task_service_pb2.WaitTaskRequest(name=name, timeout=Duration(nanos=100_000_000))
    response = await caller.tasks.WaitTask(request)
    assert not response.satisfied
    assert response.task.status.phase == task_pb2.TASK_PHASE_PENDING


async def test_wait_returns_past_a_version(taskdb: Any) -> None:
    caller = await taskdb.caller()
    name = await create(caller, "a")
    await cancel(caller, name)
    request = task_service_pb2.WaitTaskRequest(name=name, after_resource_version=1)
    assert (await caller.tasks.WaitTask(request)).task.metadata.resource_version == 2


async def test_a_resumed_watch_of_a_task_that_has_ended_meanwhile_delivers_its_end(taskdb: Any) -> None:
    caller = await taskdb.caller()
    name = await create(caller, "a")
    stream = Stream(caller, names=[name], until_terminal=True)
    await stream.begin()
    stream.call.cancel()
    await cancel(caller, name)
    resumed = Stream(caller, names=[name], until_terminal=True, resume_token=stream.token)
    assert [summary(event) for event in await resumed.events(10)] == [("a", 2, "task.cancelled")]


async def test_coalescing_skips_intermediate_versions_but_never_an_end(taskdb: Any) -> None:
    caller = await taskdb.caller()
    listed = await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=PARENT))
    for task_id in ("a", "b"):
        await taskdb.fail(await create(caller, task_id))
    await caller.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=f"{PARENT}/tasks/b"))
    stream = Stream(caller, resume_token=listed.resume_token, coalesce=True)
    assert [summary(event) for event in await stream.events(3)] == [
        ("a", 4, "task.failed"),
        ("b", 4, "task.failed"),
        ("b", 5, "task.retried"),
    ]


async def test_large_tasks_come_in_several_responses_whose_tokens_are_exact(
    taskdb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_events, "SLICE", 3)
    monkeypatch.setattr(task_events, "SLICE_BYTES", 1100)
    caller = await taskdb.caller()
    listed = await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=PARENT))
    for index in range(7):
        await create(caller, f"t{index}")
    seen: list[str] = []
    token = listed.resume_token
    while len(seen) < 7:
        # One response of each stream: the next one goes on exactly behind it.
        stream = Stream(caller, resume_token=token)
        async with asyncio.timeout(10):
            async for response in stream.responses():
                if response.events:
                    break
        assert len(response.events) <= 3
        seen += [event.task.metadata.id for event in response.events]
        token = response.resume_token
        stream.call.cancel()
    assert seen == [f"t{index}" for index in range(7)]


async def test_deleted_task_is_sent_as_deleted_after_its_earlier_changes(taskdb: Any) -> None:
    caller = await taskdb.caller()
    listed = await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=PARENT))
    name = await create(caller, "a")
    await cancel(caller, name)
    await caller.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name))
    events = await Stream(caller, resume_token=listed.resume_token).events(3)
    assert [(event.event_type, event.type) for event in events] == [
        ("task.created", ENTERED),
        ("task.cancelled", task_service_pb2.TASK_EVENT_TYPE_UPDATED),
        ("task.deleted", task_service_pb2.TASK_EVENT_TYPE_DELETED),
    ]
    assert {event.task.name for event in events} == {name}


async def test_a_stream_of_a_certain_age_ends_cleanly_with_a_token(
    taskdb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "SESSION_SECONDS", 0.5)
    caller = await taskdb.caller()
    stream = Stream(caller, bookmark_interval=Duration(seconds=1))
    async with asyncio.timeout(10):
        responses = [response async for response in stream.responses()]
    assert responses[-1].closing and responses[-1].resume_token
    assert await stream.call.code() == grpc.StatusCode.OK


@pytest.mark.covers("WatchTasks", "STREAM_LIMIT")
async def test_a_tenant_cannot_open_streams_without_end(taskdb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STREAMS_PER_TENANT", 2)
    caller = await taskdb.caller()
    streams = [Stream(caller) for _ in range(2)]
    for stream in streams:
        await stream.begin()
    with pytest.raises(StreamLimit):
        await Stream(caller).begin()


@pytest.mark.covers("WaitTask", "STREAM_LIMIT")
@pytest.mark.covers("TailTaskLogs", "STREAM_LIMIT")
async def test_waits_and_followed_logs_count_as_streams(taskdb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STREAMS_PER_TENANT", 1)
    caller = await taskdb.caller()
    name = await create(caller, "a")
    await Stream(caller).begin()
    with pytest.raises(StreamLimit):
        await caller.tasks.WaitTask(task_service_pb2.WaitTaskRequest(name=name))
    tail = caller.tasks.TailTaskLogs(task_service_pb2.TailTaskLogsRequest(parent=name, follow=True))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await tail.read()
    assert isinstance(from_rpc_error(caught.value), StreamLimit)


@pytest.mark.covers("WatchTasks", "CONSUMER_STALLED")
@pytest.mark.covers("TailTaskLogs", "CONSUMER_STALLED")
async def test_a_reader_that_takes_nothing_is_ended_and_costs_others_nothing(
    taskdb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard_kit.writes.STALL_SECONDS", 1.0)
    caller = await taskdb.caller()
    other = await taskdb.caller()
    stalled, lively = Stream(caller), Stream(other)
    await stalled.begin()
    await lively.begin()
    # 24 MB of events are more than gRPC buffers for a reader that does not read.
    text = "x" * 120_000
    reading = asyncio.create_task(lively.events(200))
    for index in range(200):
        await create_large(other, f"t{index}", text)
    assert len(await reading) == 200
    async with asyncio.timeout(30):
        for _ in range(300):
            if len(taskdb.taskdb.hub._by_tenant["default"]) == 1:
                break
            await asyncio.sleep(0.1)
    with pytest.raises(ConsumerStalled), translated():
        async with asyncio.timeout(30):
            async for _ in stalled.call:
                continue
    await create(caller, "later")
    assert [summary(event)[0] for event in await lively.events(1)] == ["later"]


async def create_large(caller: Any, task_id: str, text: str) -> None:
    task = spec()
    task.spec.execution.command.args.append(text)
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task=task, task_id=task_id)
    await caller.tasks.CreateTask(request)


async def test_the_tenant_of_the_key_is_meant_by_a_dash(taskdb: Any) -> None:
    await taskdb.add_tenant("other")
    mine, others = await taskdb.caller(), await taskdb.caller(tenant_id="other")
    call = mine.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent="tenants/-"))
    await call.read()
    request = task_service_pb2.CreateTaskRequest(parent="tenants/other", task=spec(), task_id="theirs")
    await others.tasks.CreateTask(request)
    await create(mine, "mine")
    async with asyncio.timeout(10):
        while not (response := await call.read()).events:
            continue
    assert [event.task.metadata.id for event in response.events] == ["mine"]


@pytest.mark.covers("WatchTasks", "FILTER_INVALID")
async def test_watch_with_an_invalid_filter_is_rejected(taskdb: Any) -> None:
    with pytest.raises(FilterInvalid):
        await Stream(await taskdb.caller(), filter="phase = 1").begin()


async def test_nothing_is_left_of_streams_that_were_cancelled(taskdb: Any) -> None:
    caller = await taskdb.caller()
    name = await create(caller, "a")
    hub = taskdb.taskdb.hub
    for fields in ({"names": [name]}, {}, {"filter": "status.phase = PENDING"}):
        streams = [Stream(caller, **fields) for _ in range(50)]
        await asyncio.gather(*(stream.begin() for stream in streams))
        for stream in streams:
            stream.call.cancel()
    async with asyncio.timeout(30):
        while hub._subscriptions:  # noqa: ASYNC110  only the handler learns of the end of a call
            await asyncio.sleep(0.05)
    assert not hub._by_task and not hub._by_tenant and not hub._streams
