"""Fixtures of the kit's tests: a real server of kit_echo.proto in this process, and channels to it."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2_grpc

from services.kit.tests import stubs

STUBS = Path(tempfile.mkdtemp(prefix="kit-stubs-"))
atexit.register(shutil.rmtree, STUBS, ignore_errors=True)
stubs.generate(STUBS)
sys.path.insert(0, str(STUBS))

from services.kit.tests import echo_service  # noqa: E402
from services.kit.tests.echo_service import KEYS, POLICIES, EchoServicer, EchoSettings, Keys, rpc  # noqa: E402
from taskyard.channel import open_channel  # noqa: E402
from taskyard_kit.auth import Kind, Policy  # noqa: E402
from taskyard_kit.serve import Server  # noqa: E402

__all__ = ["echo_service"]


def health_stub(channel: grpc.aio.Channel) -> Any:
    """A stub of the standard health service; its type stubs lack its methods."""
    return health_pb2_grpc.HealthStub(channel)


@dataclass
class Running:
    """A server in this process, with ways to reach it."""

    server: Server
    servicer: EchoServicer
    keys: Keys
    channels: list[grpc.aio.Channel]

    def channel(self, key: str | None = None) -> grpc.aio.Channel:
        """A channel with a tenant's key, or with the key given; empty for none."""
        made = open_channel(self.server.address, key=KEYS[Kind.TENANT].text if key is None else key)
        self.channels.append(made)
        return made

    def stub(self, key: str | None = None) -> Any:
        return rpc.EchoServiceStub(self.channel(key))


StartServer = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start_server(tmp_path: Path) -> AsyncIterator[StartServer]:
    """Starts servers on unix sockets; settings as keywords, `policies` in place of the complete table."""
    running: list[Running] = []

    async def start(policies: dict[str, Policy] | None = None, **settings: Any) -> Running:
        settings.setdefault("listen", f"unix:{tmp_path}/echo{len(running)}.sock")
        keys, servicer = Keys(), EchoServicer()
        table = POLICIES if policies is None else policies
        server = Server(EchoSettings(**settings), verifier=keys, policies=table)
        server.add(rpc.add_EchoServiceServicer_to_server, servicer)
        await server.start()
        running.append(Running(server, servicer, keys, []))
        return running[-1]

    yield start
    for each in running:
        for channel in each.channels:
            await channel.close()
        await each.server.stop_now()


@pytest.fixture
async def echo(start_server: StartServer) -> Running:
    """A server with the default settings."""
    return await start_server()
