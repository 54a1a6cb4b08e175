"""Two schedulers and two taskdbs over one PostgreSQL: killing one costs no task and no healthy lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, Created, NewTask, Phase, command
from taskyard.channel import client_channel_options, open_channel
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.honest_agent import HonestAgent, working
from tests.harness.link_runner import MAX_RECEIVE_BYTES, LinkRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

RUNNERS = 20
QUICK = (
    *("--heartbeat-interval", "1s", "--lease-duration", "8s"),
    *("--first-lease", "4s", "--heartbeat-gather", "200ms"),
)
# As short as it may be with these: a lease that a healthy runner loses shows within the test.
REAPING = ("--reap-grace", "9s")


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(
        postgres_server, migrated_template, taskdbs=2, schedulers=0, taskdb_flags=REAPING
    ) as running:
        addresses = [service.address for service in running.taskdbs]
        running.add_scheduler(",".join(addresses), *QUICK)
        running.add_scheduler(",".join(reversed(addresses)), *QUICK)
        yield running


@asynccontextmanager
async def agents_of(plane: ControlPlane) -> AsyncIterator[list[HonestAgent]]:
    """Agents with the addresses of both schedulers, which use one that answers."""
    async with AsyncExitStack() as stack:
        agents = []
        for n in range(RUNNERS):
            order = plane.schedulers if n % 2 else list(reversed(plane.schedulers))
            target = "ipv4:" + ",".join(service.address for service in order)
            options = (*client_channel_options(MAX_RECEIVE_BYTES), ("grpc.use_local_subchannel_pool", 1))
            channel = open_channel(target, key=plane.keys["runner"], allow_plaintext=True, options=options)
            await stack.enter_async_context(channel)
            agents.append(HonestAgent(LinkRunner(target, "", f"runner-{n}", channel=channel)))
        await stack.enter_async_context(working(*agents))
        yield agents


async def submit(client: Client, tasks: Iterable[NewTask]) -> list[str]:
    made = [item async for item in client.create_many(tasks)]
    return [item.id for item in made if isinstance(item, Created)]


def short_tasks() -> list[NewTask]:
    return [command("true") for _ in range(150)]


async def all_succeeded(client: Client, names: list[str]) -> None:
    for name in names:
        task = await client.wait(name, timeout=60)
        assert task.phase is Phase.SUCCEEDED, task


@pytest.mark.parametrize("victim", ["scheduler", "taskdb"])
async def test_killing_a_replica_costs_no_task_and_no_lease_of_a_healthy_runner(
    plane: ControlPlane, victim: str
) -> None:
    async with agents_of(plane) as agents, plane.client() as client:
        held = await submit(
            client, [command("true", "hold", runner_ids=(f"runner-{n}",)) for n in range(RUNNERS)]
        )
        async with asyncio.timeout(30):
            await asyncio.gather(*(agent.holding.wait() for agent in agents))
        services = plane.schedulers if victim == "scheduler" else plane.taskdbs
        names: list[str] = []
        for service in services:
            names += await submit(client, short_tasks())
            await asyncio.to_thread(service.kill)
            async with Client(survivor(plane), key=plane.keys["tenant"], tenant="default") as other:
                names += await submit(other, short_tasks())
                await all_succeeded(other, names)
            await asyncio.to_thread(service.start)
        for agent in agents:
            agent.release.set()
        await all_succeeded(client, names + held)
        for name in held:
            runs = [run async for run in client.runs(name)]
            assert len(runs) == 1, f"the lease of a healthy runner was lost\n{plane.logs()}"
        assert [agent.verdicts for agent in agents] == [[] for _ in agents]
        if victim == "scheduler":
            assert min(agent.connects for agent in agents) >= 2, "the fault has reached every runner"


def survivor(plane: ControlPlane) -> str:
    """A taskdb that runs."""
    return next(s.address for s in plane.taskdbs if s.process is not None and s.process.poll() is None)


async def test_a_scheduler_killed_between_claim_and_dispatch_strands_nothing(
    postgres_server: PostgresServer, migrated_template: str
) -> None:
    with control_plane(postgres_server, migrated_template, schedulers=0, taskdb_flags=REAPING) as plane:
        doomed = plane.add_scheduler("", "--no-eager-leases", *QUICK, failpoints="dispatch.claimed=kill@1")
        async with plane.client() as client, plane.runner("runner-1", doomed.address) as runner:
            await runner.connect()
            created = await client.create(command("true"))
            await asyncio.to_thread(doomed.wait_killed)
            second = plane.add_scheduler("", *QUICK)
            async with plane.runner("runner-2", second.address) as other:
                await other.connect()
                assignment = await other.next_assignment(timeout=30)
                assert assignment.lease.generation == 2
                assert assignment.attempt == 1, "no attempt is charged for a run that never started"
                await other.complete(assignment)
            assert (await client.wait(created, timeout=10)).phase is Phase.SUCCEEDED


async def test_two_schedulers_race_for_one_runner_id_and_one_session_remains(plane: ControlPlane) -> None:
    here, there = (service.address for service in plane.schedulers)
    async with plane.runner("contested", here) as one, plane.runner("contested", there) as two:
        two.instance_id = one.instance_id
        for _ in range(5):
            await asyncio.gather(one.connect(), two.connect(), return_exceptions=True)
            epochs = {r.welcome.session_epoch: r for r in (one, two) if r.welcome is not None}
            winner, loser = epochs[max(epochs)], epochs[min(epochs)]
            assert winner is not loser
            await loser.ended()
            assert winner.connected
            beat = await winner.heartbeat()
            await winner.heartbeat_acked(beat)
