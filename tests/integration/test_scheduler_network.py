"""What a broken network between runner, scheduler and taskdb may and may not do (FAULTS 20, 21, 23, 24)."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client, Phase, command
from taskyard.channel import open_channel
from taskyard.errors import Code
from taskyard.status import from_rpc_error
from taskyard.v1 import work_service_pb2
from taskyard.v1.work_service_pb2_grpc import WorkServiceStub
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.honest_agent import HonestAgent, working
from tests.harness.link_runner import registration
from tests.harness.tcp_proxy import proxy_to

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

QUICK = (
    *("--heartbeat-interval", "500ms", "--lease-duration", "6s"),
    *("--first-lease", "2s", "--heartbeat-gather", "100ms", "--goodbye-timeout", "2s"),
)

# Longer than a lease; and how long a task may wait once its runner has a session again.
BLACKHOLE_SECONDS = 8.0
PINNED_SECONDS = 5.0


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    flags = ("--reap-grace", "6500ms")
    with control_plane(
        postgres_server, migrated_template, taskdb_flags=flags, scheduler_flags=QUICK
    ) as running:
        yield running


async def runs_of(client: Client, task: Any) -> int:
    return len([run async for run in client.runs(task)])


@pytest.mark.parametrize("direction", ["forth", "back", "both"])
async def test_fault_20_a_blackhole_shorter_than_the_lease_costs_no_run(
    plane: ControlPlane, direction: str
) -> None:
    async with plane.client() as client, proxy_to(plane.schedulers[0].address) as proxy:
        agent = HonestAgent(plane.runner("runner-1", proxy.address))
        async with working(agent):
            held = await client.create(command("true", "hold"))
            await agent.holding.wait()
            # By now the lease follows the session.
            await agent.runner.heartbeat_acked(await agent.runner.heartbeat())
            proxy.blackhole(forth=direction != "back", back=direction != "forth")
            await asyncio.sleep(2.0)
            proxy.heal()
            proxy.reset()
            agent.release.set()
            assert (await client.wait(held, timeout=20)).phase is Phase.SUCCEEDED
            assert await runs_of(client, held) == 1
            assert agent.connects >= 2, "the fault has reached the runner"
            after = await client.create(command("true"))
            assert (await client.wait(after, timeout=20)).phase is Phase.SUCCEEDED


async def test_fault_20_after_a_long_blackhole_another_runner_has_the_task_and_the_late_report_is_rejected(
    plane: ControlPlane,
) -> None:
    async with plane.client() as client, proxy_to(plane.schedulers[0].address) as proxy:
        cut_off = HonestAgent(plane.runner("runner-1", proxy.address))
        async with working(cut_off):
            task = await client.create(command("true", "hold", on_runner_lost="wait"))
            await cut_off.holding.wait()
            proxy.blackhole()
            other = HonestAgent(plane.runner("runner-2"))
            other.release.set()
            async with working(other):
                assert (await client.wait(task, timeout=40)).phase is Phase.SUCCEEDED
            cut_off.release.set()
            proxy.heal()
            proxy.reset()
            await cut_off.runner.spool_emptied(timeout=20)
            assert cut_off.runner.rejections, "the report of the lost run is refused for good"
            runs = [run async for run in client.runs(task)]
            assert [run.generation for run in runs] in ([1, 2], [2, 1])


async def test_fault_20_a_pinned_task_starts_soon_after_its_runner_is_back(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with plane.client() as client, proxy_to(plane.schedulers[0].address) as proxy:
        runner = RunnerProcess(tmp_path / "pinned", proxy.address, id="pinned", key=plane.keys["runner"])
        try:
            await (await runner.start()).connected()
            proxy.blackhole()
            # Its claim is sent into the void.
            task = await client.create(command("true", runner_ids=("pinned",)))
            await asyncio.sleep(BLACKHOLE_SECONDS)
            sessions = runner.sessions()
            proxy.heal()
            healed = time.monotonic()
            await runner.connected(sessions + 1)
            back = time.monotonic()
            assert (await client.wait(task, timeout=60)).phase is Phase.SUCCEEDED
            assert time.monotonic() - back < PINNED_SECONDS, f"back after {back - healed:.1f} s"
        finally:
            await runner.kill()
            runner.clean()


async def test_fault_21_without_taskdb_nothing_is_claimed_and_pull_workers_get_an_error_in_time(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template, schedulers=0) as plane:
        async with proxy_to(plane.taskdbs[0].address) as proxy, plane.client() as client:
            scheduler = await asyncio.to_thread(plane.add_scheduler, proxy.address)
            async with plane.runner("runner-1", scheduler.address) as runner:
                await runner.connect()
                await runner.complete(await created(client, runner))
                proxy.blackhole()
                waiting = await client.create(command("true"))
                async with open_channel(scheduler.address, key=plane.keys["runner"]) as channel:
                    stub: Any = WorkServiceStub(channel)
                    request = work_service_pb2.ClaimTasksRequest(
                        worker_id="worker-1", request_id=uuid.uuid4().hex, registration=registration(1)
                    )
                    request.wait.seconds = 30
                    with pytest.raises(grpc.aio.AioRpcError) as refused:
                        await stub.ClaimTasks(request, timeout=20)
                    assert from_rpc_error(refused.value).code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
                assert runner.waiting_assignments == 0
                assert runner.connected
                proxy.heal()
                proxy.reset()
                await runner.complete(await runner.next_assignment(timeout=30))
                assert (await client.wait(waiting, timeout=10)).phase is Phase.SUCCEEDED


async def created(client: Client, runner: Any) -> Any:
    await client.create(command("true"))
    return await runner.next_assignment()


async def test_fault_23_a_half_open_stream_loses_its_capacity_and_strands_no_task(
    plane: ControlPlane,
) -> None:
    async with plane.client() as client, proxy_to(plane.schedulers[0].address) as proxy:
        gone, there = (
            HonestAgent(plane.runner("runner-1", proxy.address)),
            HonestAgent(plane.runner("runner-2")),
        )
        async with working(gone, there):
            warm = [await client.create(command("true")) for _ in range(10)]
            for task in warm:
                await client.wait(task, timeout=20)
            proxy.blackhole()
            tasks = [await client.create(command("true")) for _ in range(40)]
            for task in tasks:
                assert (await client.wait(task, timeout=30)).phase is Phase.SUCCEEDED


async def test_fault_24_a_draining_scheduler_hands_its_runners_over_without_losing_work(
    plane: ControlPlane,
) -> None:
    first, second = plane.schedulers[0], plane.add_scheduler("", *QUICK)
    async with plane.client() as client, proxy_to(first.address) as proxy:
        agent = HonestAgent(plane.runner("runner-1", proxy.address))
        async with working(agent):
            held = await client.create(command("true", "hold"))
            await agent.holding.wait()
            proxy.target = second.address
            assert await asyncio.to_thread(first.terminate) == 0
            await agent.connected(2)
            agent.release.set()
            assert (await client.wait(held, timeout=20)).phase is Phase.SUCCEEDED
            assert await runs_of(client, held) == 1
            assert agent.verdicts == []
