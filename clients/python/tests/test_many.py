"""Many tasks at a time: waiting for all of them, control by filter, progress callbacks, deadlines."""

import asyncio
import inspect

import pytest
from google.rpc import status_pb2

from clients.python.tests.task_server import KEY, TaskServer
from taskyard import Admin, Client, SyncClient, command, errors
from taskyard.groups import Groups
from taskyard.schedules import Schedules
from taskyard.status import to_status
from taskyard.sync import SyncAdmin, SyncGroups, SyncSchedules
from taskyard.v1 import task_pb2
from taskyard.v1 import task_service_pb2 as pb


def ending(*names: str) -> pb.WatchTasksResponse:
    """A watch response with the end of these tasks."""
    done = task_pb2.TaskStatus(phase=task_pb2.TASK_PHASE_SUCCEEDED)
    events = [
        pb.TaskEvent(
            type=pb.TASK_EVENT_TYPE_UPDATED,
            resource_version=9,
            task=task_pb2.Task(name=f"tenants/default/tasks/{name}", status=done),
            status=done,
        )
        for name in names
    ]
    return pb.WatchTasksResponse(events=events, resume_token="k")


async def test_wait_all_gives_each_task_once_when_it_has_ended(client: Client, server: TaskServer) -> None:
    tasks = [await client.create(command("true", id=name)) for name in ("a", "b", "c")]
    server.tasks[tasks[0].name].status.phase = task_pb2.TASK_PHASE_FAILED
    server.scripts = [[ending("c"), ending("c", "b")]]
    ended = [task.id async for task in client.wait_all([*tasks, "a"])]
    assert ended == ["a", "c", "b"]
    (watched,) = server.requests("WatchTasks")
    assert [name[-1] for name in watched.names] == ["b", "c"] and watched.until_terminal


async def test_wait_all_of_a_missing_task_is_an_error(client: Client) -> None:
    with pytest.raises(errors.NotFound):
        [task async for task in client.wait_all(["nope"])]


async def test_cancel_by_filter_continues_until_nothing_is_left(client: Client, server: TaskServer) -> None:
    fine = status_pb2.Status()
    refused = to_status(errors.TaskTerminal("b", "FAILED"))
    first = pb.BatchCancelTasksResponse(results=[pb.BatchTaskResult(name="a", status=fine)], more=True)
    # More, but nothing changes any more: it must not go round in circles.
    last = pb.BatchCancelTasksResponse(results=[pb.BatchTaskResult(name="b", status=refused)], more=True)
    server.batch_responses = [first, last]
    results = [result async for result in client.cancel_all("status.phase = LIVE")]
    assert [name for name, _ in results] == ["a", "b"]
    assert results[0][1] is None and isinstance(results[1][1], errors.TaskTerminal)


async def test_create_many_reports_progress(client: Client) -> None:
    reported: list[int] = []
    made = [
        one
        async for one in client.create_many((command("true") for _ in range(2100)), progress=reported.append)
    ]
    assert len(made) == 2100
    assert reported == [1000, 2000, 2100]


async def test_every_call_has_the_deadline_of_the_service_config(address: str, server: TaskServer) -> None:
    async with Client(address, key=KEY) as client:
        await client.create(command("true", id="a"))
        await client.get("a")
    assert [left is not None and 15 < left < 31 for left in server.time_left] == [True, True], (
        server.time_left
    )


async def test_explain_without_a_scheduler_names_the_setting(client: Client) -> None:
    with pytest.raises(ValueError, match="TASKYARD_SCHEDULER"):
        await client.explain("a")


@pytest.mark.parametrize(
    ("waiting", "target"),
    [(SyncClient, Client), (SyncAdmin, Admin), (SyncSchedules, Schedules), (SyncGroups, Groups)],
)
def test_the_sync_facade_has_every_method(waiting: type, target: type) -> None:
    own = {"close", "context"}
    public = {name for name, _ in inspect.getmembers(target, callable) if not name.startswith("_")}
    assert public <= {name for name in dir(waiting) if not name.startswith("_")} | own


async def test_the_sync_client_may_begin_with_any_list(address: str, server: TaskServer) -> None:
    def work() -> None:
        for begin in ("runs", "checkpoints", "audit"):
            with SyncClient(address, key=KEY) as client, pytest.raises(errors.Unimplemented):
                list(getattr(client, begin)("a"))

    await asyncio.to_thread(work)
