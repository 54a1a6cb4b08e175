"""Watches, logs and waits resume after broken connections and restarts, without gaps or repeats."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from clients.python.tests.task_server import KEY, TaskServer, serving
from taskyard import Client, EventType, LogSource, Phase, Stream, command, errors, retry_timer
from taskyard.channel import client_channel_options
from taskyard.channels import Channels
from taskyard.context import Context
from taskyard.stream import responses
from taskyard.v1 import log_pb2, task_pb2
from taskyard.v1 import task_service_pb2 as pb

RUNNING = task_pb2.TASK_PHASE_RUNNING


def changes(token: str, *versions: int, task: str = "a", closing: bool = False) -> pb.WatchTasksResponse:
    events = [
        pb.TaskEvent(
            type=pb.TASK_EVENT_TYPE_UPDATED,
            resource_version=version,
            task=task_pb2.Task(name=f"tenants/default/tasks/{task}"),
            status=task_pb2.TaskStatus(phase=RUNNING),
        )
        for version in versions
    ]
    return pb.WatchTasksResponse(events=events, resume_token=token, closing=closing)


def lines(token: str, *sequences: int, generation: int = 1, **rest: Any) -> pb.TailTaskLogsResponse:
    entries = [
        log_pb2.LogEntry(
            sequence=n, generation=generation, message=f"line {n}", source=log_pb2.LOG_SOURCE_STDOUT
        )
        for n in sequences
    ]
    return pb.TailTaskLogsResponse(entries=entries, resume_token=token, **rest)


async def take(stream: Stream[Any], count: int) -> list[Any]:
    taken = []
    async for item in stream:
        taken.append(item)
        if len(taken) == count:
            break
    await stream.aclose()
    return taken


async def test_a_watch_resumes_after_a_broken_connection(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1", 1, 2), errors.ServerDraining()], [changes("k2", 3)]]
    events = await take(client.watch("a"), 3)
    assert [event.version for event in events] == [1, 2, 3]
    assert [call.resume_token for call in server.requests("WatchTasks")] == ["", "k1"]
    assert (events[0].type, events[0].phase, events[0].task.id) == (EventType.UPDATED, Phase.RUNNING, "a")


async def test_a_watch_drops_repeats_by_version(client: Client, server: TaskServer) -> None:
    server.scripts = [
        [changes("k1", 1, 2), changes("k1", 2), changes("k2", 1, task="b"), changes("k3", 2, 3)],
    ]
    events = await take(client.watch(), 4)
    assert [(event.task.id, event.version) for event in events] == [("a", 1), ("a", 2), ("b", 1), ("a", 3)]


async def test_a_watch_reconnects_when_the_server_ends_it(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1", 1, closing=True)], [changes("k2", 2)]]
    assert [event.version for event in await take(client.watch(), 2)] == [1, 2]


async def test_tokens_of_events_lose_nothing_of_a_half_read_response(
    client: Client, server: TaskServer
) -> None:
    server.scripts = [[changes("k1", 1), changes("k2", 2, 3)]]
    events = await take(client.watch(resume_token="k0"), 3)
    assert [event.resume_token for event in events] == ["k1", "k1", "k2"]


async def test_snapshot_is_requested_again_only_without_a_token(client: Client, server: TaskServer) -> None:
    server.scripts = [
        [changes("", 1), errors.ServerDraining()],
        [changes("k1", 1, 2), errors.ServerDraining()],
    ]
    server.scripts += [[changes("k2", 3)]]
    events = await take(client.watch(snapshot=True), 3)
    assert [event.version for event in events] == [1, 2, 3]
    assert [call.snapshot for call in server.requests("WatchTasks")] == [True, True, False]


async def test_a_watch_until_terminal_ends_with_the_server(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1", 1)]]
    assert [event.version async for event in client.watch("a", until_terminal=True)] == [1]


async def test_bookmarks_are_delivered_on_request(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1"), changes("k2", 1)]]
    events = await take(client.watch(bookmarks=True), 2)
    assert [(event.type, event.resume_token) for event in events] == [
        (EventType.BOOKMARK, "k1"),
        (EventType.UPDATED, "k2"),
    ]


async def test_lost_history_is_an_error_never_a_gap(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1", 1), errors.ServerDraining()], [errors.ResumeTokenExpired("1", "2")]]
    with pytest.raises(errors.ResumeTokenExpired):
        await take(client.watch(), 2)


def snapshot(*tasks: tuple[str, int], complete: str) -> list[pb.WatchTasksResponse]:
    responses = [changes("", version, task=task) for task, version in tasks]
    for response in responses:
        response.events[0].type = pb.TASK_EVENT_TYPE_SNAPSHOT
    return [*responses, pb.WatchTasksResponse(resume_token=complete, snapshot_complete=True)]


async def test_replaced_history_is_a_marked_gap_followed_by_what_differs(
    client: Client, server: TaskServer
) -> None:
    server.scripts = [
        [
            changes("k1", 1, 2),
            changes("k2", 1, task="b"),
            changes("k3", 4, task="c"),
            errors.ServerDraining(),
        ],
        [errors.LogEpochChanged("1", "2")],
        # a is newer, b is the same, c is back at an earlier version because the later ones were lost.
        [*snapshot(("a", 3), ("b", 1), ("c", 2), complete="k4"), changes("k5", 3, task="c")],
    ]
    events = await take(client.watch(), 7)
    assert [(event.type, event.task.id, event.version) for event in events] == [
        (EventType.UPDATED, "a", 1),
        (EventType.UPDATED, "a", 2),
        (EventType.UPDATED, "b", 1),
        (EventType.UPDATED, "c", 4),
        (EventType.GAP, "", 0),
        (EventType.SNAPSHOT, "a", 3),
        (EventType.SNAPSHOT, "c", 2),
    ]
    assert [event.resume_token for event in events[4:]] == ["k3", "k3", "k3"]
    calls = server.requests("WatchTasks")
    assert [(call.resume_token, call.snapshot) for call in calls] == [("", False), ("k3", False), ("", True)]


async def test_changes_after_a_gap_are_delivered_even_below_the_lost_versions(
    client: Client, server: TaskServer
) -> None:
    server.scripts = [
        [changes("k1", 4), errors.LogEpochChanged("1", "2")],
        [*snapshot(("a", 2), complete="k2"), changes("k3", 2), changes("k4", 3, 4)],
    ]
    events = await take(client.watch(), 5)
    assert [event.version for event in events] == [4, 0, 2, 3, 4]
    assert events[-1].resume_token == "k4"


async def test_an_outage_right_after_a_gap_is_retried(client: Client, server: TaskServer) -> None:
    server.scripts = [
        [changes("k1", 1), errors.LogEpochChanged("1", "2")],
        [errors.StorageUnavailable("not applied")],
        snapshot(("a", 2), complete="k2"),
    ]
    events = await take(client.watch(), 3)
    assert [(event.type, event.version) for event in events[1:]] == [
        (EventType.GAP, 0),
        (EventType.SNAPSHOT, 2),
    ]


async def test_a_stored_token_of_a_replaced_history_begins_with_a_gap(
    client: Client, server: TaskServer
) -> None:
    server.scripts = [[errors.LogEpochChanged("1", "2")], snapshot(("a", 2), complete="k2")]
    events = await take(client.watch(resume_token="old"), 2)
    assert [(event.type, event.resume_token) for event in events] == [
        (EventType.GAP, "old"),
        (EventType.SNAPSHOT, "old"),
    ]


async def test_stalled_reader_resumes(client: Client, server: TaskServer) -> None:
    server.scripts = [[changes("k1", 1), errors.ConsumerStalled("the watch", "60 s")], [changes("k2", 2)]]
    assert [event.version for event in await take(client.watch(), 2)] == [1, 2]


async def test_watch_that_never_connected_fails_after_its_patience() -> None:
    async with Client("127.0.0.1:1", key=KEY, patience=0.5) as client:
        with pytest.raises(
            errors.Unavailable, match=r"no server answers at 127\.0\.0\.1:1; gave up after 0\.5"
        ):
            await asyncio.wait_for(take(client.watch(), 1), 20)


async def test_outage_timeout_raises() -> None:
    server = TaskServer()
    server.scripts = [[changes("k1", 1), errors.ServerDraining()]]
    async with serving(server) as address, Client(address, key=KEY, outage_timeout=0.3) as client:
        server.faults = []
        events = aiter(client.watch())
        await anext(events)
        server.faults = [errors.ServerDraining() for _ in range(100)]
        with pytest.raises(errors.ServerDraining):
            await asyncio.wait_for(anext(events), 10)


async def test_a_watch_survives_a_restart_of_the_server() -> None:
    first, second = TaskServer(), TaskServer()
    first.scripts, second.scripts = [[changes("k1", 1), asyncio.Event()]], [[changes("k2", 2)]]
    async with serving(first) as address:
        client = Client(address, key=KEY, outage_timeout=20)
        events = aiter(client.watch())
        assert (await anext(events)).version == 1
    following = asyncio.ensure_future(anext(events))
    async with serving(second, int(address.rpartition(":")[2])):
        assert (await asyncio.wait_for(following, 20)).version == 2
        assert second.requests("WatchTasks")[0].resume_token == "k1"
        await client.close()


async def test_logs_resume_without_gap_or_repeat(client: Client, server: TaskServer) -> None:
    server.scripts = [
        [lines("k1", 1, 2), errors.ServerDraining()],
        [lines("k2", 2, 3), lines("k3", 1, generation=2), lines("k4", complete=True)],
    ]
    entries = [entry async for entry in client.logs("a", follow=True)]
    assert [(entry.generation, entry.sequence) for entry in entries] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert [call.resume_token for call in server.requests("TailTaskLogs")] == ["", "k1"]
    assert entries[0].source == LogSource.STDOUT


async def test_logs_without_follow_end_with_the_stream(client: Client, server: TaskServer) -> None:
    server.scripts = [[lines("k1", 1)]]
    assert [entry.message async for entry in client.logs("a", tail=5)] == ["line 1"]
    assert server.requests("TailTaskLogs")[0].tail_lines == 5


async def test_dropped_lines_leave_a_trace(client: Client, server: TaskServer) -> None:
    server.scripts = [[lines("k1", 7, dropped_count=6)]]
    entries = [entry async for entry in client.logs("a")]
    assert "6 lines" in entries[0].message
    assert entries[1].message == "line 7"


async def test_wait_returns_the_ended_task(client: Client, server: TaskServer) -> None:
    task = await client.create(command("echo"))
    waiting = asyncio.ensure_future(client.wait(task))
    await server.called("WaitTask")
    server.ended.set()
    assert (await waiting).phase is Phase.SUCCEEDED


async def test_wait_retries_during_an_outage(client: Client, server: TaskServer) -> None:
    task = await client.create(command("echo"))
    server.faults = [errors.StorageUnavailable()] * 8
    server.ended.set()
    assert (await client.wait(task)).phase.terminal


async def test_wait_raises_timeout(client: Client) -> None:
    task = await client.create(command("echo"))
    with pytest.raises(TimeoutError) as raised:
        await client.wait(task, timeout=0.2)
    hint = f'client.explain("{task.id}") or `taskyard explain {task.id}` gives the reason'
    assert str(raised.value) == f"{task.name} is still PENDING after 0.2 s; {hint}"


async def test_wait_for_an_unknown_task_fails(client: Client, server: TaskServer) -> None:
    server.faults = [errors.NotFound("task", "nope")]
    with pytest.raises(errors.NotFound):
        await client.wait("nope")


@pytest.mark.parametrize("rounds", range(6))
async def test_cancellation_that_races_with_a_response_is_not_lost(rounds: int) -> None:
    """Whichever comes first by how many rounds of the loop: Ctrl-C ends a watch of a busy server."""
    response: asyncio.Future[pb.WatchTasksResponse] = asyncio.get_running_loop().create_future()

    read_started = asyncio.Event()

    class Call:
        async def read(self) -> pb.WatchTasksResponse:
            read_started.set()
            return await response

        def cancel(self) -> None:
            """Nothing is under way."""

    channels = Channels(Context("127.0.0.1:1"))
    source: Any = responses(
        lambda token: Call(), "", endless=True, silence=60, outage_timeout=0, channels=channels
    )
    reading = asyncio.ensure_future(anext(source))
    await read_started.wait()
    response.set_result(changes("k1", 1))
    for _ in range(rounds):
        await asyncio.sleep(0)
    if reading.cancel():
        with pytest.raises(asyncio.CancelledError):
            await reading
    else:
        assert (await reading).resume_token == "k1"
    await source.aclose()


async def test_broken_stream_reconnects_every_second_during_a_long_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delays: list[float] = []

    async def record(delay: float) -> None:
        delays.append(delay)

    monkeypatch.setattr(retry_timer, "asyncio", SimpleNamespace(sleep=record))
    timer = retry_timer.RetryTimer(60.0)
    for _ in range(20):
        await timer.wait(errors.Unavailable(message="gone"))
    assert max(delays) <= 1.0
    assert dict(client_channel_options())["grpc.max_reconnect_backoff_ms"] <= 1000
