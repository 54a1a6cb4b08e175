"""Outages: calls that are safe to repeat wait them out, and the error after that names the server."""

import asyncio
import logging

import grpc.aio
import pytest

from clients.python.tests.task_server import KEY, TaskServer, serving
from taskyard import Client, command, errors


async def test_creates_wait_until_the_server_is_back() -> None:
    server = TaskServer()
    async with serving(server) as address, Client(address, key=KEY, patience=0) as client:
        await client.create(command("echo", id="before"))
    port = int(address.rpartition(":")[2])
    async with Client(address, key=KEY, patience=30) as client:
        calls = [asyncio.ensure_future(client.create(command("echo", id=f"n{i}"))) for i in range(20)]
        one = asyncio.ensure_future(client.get("before"))
        # Long enough for the first attempts, and for those that gRPC makes by itself, to fail.
        done, _ = await asyncio.wait([*calls, one], timeout=3)
        assert not done
        async with serving(server, port):
            assert [task.id for task in await asyncio.gather(*calls)] == [f"n{i}" for i in range(20)]
            assert (await one).id == "before"


async def test_the_error_after_the_patience_names_server_and_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "taskyard"):
        async with Client("127.0.0.1:1", key=KEY, tenant="default", patience=0.3) as client:
            with pytest.raises(errors.Unavailable) as caught:
                await client.get("a")
    expected = "no server answers at 127.0.0.1:1; gave up after 0.3 s (the setting `patience`)"
    assert str(caught.value) == expected
    assert caplog.messages == ["no server answers at 127.0.0.1:1; trying again for up to 0.3 s"]


async def test_a_refusal_is_not_an_outage(client: Client, server: TaskServer) -> None:
    server.faults = [errors.RateLimited("tenants/default", "1")]
    with pytest.raises(errors.RateLimited):
        await client.create(command("echo"))
    assert len(server.requests("CreateTask")) == 1


async def test_a_change_that_is_not_safe_to_repeat_fails_at_once() -> None:
    async with Client("127.0.0.1:1", key=KEY, tenant="default", patience=60) as client:
        with pytest.raises(errors.Unavailable):
            await asyncio.wait_for(client.delete("a"), 20)


@pytest.mark.parametrize("text", ["soon", "1m"])
def test_a_setting_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TASKYARD_PATIENCE", text)
    with pytest.raises(ValueError, match=f"TASKYARD_PATIENCE '{text}'"):
        Client("127.0.0.1:1")


async def test_another_services_address_is_named() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with Client(f"127.0.0.1:{port}", key=KEY, tenant="default", patience=0) as client:
        with pytest.raises(errors.Unimplemented, match=f"127.0.0.1:{port} .*not a taskdb.*TASKYARD_ADDRESS"):
            await client.get("a")
    await server.stop(None)


async def test_a_request_that_no_server_accepts_is_refused_before_it_is_sent(
    client: Client, server: TaskServer
) -> None:
    with pytest.raises(errors.TooLarge, match=r"task.spec.payload: 31457\d+ bytes .* by reference"):
        await client.create(command("cat", payload=b"x" * 30 * 1024 * 1024))
    assert not server.calls
