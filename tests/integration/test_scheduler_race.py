"""One runner id at two schedulers, raced with barriers; reports doubled and reordered (FAULTS 25)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc.aio
import psycopg
import pytest

from taskyard import Client, Phase, command
from taskyard.errors import RunnerIdInUse, SessionSuperseded, TaskyardError
from taskyard.status import from_rpc_error
from taskyard.v1 import lease_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner
from tests.harness.tcp_proxy import proxy_to

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

QUICK = (
    *("--heartbeat-interval", "500ms", "--lease-duration", "6s"),
    *("--first-lease", "2s", "--heartbeat-gather", "100ms", "--goodbye-timeout", "2s"),
)
REAPING = ("--reap-grace", "6500ms")


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, schedulers=0, taskdb_flags=REAPING) as running:
        yield running


@asynccontextmanager
async def held_rows(url: str, runner_id: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """The barrier: opening a session of this runner waits until the block ends."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT FROM runners WHERE runner_id = %s FOR UPDATE", (runner_id,))
        yield connection


async def waiting(url: str, count: int) -> None:
    """Return once `count` transactions of taskdb wait for a lock."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        async with asyncio.timeout(20):
            while True:
                row = await (
                    await connection.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND wait_event_type = 'Lock' AND state = 'active'"
                    )
                ).fetchone()
                if row is not None and row[0] >= count:
                    return
                await asyncio.sleep(0.02)


async def outcome(runner: LinkRunner, *, takeover: bool) -> link.Welcome | TaskyardError:
    try:
        return await runner.connect(takeover=takeover)
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    except TaskyardError as error:
        return error


async def live_sessions(url: str) -> list[tuple[int, str]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        rows = await connection.execute(
            "SELECT epoch, scheduler_id FROM sessions WHERE NOT closed AND expire_time > now()"
        )
        return [(row[0], row[1]) for row in await rows.fetchall()]


async def register(plane: ControlPlane, runner_id: str) -> None:
    async with plane.runner(runner_id) as runner:
        await runner.connect()
        await runner.send_goodbye()
        await runner.ended()


async def test_one_of_two_simultaneous_hellos_with_the_same_id_is_accepted(plane: ControlPlane) -> None:
    first, second = plane.add_scheduler("", *QUICK), plane.add_scheduler("", *QUICK)
    await register(plane, "runner-1")
    async with plane.runner("runner-1", first.address) as a, plane.runner("runner-1", second.address) as b:
        async with held_rows(plane.url, "runner-1"):
            racing = [asyncio.create_task(outcome(agent, takeover=False)) for agent in (a, b)]
            await waiting(plane.url, 2)
        results = await asyncio.gather(*racing)
        welcome = [found for found in results if isinstance(found, link.Welcome)]
        refused = [found for found in results if isinstance(found, RunnerIdInUse)]
        assert (len(welcome), len(refused)) == (1, 1), results
        assert [epoch for epoch, _ in await live_sessions(plane.url)] == [welcome[0].session_epoch]


async def test_the_later_of_two_simultaneous_takeovers_wins_and_work_is_done_once(
    plane: ControlPlane,
) -> None:
    first, second = plane.add_scheduler("", *QUICK), plane.add_scheduler("", *QUICK)
    await register(plane, "runner-1")
    async with (
        plane.client() as client,
        plane.runner("runner-1", first.address) as a,
        plane.runner("runner-1", second.address) as b,
    ):
        async with held_rows(plane.url, "runner-1"):
            racing = [asyncio.create_task(outcome(agent, takeover=True)) for agent in (a, b)]
            await waiting(plane.url, 2)
        results = await asyncio.gather(*racing)
        epochs = [found.session_epoch if isinstance(found, link.Welcome) else 0 for found in results]
        assert sorted(epochs) == [min(epochs), min(epochs) + 1] and min(epochs) > 0, results
        winner, loser = (a, b) if epochs[0] > epochs[1] else (b, a)
        assert isinstance(await loser.ended(), SessionSuperseded)
        task = await client.create(command("true"))
        await winner.complete(await winner.next_assignment())
        assert (await client.wait(task, timeout=20)).phase is Phase.SUCCEEDED
        assert loser.waiting_assignments == 0


async def test_a_claim_whose_runner_went_to_another_scheduler_before_dispatch_runs_there_once(
    plane: ControlPlane,
) -> None:
    first = plane.add_scheduler("", *QUICK, failpoints="dispatch.claimed=stop")
    second = plane.add_scheduler("", *QUICK)
    async with plane.client() as client, plane.runner("runner-1", first.address) as there:
        await there.connect()
        task = await client.create(command("true", slot="only"))
        # The claim is committed, and the first scheduler, which has the response, is suspended.
        await asyncio.to_thread(first.wait_suspended)
        async with plane.runner("runner-1", second.address) as here:
            here.instance_id = there.instance_id
            await here.connect()
            first.resume()
            assert isinstance(await there.ended(), SessionSuperseded)
            assignment = await here.next_assignment(timeout=30)
            assert assignment.lease.generation >= 2, "the claim of the lost session is over"
            await here.complete(assignment)
        assert (await client.wait(task, timeout=20)).phase is Phase.SUCCEEDED
        runs = [run async for run in client.runs(task)]
        assert [run.attempt for run in runs if run.start_time is not None] == [1], "it was started once"


async def reconnect(runner: LinkRunner) -> None:
    """Connect, though the channel may have to notice first that its connection was reset."""
    for _ in range(50):
        if isinstance(await outcome(runner, takeover=False), link.Welcome):
            return
        await asyncio.sleep(0.2)
    raise AssertionError("the scheduler does not answer")


async def only_one_outcome(client: Client, task_id: str) -> None:
    """I3: at most one terminal transition, for any number of reports."""
    runs = [run async for run in client.runs(task_id)]
    assert sum(run.state.name == "SUCCEEDED" for run in runs) == 1, runs


async def test_fault_25_repeated_and_late_reports_change_nothing(plane: ControlPlane) -> None:
    scheduler = plane.add_scheduler("", *QUICK)
    async with plane.client() as client, proxy_to(scheduler.address) as proxy:
        async with plane.runner("runner-1", proxy.address) as runner:
            await runner.connect()
            tasks = [await client.create(command("true")) for _ in range(4)]
            taken = [await runner.next_assignment() for _ in tasks]
            for assignment in taken:
                await runner.acked(await runner.started(assignment))
            await runner.heartbeat_acked(await runner.heartbeat())
            # The outcomes reach the scheduler, their acknowledgements do not come back.
            proxy.blackhole(forth=False)
            outcomes = [
                lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded(exit_code=0))
                for assignment in taken
            ]
            await runner.report_all(outcomes)
            for task in tasks:
                assert (await client.wait(task, timeout=20)).phase is Phase.SUCCEEDED
            assert len(runner.spool) == 4, "nothing was acknowledged"
            proxy.heal()
            proxy.reset()
            # The whole spool comes again on a new stream: four duplicates.
            await reconnect(runner)
            await runner.spool_emptied()
            assert runner.rejections == []
            # Out of order and once more: starts behind their outcomes, another outcome behind the first.
            late = [
                lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted())
                for assignment in reversed(taken)
            ]
            failed = lease_pb2.RunFailed()
            failed.error.code = "LATE"
            late += [lease_pb2.RunReport(lease=assignment.lease, failed=failed) for assignment in taken]
            await runner.acked((await runner.report_all(late))[-1])
        for task in tasks:
            found = await client.get(task.id)
            assert found.phase is Phase.SUCCEEDED
            await only_one_outcome(client, task.id)
        refused = [rejection.lease.task for rejection in runner.rejections]
        assert len(refused) >= 4, "an outcome that contradicts the stored one is refused for good"
