"""The order in which calls begin: a busy tenant waits while the loop is late, others do not."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import grpc
import pytest

from taskyard_kit import fair_starts
from taskyard_kit.auth import Authenticator, Kind, allow
from taskyard_kit.fair_starts import FREE_CALLS, REST_SECONDS, FairStarts
from taskyard_kit.interceptors import Guard
from taskyard_kit.keys import ApiKey


def block_the_loop(seconds: float) -> None:
    time.sleep(seconds)


async def congested() -> FairStarts:
    """Two tenants call, and the loop is late."""
    starts = FairStarts()
    starts.enter("quiet")
    for _ in range(FREE_CALLS + 1):
        assert starts.enter("busy") is None
    block_the_loop(0.03)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return starts


async def test_the_calls_of_a_busy_tenant_wait_while_the_loop_is_late_and_begin_in_order() -> None:
    starts = await congested()
    turns = [starts.enter("busy") for _ in range(20)]
    assert turns[:FREE_CALLS] == [None] * FREE_CALLS
    waiting = [turn for turn in turns if turn is not None]
    assert len(waiting) == 20 - FREE_CALLS
    assert starts.enter("quiet") is None
    begun: list[int] = []
    for number, turn in enumerate(waiting):
        turn.add_done_callback(lambda _, number=number: begun.append(number))  # type: ignore[misc]
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)
    await asyncio.sleep(0)
    assert begun == list(range(len(waiting)))


async def test_tenants_that_wait_take_turns() -> None:
    starts = await congested()
    first = [turn for _ in range(30) if (turn := starts.enter("busy")) is not None]
    second = [turn for _ in range(3 + FREE_CALLS) if (turn := starts.enter("other")) is not None]
    async with asyncio.timeout(10):
        await asyncio.gather(*second)
    assert sum(turn.done() for turn in first) < len(first)
    async with asyncio.timeout(10):
        await asyncio.gather(*first)


async def test_streams_are_accepted_in_turn_while_the_loop_is_late() -> None:
    starts = await congested()
    calls = [turn for _ in range(30) if (turn := starts.enter("busy")) is not None]
    openings = [turn for _ in range(3) if (turn := starts.accept("/s/Watch")) is not None]
    assert len(openings) == 3
    async with asyncio.timeout(10):
        await asyncio.gather(*openings)
    assert sum(turn.done() for turn in calls) < len(calls)
    async with asyncio.timeout(10):
        await asyncio.gather(*calls)
    starts._contended_until = 0.0
    assert starts.accept("/s/Watch") is None


async def test_only_streams_of_tenants_are_held_back() -> None:
    policies = {
        "/s/Watch": allow(Kind.TENANT, Kind.ADMIN),
        "/s/Get": allow(Kind.TENANT),
        "/s/Connect": allow(Kind.RUNNER),
    }
    guard = Guard(Authenticator(NoKeys()), policies, timedelta(seconds=1))
    for method, make in (
        ("/s/Watch", grpc.unary_stream_rpc_method_handler),
        ("/s/Get", grpc.unary_unary_rpc_method_handler),
        ("/s/Connect", grpc.stream_stream_rpc_method_handler),
    ):
        guard.wrap(method, make(answer))
    guard.starts = await congested()
    assert [guard.pace(method) is not None for method in policies] == [True, False, False]


async def answer(request: bytes, context: object) -> bytes:
    return request


class NoKeys:
    async def verify(self, key: ApiKey) -> None:
        return None


async def test_a_tenant_that_is_alone_never_waits() -> None:
    starts = FairStarts()
    starts.enter("busy")
    starts._contended_until = 0.0
    for _ in range(3):
        assert [starts.enter("busy") for _ in range(20)] == [None] * 20
        block_the_loop(0.02)
        await asyncio.sleep(0)


async def test_nothing_waits_while_the_loop_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_starts, "LATE_SECONDS", 60.0)
    starts = await congested()
    assert [starts.enter("busy") for _ in range(20)] == [None] * 20


async def test_a_cancelled_call_does_not_use_up_a_turn() -> None:
    starts = await congested()
    waiting = [turn for _ in range(FREE_CALLS + 2) if (turn := starts.enter("busy")) is not None]
    waiting[0].cancel()
    async with asyncio.timeout(10):
        await waiting[1]


async def test_a_long_call_rests_only_while_the_loop_is_late() -> None:
    began = time.perf_counter()
    await FairStarts().rest()
    assert time.perf_counter() - began < REST_SECONDS
    starts = await congested()
    began = time.perf_counter()
    await starts.rest()
    assert time.perf_counter() - began >= REST_SECONDS * 0.9
