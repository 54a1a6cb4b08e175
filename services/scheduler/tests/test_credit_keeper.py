"""Credit as taskdb sees it: what the scheduler lends, withdraws and does with what was leased."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from services.scheduler.tests.fake_taskdb import FakeTaskdb
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import runner_pb2
from tests.harness.link_runner import LinkRunner


@pytest.fixture
async def site(make_site: SiteMaker, taskdb: FakeTaskdb) -> Site:
    taskdb.credit = asyncio.Queue()
    made: Site = await make_site(eager_leases=True)
    return made


def lent(taskdb: FakeTaskdb, runner_id: str = "runner-1") -> int:
    """The places that a runner has lent, as far as they were sent."""
    count = 0
    for request in taskdb.requests("KeepCredit"):
        for credit in request.runners:
            if credit.runner_id == runner_id:
                count = 0 if credit.withdrawn else count + credit.places
    return count


async def until(taskdb: FakeTaskdb, holds: Callable[[], bool]) -> None:
    """Wait for messages until a condition holds."""
    while not holds():
        await taskdb.called("KeepCredit", len(taskdb.requests("KeepCredit")) + 1)


async def lend(site: Site, capacity: int = 4) -> LinkRunner:
    """A runner that has run a task and now lends places."""
    runner = await site.runner(capacity=capacity)
    site.taskdb.add_tasks()
    await runner.complete(await runner.next_assignment())
    await until(site.taskdb, lambda: lent(site.taskdb) > 0)
    return runner


def withdrawn(taskdb: FakeTaskdb, runner_id: str = "runner-1") -> bool:
    return any(
        credit.withdrawn and credit.runner_id == runner_id
        for request in taskdb.requests("KeepCredit")
        for credit in request.runners
    )


def settle(taskdb: FakeTaskdb, runner_id: str = "runner-1") -> None:
    assert taskdb.credit is not None
    taskdb.credit.put_nowait(leases.KeepCreditResponse(settled=[runner_id]))


def lease(site: Site, runner: LinkRunner, epoch: int | None = None) -> str:
    """Lease a new task on credit; its name."""
    session = site.scheduler.fleet.sessions[runner.runner_id]
    made = site.taskdb.lease_on_credit(
        runner.runner_id, epoch=session.epoch if epoch is None else epoch, heartbeat_id=session.heartbeat_id
    )
    return made.lease.task


async def test_an_idle_runner_lends_half_of_its_places(site: Site) -> None:
    await lend(site)
    first = next(credit for r in site.taskdb.requests("KeepCredit") for credit in r.runners)
    assert (first.places, list(first.class_ids), first.session_epoch) == (2, [1], 1)
    assert first.lease_duration.ToTimedelta().total_seconds() == site.scheduler.config.first_lease


async def test_a_task_that_was_leased_on_credit_reaches_its_runner(site: Site) -> None:
    runner = await lend(site)
    name = lease(site, runner)
    assignment = await runner.next_assignment()
    assert assignment.lease.task == name
    await runner.complete(assignment)
    await site.taskdb.called("ReportRuns", 2)
    assert site.taskdb.phase(name) == "SUCCEEDED"


async def test_lent_places_are_not_claimed_for(site: Site) -> None:
    runner = await lend(site)
    before = len(site.taskdb.requests("ClaimForRunners"))
    site.taskdb.add_tasks(10)
    request = await site.taskdb.called("ClaimForRunners", before + 1)
    assert [claim.max_tasks for claim in request.runners] == [2]
    await until(site.taskdb, lambda: withdrawn(site.taskdb))
    for _ in range(2):
        await runner.next_assignment()
    assert runner.waiting_assignments == 0
    settle(site.taskdb)
    for _ in range(2):
        await runner.next_assignment()


async def test_a_lease_for_a_place_that_is_gone_is_released(site: Site) -> None:
    runner = await lend(site, capacity=1)
    first, second = lease(site, runner), lease(site, runner)
    assert (await runner.next_assignment()).lease.task == first
    while site.taskdb.phase(second) != "PENDING":
        await site.taskdb.called("ReportRuns", len(site.taskdb.requests("ReportRuns")) + 1)
    assert runner.waiting_assignments == 0


async def test_a_lease_of_an_older_session_is_released(site: Site) -> None:
    runner = await lend(site)
    name = lease(site, runner, epoch=7)
    while site.taskdb.phase(name) != "PENDING":
        await site.taskdb.called("ReportRuns", len(site.taskdb.requests("ReportRuns")) + 1)


async def test_the_credit_of_a_runner_that_leaves_is_withdrawn(site: Site) -> None:
    runner = await lend(site)
    await runner.vanish()
    await until(site.taskdb, lambda: withdrawn(site.taskdb))


async def test_the_credit_of_a_runner_that_drains_is_withdrawn(site: Site) -> None:
    await lend(site)
    drained = runner_pb2.Runner(name="runners/runner-1")
    drained.drain.SetInParent()
    site.taskdb.change_runner(drained)
    await until(site.taskdb, lambda: withdrawn(site.taskdb))


async def test_each_heartbeat_renews_the_terms(site: Site) -> None:
    """The first lease of a task counts from the heartbeat that its assignment names."""
    await lend(site)
    seen: set[int] = set()

    def renewed() -> bool:
        seen.update(c.heartbeat_id for r in site.taskdb.requests("KeepCredit") for c in r.runners)
        return len(seen) >= 3

    await until(site.taskdb, renewed)


async def test_places_are_claimed_for_again_when_the_stream_ends(site: Site) -> None:
    runner = await lend(site, capacity=1)
    address = site.taskdb.port
    await site.taskdb.stop()
    site.taskdb.credit = None
    await site.taskdb.start(address)
    site.taskdb.add_tasks()
    assert await runner.next_assignment(30)


async def test_an_older_taskdb_gets_no_credit(make_site: SiteMaker, taskdb: FakeTaskdb) -> None:
    made: Site = await make_site(eager_leases=True)
    runner = await made.runner(capacity=1)
    for _ in range(3):
        made.taskdb.add_tasks()
        await runner.complete(await runner.next_assignment())
    assert taskdb.requests("KeepCredit") == []


async def test_it_is_off_by_default(make_site: SiteMaker, taskdb: FakeTaskdb) -> None:
    taskdb.credit = asyncio.Queue()
    made: Site = await make_site()
    runner = await made.runner(capacity=1)
    for _ in range(3):
        made.taskdb.add_tasks()
        await runner.complete(await runner.next_assignment())
    assert taskdb.requests("KeepCredit") == []
