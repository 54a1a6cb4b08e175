"""Limits of concurrent calls: per owner, in order, with a bounded queue."""

from __future__ import annotations

import asyncio

import pytest

from services.kit.tests.conftest import StartServer
from services.kit.tests.echo_service import KEYS, POLICIES, SERVICE, pb, rpc
from taskyard.errors import Overloaded
from taskyard_kit.auth import Kind, allow
from taskyard_kit.call_limits import CallLimits


class Calls:
    """Calls that run until they are released."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.running: list[str] = []
        self.release = asyncio.Event()

    async def make(self, owner: str) -> None:
        async with self.limits.call(owner):
            self.running.append(owner)
            await self.release.wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_calls_of_one_owner_wait_and_those_of_another_do_not() -> None:
    calls = Calls(CallLimits(2))
    tasks = [asyncio.create_task(calls.make(owner)) for owner in ("a", "a", "a", "a", "b")]
    await settle()
    assert calls.running == ["a", "a", "b"]
    calls.release.set()
    await asyncio.gather(*tasks)
    assert sorted(calls.running) == ["a", "a", "a", "a", "b"]


async def test_a_full_queue_sheds_with_a_delay() -> None:
    calls = Calls(CallLimits(1, max_waiting=1))
    tasks = [asyncio.create_task(calls.make("a")) for _ in range(2)]
    await settle()
    with pytest.raises(Overloaded) as shed:
        await calls.make("a")
    assert shed.value.retry_after
    calls.release.set()
    await asyncio.gather(*tasks)


async def test_a_cancelled_call_leaves_no_place_occupied() -> None:
    calls = Calls(CallLimits(1))
    first, second, third = (asyncio.create_task(calls.make("a")) for _ in range(3))
    await settle()
    second.cancel()
    await settle()
    first.cancel()
    await settle()
    assert calls.running == ["a", "a"]
    # The turn and the cancellation come in the same round of the loop.
    fourth = asyncio.create_task(calls.make("a"))
    await settle()
    third.cancel()
    await asyncio.sleep(0)
    fourth.cancel()
    await settle()
    calls.release.set()
    async with asyncio.timeout(5):
        await calls.make("a")


@pytest.mark.parametrize("scope", ["", "write"])
async def test_two_heavy_calls_of_a_tenant_run_at_a_time_and_others_pass(
    start_server: StartServer, scope: str
) -> None:
    heavy = allow(Kind.TENANT, Kind.ADMIN, scope=scope, heavy=True)
    server = await start_server({**POLICIES, f"/{SERVICE}/Echo": heavy})
    tenant = rpc.EchoServiceStub(server.channel(KEYS[Kind.TENANT].text))
    admin = rpc.EchoServiceStub(server.channel(KEYS[Kind.ADMIN].text))
    held = [asyncio.ensure_future(tenant.Echo(pb.EchoRequest(text=f"hold:{n}"))) for n in range(6)]
    async with asyncio.timeout(30):
        await server.servicer.entered.wait()
        for number in range(20):
            assert (await admin.Echo(pb.EchoRequest(text=str(number)))).text == str(number)
        assert server.servicer.hold_count == 2
        server.servicer.release.set()
        await asyncio.gather(*held)
    assert server.servicer.hold_count == 6
