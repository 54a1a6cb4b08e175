"""What `taskyard status` learns from a taskdb that runs and does not serve."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from taskyard import errors
from taskyard.cli.status import reasons
from taskyard.client import Client
from taskyard.v1 import admin_service_pb2 as pb

FULL = pb.GetSystemStatusResponse(problems=["the disk of the database is full; make room on it"])


def client(state: str, answer: Any) -> Client:
    async def server_state(address: str) -> str:
        return state

    async def system_status(timeout: float) -> pb.GetSystemStatusResponse:
        if isinstance(answer, float):
            await asyncio.sleep(answer)
        if isinstance(answer, Exception):
            raise answer
        return FULL

    context = SimpleNamespace(address="a:1,b:1")
    admin = SimpleNamespace(system_status=system_status)
    return cast("Client", SimpleNamespace(context=context, server_state=server_state, admin=admin))


@pytest.mark.parametrize(
    ("state", "answer", "shown"),
    [
        ("not serving", None, True),
        ("not reachable", None, False),
        ("not serving", errors.PermissionDenied("no"), False),
        ("not serving", 60.0, False),
    ],
)
def test_the_reason_is_shown_if_taskdb_answers(
    monkeypatch: pytest.MonkeyPatch, state: str, answer: Any, shown: bool
) -> None:
    monkeypatch.setitem(reasons.__globals__, "REASON_SECONDS", 0.05)
    found = asyncio.run(reasons(client(state, answer)))
    assert found == (FULL if shown else None)
