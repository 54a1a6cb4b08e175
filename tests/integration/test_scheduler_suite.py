"""Scheduler and taskdb as real processes over a real PostgreSQL, with test runners on the link."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Created, Phase, command
from taskyard.v1 import lease_pb2, runner_pb2, runner_service_pb2, work_service_pb2
from taskyard.v1.runner_service_pb2_grpc import RunnerServiceStub
from taskyard.v1.work_service_pb2_grpc import WorkServiceStub
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


def unique(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def own() -> dict[str, str]:
    """A label that keeps the tasks and runners of one test among themselves."""
    return {"test": unique("own")}


def runner_for(plane: ControlPlane, own: dict[str, str], capacity: int = 4) -> LinkRunner:
    return plane.runner(unique("runner"), described=registration(capacity, labels=own))


@pytest.mark.seed("S2.107", "S2.109", "S2.115")
async def test_a_task_goes_from_the_client_to_a_runner_and_back(
    plane: ControlPlane, own: dict[str, str]
) -> None:
    async with plane.client() as client, runner_for(plane, own) as runner:
        await runner.connect()
        created = await client.create(command("true", runner_labels=own))
        assignment = await runner.next_assignment()
        assert assignment.lease.task.endswith(created.id)
        assert assignment.spec.execution.command.program == "true"
        await runner.complete(assignment)
        task = await client.wait(created, timeout=10)
        assert task.phase is Phase.SUCCEEDED
        assert runner.rejections == []


async def test_two_thousand_tasks_end_once_each(plane: ControlPlane, own: dict[str, str]) -> None:
    async with plane.client() as client, runner_for(plane, own, 500) as runner:
        await runner.connect()
        made = [
            item async for item in client.create_many(command("true", runner_labels=own) for _ in range(2000))
        ]
        names = [item.id for item in made if isinstance(item, Created)]
        assert len(names) == 2000
        seq = 0
        for _ in names:
            assignment = await runner.next_assignment()
            seq = (
                await runner.report_all(
                    [
                        lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted()),
                        lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded()),
                    ]
                )
            )[-1]
        await runner.acked(seq, timeout=30)
        assert runner.rejections == []
        for name in names[:: len(names) // 10]:
            assert (await client.get(name)).phase is Phase.SUCCEEDED


async def test_a_cancel_reaches_the_holder(plane: ControlPlane, own: dict[str, str]) -> None:
    async with plane.client() as client, runner_for(plane, own) as runner:
        await runner.connect()
        created = await client.create(command("sleep", "1000", runner_labels=own))
        assignment = await runner.next_assignment()
        await runner.started(assignment)
        await client.cancel(created)
        verdict = (await runner.message("command")).command.leases.verdicts[0]
        assert (verdict.lease, verdict.action) == (assignment.lease, lease_pb2.LEASE_ACTION_CANCEL)
        await runner.acked(await runner.report(assignment.lease, cancelled=lease_pb2.RunCancelled()))
        assert (await client.wait(created, timeout=10)).phase is Phase.CANCELLED


async def _shown(plane: ControlPlane, runner_id: str) -> runner_pb2.Runner:
    """The runner as ListRunners shows it to an administrator."""
    from taskyard.channel import open_channel

    async with open_channel(plane.taskdbs[0].address, key=plane.keys["admin"]) as channel:
        stub: Any = RunnerServiceStub(channel)
        request = runner_service_pb2.ListRunnersRequest(
            filter=f'id = "{runner_id}"', view=runner_service_pb2.RUNNER_VIEW_FULL
        )
        (runner,) = (await stub.ListRunners(request)).runners
        found: runner_pb2.Runner = runner
        return found


async def test_a_pull_worker_claims_and_reports(plane: ControlPlane, own: dict[str, str]) -> None:
    from taskyard.channel import open_channel

    address, key = plane.schedulers[0].address, plane.keys["runner"]
    async with plane.client() as client, open_channel(address, key=key) as channel:
        stub: Any = WorkServiceStub(channel)
        request = work_service_pb2.ClaimTasksRequest(
            worker_id=unique("worker"),
            request_id=unique("claim"),
            registration=registration(10, labels=own),
            max_tasks=5,
        )
        request.wait.seconds = 20
        claim = asyncio.ensure_future(stub.ClaimTasks(request))
        created = await client.create(command("true", runner_labels=own))
        (assignment,) = (await claim).assignments
        again = await stub.ClaimTasks(request)
        assert [a.lease for a in again.assignments] == [assignment.lease]
        shown = await _shown(plane, request.worker_id)
        assert (shown.state, list(shown.tasks)) == (runner_pb2.RUNNER_STATE_HEALTHY, [assignment.lease.task])
        assert shown.registration.labels == own
        reports = [
            lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted()),
            lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded()),
        ]
        report = work_service_pb2.ReportWorkRequest(worker_id=request.worker_id, reports=reports)
        results = (await stub.ReportWork(report)).results
        assert [result.error.code for result in results] == [0, 0]
        assert (await client.wait(created, timeout=10)).phase is Phase.SUCCEEDED


async def test_reconnecting_runners_keep_their_leases_and_their_spool(
    plane: ControlPlane, own: dict[str, str]
) -> None:
    async with plane.client() as client, runner_for(plane, own) as runner:
        await runner.connect()
        created = await client.create(command("true", runner_labels=own))
        assignment = await runner.next_assignment()
        await runner.acked(await runner.started(assignment))
        await runner.heartbeat_acked(await runner.heartbeat())
        await runner.vanish()
        welcome = await runner.connect()
        assert list(welcome.verdicts) == []
        await runner.acked(await runner.succeeded(assignment))
        assert runner.rejections == []
        assert (await client.wait(created, timeout=10)).phase is Phase.SUCCEEDED


async def test_goodbye_releases_unstarted_work_to_another_runner(
    plane: ControlPlane, own: dict[str, str]
) -> None:
    async with plane.client() as client, runner_for(plane, own) as first:
        await first.connect()
        created = await client.create(command("true", runner_labels=own))
        await first.next_assignment()
        await first.send_goodbye()
        assert await first.ended() is None
        async with runner_for(plane, own) as second:
            await second.connect()
            assignment = await second.next_assignment()
            assert assignment.lease.generation == 2
            await second.complete(assignment)
        assert (await client.wait(created, timeout=10)).phase is Phase.SUCCEEDED
