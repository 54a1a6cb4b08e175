"""Calls of functions about their children: they last as long as an outage, and end with their run."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import grpc.aio
import pytest

from services.runner.tests.function_calls import APP
from services.runner.tests.runner_process import RunnerProcess, function
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.errors import FieldInvalid, Overloaded, StorageUnavailable
from taskyard.v1.lease_pb2 import LEASE_ACTION_CANCEL, LeaseRef
from taskyard.v1.runner_link_service_pb2 import HELD_STATE_STOPPING
from taskyard_runner.agent import children as module
from taskyard_runner.agent.children import Children, ChildrenRefused
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.leases import Held
from taskyard_runner.agent.run import AgentRun

TASK = "tenants/default/tasks/parent"
CHILD = {"key": "a", "task": {}}
OUTAGE = StorageUnavailable("not applied")


@pytest.fixture
async def children(peer: SchedulerPeer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Children]:
    monkeypatch.setattr(module, "_FIRST_DELAY", 0.001)
    monkeypatch.setattr(module, "_MAX_DELAY", 0.001)
    async with grpc.aio.insecure_channel(peer.address) as channel:
        yield Children(channel, "runner")


@pytest.fixture
def run(tmp_path: Path) -> AgentRun:
    held = Held(LeaseRef(task=TASK, generation=1, lease_id=1), "run", 0.0)
    return AgentRun(held, RunDirectory(str(tmp_path), "run"), 1.0)


async def test_calls_last_as_long_as_an_outage(
    peer: SchedulerPeer, children: Children, run: AgentRun
) -> None:
    peer.child_failures = [OUTAGE] * 100
    assert await children.create(run, [CHILD], spawned=True) == [f"{TASK}.a"]
    peer.child_failures = [OUTAGE] * 100
    assert [row[:2] for row in await children.outcomes(run, [f"{TASK}.a"])] == [[f"{TASK}.a", ""]]
    assert peer.child_calls == 202


async def test_a_call_that_was_shed_is_repeated(
    peer: SchedulerPeer, children: Children, run: AgentRun
) -> None:
    peer.child_failures = [Overloaded("taskdb", "its calls")]
    assert await children.create(run, [CHILD]) == [f"{TASK}.a"]


async def test_a_refusal_is_raised_at_once(peer: SchedulerPeer, children: Children, run: AgentRun) -> None:
    peer.child_failures = [FieldInvalid.of("children[0].key", "must not be empty")]
    with pytest.raises(ChildrenRefused) as refused:
        await children.create(run, [CHILD])
    assert (refused.value.reason, peer.child_calls) == ("FIELD_INVALID", 1)


@pytest.mark.parametrize("ended", [True, False])
async def test_the_call_of_a_run_that_stops_is_given_up(
    peer: SchedulerPeer, children: Children, run: AgentRun, ended: bool
) -> None:
    def failures() -> Iterator[StorageUnavailable]:
        yield from [OUTAGE] * 5
        run.ended = ended
        run.held.state = HELD_STATE_STOPPING if not ended else run.held.state
        yield from itertools.repeat(OUTAGE)

    peer.child_failures = failures()
    with pytest.raises(ChildrenRefused, match="is to stop during an outage"):
        await children.create(run, [CHILD])
    assert peer.child_calls == 6


@pytest.mark.parametrize("name", ["spawning", "spawning-sync"])
async def test_a_function_that_is_cancelled_in_an_outage_ends_as_cancelled(
    peer: SchedulerPeer, start_runner: Callable[..., Awaitable[RunnerProcess]], name: str
) -> None:
    await start_runner(*APP)
    peer.child_failures = itertools.repeat(OUTAGE)
    task = peer.assign(function(name))
    await peer.until(lambda: peer.child_calls >= 2)
    peer.send_verdict(task, LEASE_ACTION_CANCEL)
    assert (await peer.outcome(task)).WhichOneof("report") == "cancelled"
