"""Creating: one task however often the call is repeated, batches that share calls, backpressure."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from clients.python.tests.task_server import KEY, TaskServer
from taskyard import Client, Created, NewTask, Outcome, Phase, command, errors
from taskyard.v1.task_service_pb2 import CreateTaskRequest


async def test_create_returns_the_stored_task(client: Client, server: TaskServer) -> None:
    task = await client.create(command("echo", "hi", labels={"a": "b"}))
    assert (task.id, task.phase, task.labels, task.outcome) == (
        "t0",
        Phase.PENDING,
        {"a": "b"},
        Outcome.CREATED,
    )
    assert server.requests("CreateTask")[0].request_id


async def test_the_same_request_id_names_the_first_task(client: Client) -> None:
    first = await client.create(command("echo", request_id="r1"))
    again = await client.create(command("echo", request_id="r1"))
    assert (again.name, again.outcome) == (first.name, Outcome.REPLAYED)


async def test_a_new_task_used_twice_makes_two_tasks(client: Client) -> None:
    new = command("echo")
    assert (await client.create(new)).name != (await client.create(new)).name
    assert new.request.request_id == ""


async def test_creates_at_the_same_time_share_calls(client: Client, server: TaskServer) -> None:
    tasks = await asyncio.gather(*(client.create(command("echo", id=f"n{i}")) for i in range(300)))
    assert [task.id for task in tasks] == [f"n{i}" for i in range(300)]
    assert len(server.calls) <= 3


async def test_refused_create_leaves_its_batch_alone(client: Client, server: TaskServer) -> None:
    server.item_fault = lambda request: (
        errors.FieldInvalid.of("requests[1].task.spec.priority", "1001 is above 1000")
        if request.task_id == "bad"
        else None
    )
    made = await asyncio.gather(
        *(client.create(command("echo", id=name)) for name in ("a", "bad", "c")), return_exceptions=True
    )
    refused = made[1]
    assert isinstance(refused, errors.FieldInvalid)
    assert refused.violations[0].field == "task.spec.priority"
    assert str(refused) == "task.spec.priority: 1001 is above 1000"
    assert {"tenants/default/tasks/a", "tenants/default/tasks/c"} == set(server.tasks)


async def test_cancelled_create_leaves_its_batch_alone(client: Client, server: TaskServer) -> None:
    server.gate = asyncio.Event()
    calls = [asyncio.ensure_future(client.create(command("echo", id=f"n{i}"))) for i in range(3)]
    await server.called("BatchCreateTasks")
    calls[0].cancel()
    server.gate.set()
    rest = await asyncio.gather(*calls[1:])
    assert [task.id for task in rest] == ["n1", "n2"]
    assert calls[0].cancelled()


async def test_create_many_keeps_the_order(client: Client, server: TaskServer) -> None:
    made = [task async for task in client.create_many(command("echo", id=f"n{i}") for i in range(2500))]
    assert [task.id for task in made if isinstance(task, Created)] == [f"n{i}" for i in range(2500)]
    assert sorted(len(call.requests) for call in server.requests("BatchCreateTasks")) == [500, 1000, 1000]


async def test_create_many_reads_no_faster_than_the_server_takes(client: Client, server: TaskServer) -> None:
    server.gate = asyncio.Event()
    read = 0

    def source() -> Iterator[NewTask]:
        nonlocal read
        for _ in range(20_000):
            read += 1
            yield command("echo")

    stream = client.create_many(source(), in_flight=2)
    first = asyncio.ensure_future(anext(aiter(stream)))
    await server.called("BatchCreateTasks", 2)
    assert read <= 3001
    server.gate.set()
    assert isinstance(await first, Created)
    await stream.aclose()
    assert read <= 5001


async def test_create_many_splits_by_size(client: Client, server: TaskServer) -> None:
    payload = b"x" * 1_000_000
    made = [task async for task in client.create_many(command("echo", payload=payload) for _ in range(7))]
    assert len(made) == 7
    assert all(call.ByteSize() < 4 * 1024 * 1024 for call in server.requests("BatchCreateTasks"))


async def test_create_many_takes_an_async_source(client: Client) -> None:
    async def source() -> AsyncIterator[NewTask]:
        for i in range(3):
            yield command("echo", id=f"a{i}")

    made = [task async for task in client.create_many(source())]
    assert [task.id for task in made if isinstance(task, Created)] == ["a0", "a1", "a2"]


async def test_create_many_honours_retry_after(client: Client, server: TaskServer) -> None:
    refusals = 0

    def refuse_once(request: CreateTaskRequest) -> errors.TaskyardError | None:
        nonlocal refusals
        if request.task_id == "n1" and refusals < 2:
            refusals += 1
            return errors.RateLimited("tenants/default", "1", retry_after=timedelta(milliseconds=20))
        return None

    server.item_fault = refuse_once
    made = [task async for task in client.create_many(command("echo", id=f"n{i}") for i in range(3))]
    assert [task.id for task in made if isinstance(task, Created)] == ["n0", "n1", "n2"]
    assert [len(call.requests) for call in server.requests("BatchCreateTasks")] == [3, 1, 1]
    ids = [call.requests[-1].request_id for call in server.requests("BatchCreateTasks")[1:]]
    assert len(set(ids)) == 1


async def test_create_many_splits_batches_rejected_as_too_large(client: Client, server: TaskServer) -> None:
    server.batch_limit = 50
    made = [task async for task in client.create_many(command("echo", id=f"n{i}") for i in range(120))]
    assert [task.id for task in made if isinstance(task, Created)] == [f"n{i}" for i in range(120)]


async def test_create_many_gives_final_errors_in_place(client: Client, server: TaskServer) -> None:
    server.item_fault = lambda request: (
        errors.AlreadyExists("task", "n1") if request.task_id == "n1" else None
    )
    made = [task async for task in client.create_many(command("echo", id=f"n{i}") for i in range(3))]
    assert isinstance(made[1], errors.AlreadyExists)
    assert isinstance(made[0], Created) and isinstance(made[2], Created)


async def test_a_wrong_key_is_refused_with_its_reason(address: str) -> None:
    async with Client(address, key="ty_wrong_key") as client:
        with pytest.raises(errors.Unauthenticated):
            await client.create(command("echo"))


async def test_no_server_is_an_error_at_once() -> None:
    async with Client("127.0.0.1:1", key=KEY, patience=0) as client:
        with pytest.raises(errors.Unavailable):
            await asyncio.wait_for(client.create(command("echo")), 20)
