"""A served TaskServer and a client of it per test."""

from collections.abc import AsyncIterator

import pytest

from clients.python.tests.task_server import KEY, TaskServer, serving
from taskyard import Client


@pytest.fixture
async def server() -> TaskServer:
    return TaskServer()


@pytest.fixture
async def address(server: TaskServer) -> AsyncIterator[str]:
    async with serving(server) as address:
        yield address


@pytest.fixture
async def client(address: str) -> AsyncIterator[Client]:
    async with Client(address, key=KEY, timeout=10, patience=0, outage_timeout=10) as client:
        yield client
