"""The service config: it names every method once, suits the shape of each, and gRPC obeys it."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor import MethodDescriptor

import taskyard.compat.v1
import taskyard.v1
from taskyard import errors
from taskyard.channel import client_channel_options, open_channel
from taskyard.service_config import service_config
from taskyard.status import trailing_metadata, translated


def methods() -> dict[tuple[str, str], MethodDescriptor]:
    found = {}
    for package in (taskyard.v1, taskyard.compat.v1):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("_pb2"):
                continue
            for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
                found.update({(service.full_name, method.name): method for method in service.methods})
    return found


def entries() -> list[tuple[tuple[str, str], dict[str, Any]]]:
    configs = json.loads(service_config())["methodConfig"]
    return [((name["service"], name["method"]), config) for config in configs for name in config["name"]]


def test_every_method_is_named_exactly_once() -> None:
    named = Counter(name for name, _ in entries())
    assert set(named) == set(methods())
    assert set(named.values()) == {1}


def test_unary_methods_have_a_timeout_and_streams_have_neither_timeout_nor_retry() -> None:
    declared = methods()
    for name, config in entries():
        streams = declared[name].client_streaming or declared[name].server_streaming
        assert ("timeout" in config) != streams, name
        assert not (streams and "retryPolicy" in config), name


async def call(channel: grpc.aio.Channel, method: str, **options: Any) -> bytes:
    multicallable: Any = channel.unary_unary(method)
    answer: bytes = await multicallable(b"", **options)
    return answer


class Flaky(grpc.GenericRpcHandler):
    """Fails CreateTask and CreateApiKey with UNAVAILABLE a given number of times, then succeeds."""

    def __init__(self) -> None:
        self.failures = 0
        self.calls = 0

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def answer(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        if self.calls <= self.failures:
            error = errors.StorageUnavailable()
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error), trailing_metadata(error))
        return b"done"


@pytest.fixture
async def flaky(tmp_path: Path) -> AsyncIterator[tuple[Flaky, str]]:
    handler, address = Flaky(), f"unix:{tmp_path}/flaky.sock"
    server = grpc.aio.server(handlers=(handler,))
    server.add_insecure_port(address)
    await server.start()
    yield handler, address
    await server.stop(None)


async def test_a_method_that_may_be_repeated_is_retried(flaky: tuple[Flaky, str]) -> None:
    handler, address = flaky
    handler.failures = 2
    async with open_channel(address) as channel:
        assert await call(channel, "/taskyard.v1.TaskService/CreateTask") == b"done"
    assert handler.calls == 3


async def test_a_method_that_must_not_be_repeated_is_not_retried(flaky: tuple[Flaky, str]) -> None:
    handler, address = flaky
    handler.failures = 1
    async with open_channel(address) as channel:
        with pytest.raises(errors.StorageUnavailable), translated():
            await call(channel, "/taskyard.v1.ApiKeyService/CreateApiKey")
    assert handler.calls == 1


async def test_a_timeout_of_the_config_becomes_the_deadline_of_the_call(tmp_path: Path) -> None:
    remaining: list[float] = []

    class Deadline(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(self.answer)

        async def answer(self, request: bytes, context: Any) -> bytes:
            remaining.append(context.time_remaining())
            return b""

    server = grpc.aio.server(handlers=(Deadline(),))
    server.add_insecure_port(f"unix:{tmp_path}/deadline.sock")
    await server.start()
    async with open_channel(f"unix:{tmp_path}/deadline.sock") as channel:
        await call(channel, "/taskyard.v1.SessionService/RenewSessions")
        await call(channel, "/taskyard.v1.TaskService/GetTask")
        await call(channel, "/taskyard.v1.TaskService/GetTask", timeout=2)
    await server.stop(None)
    # The wire form of a timeout is rounded up.
    assert 4 < remaining[0] <= 6
    assert 29 < remaining[1] <= 31
    assert 1 < remaining[2] <= 3


def test_grpc_gets_the_retries_without_the_timeouts_that_it_would_cut_short() -> None:
    (passed,) = [value for name, value in client_channel_options() if name == "grpc.service_config"]
    configs = json.loads(passed)["methodConfig"]
    assert not any("timeout" in config for config in configs)
    assert sum("retryPolicy" in config for config in configs) > 3
