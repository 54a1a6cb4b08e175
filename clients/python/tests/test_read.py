"""Reading tasks, and the façade for code without asyncio."""

import asyncio

import pytest

from clients.python.tests.task_server import KEY, TaskServer
from taskyard import Client, Created, Phase, PlaintextRefused, SyncClient, command, errors
from taskyard.task import RunState


async def test_get_takes_an_id_a_name_and_a_task(client: Client) -> None:
    task = await client.create(command("echo", id="a"))
    for named in ("a", "tenants/default/tasks/a", task):
        assert (await client.get(named)).name == "tenants/default/tasks/a"


async def test_an_unknown_task_is_an_error_with_its_name(client: Client) -> None:
    with pytest.raises(errors.NotFound) as caught:
        await client.get("nope")
    assert caught.value.name == "tenants/default/tasks/nope"


async def test_list_reads_page_by_page(client: Client, server: TaskServer) -> None:
    async for _ in client.create_many(command("echo", id=f"n{i}") for i in range(2300)):
        pass
    assert {task.id async for task in client.list()} == {f"n{i}" for i in range(2300)}
    assert len(server.requests("ListTasks")) == 3
    assert len([task async for task in client.list(limit=5)]) == 5
    assert server.requests("ListTasks")[-1].page_size == 5


async def test_list_joins_filter_and_phase(client: Client, server: TaskServer) -> None:
    [_ async for _ in client.list('spec.task_type = "x" OR id = "y"', phase=Phase.RUNNING)]
    [_ async for _ in client.list(phase="live")]
    filters = [call.filter for call in server.requests("ListTasks")]
    assert filters == ['(spec.task_type = "x" OR id = "y") AND status.phase = RUNNING', "status.phase = LIVE"]


@pytest.mark.seed("S4.76")
def test_an_unknown_phase_is_live_and_keeps_its_number() -> None:
    assert Phase(99) == 99
    assert not Phase(99).terminal
    assert str(Phase(99)) == "PHASE_99"
    assert str(RunState(3)) == "SUCCEEDED"


async def test_plaintext_to_another_machine_is_refused() -> None:
    with pytest.raises(PlaintextRefused, match="TLS"):
        Client("192.0.2.1:7420", key=KEY)
    with pytest.raises(PlaintextRefused, match=r"192\.0\.2\.1"):
        Client("localhost:1,192.0.2.1:7420", key=KEY)


async def test_the_sync_client_is_the_same_client(address: str, server: TaskServer) -> None:
    def work() -> None:
        with SyncClient(address, key=KEY) as client:
            task = client.create(command("echo", id="a"))
            assert client.get(task).id == "a"
            made = list(client.create_many(command("echo", id=f"n{i}") for i in range(1500)))
            assert sum(isinstance(one, Created) for one in made) == 1500
            assert sum(1 for _ in client.list()) == 1501
            with pytest.raises(errors.NotFound):
                client.get("nope")
            assert next(iter(client.list())).id == "a"
            assert client.context.address == address
        client.close()

    await asyncio.to_thread(work)


def test_the_sync_client_has_every_method_of_the_client() -> None:
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public <= {name for name in vars(SyncClient) if not name.startswith("_")}
    # Of the other APIs, each has a facade of its own.
    for name in public - {"close", "admin", "groups", "limits", "schedules"}:
        assert getattr(SyncClient, name).__doc__ == getattr(Client, name).__doc__
