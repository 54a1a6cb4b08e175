"""The loop between lanes and runners: spreading, order, replicas, outages; with real servers around it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from taskyard import errors, tracing
from taskyard.v1 import api_key_pb2, common_pb2, lease_service_pb2, runner_pb2, task_pb2
from taskyard_scheduler import queue_watch
from tests.harness.link_runner import LinkRunner, registration


async def test_few_tasks_are_spread_over_the_least_loaded_runners(site: Site) -> None:
    runners = [await site.runner(f"runner-{n}", capacity=10) for n in range(4)]
    site.taskdb.add_tasks(4)
    for runner in runners:
        await runner.next_assignment()
    assert [runner.waiting_assignments for runner in runners] == [0, 0, 0, 0]


async def test_one_claim_serves_all_runners(site: Site) -> None:
    for n in range(4):
        await site.runner(f"runner-{n}", capacity=2)
    site.taskdb.add_tasks(8)
    request = await site.taskdb.called("ClaimForRunners")
    assert sorted(pop.runner_id for pop in request.runners) == [f"runner-{n}" for n in range(4)]
    assert [pop.max_tasks for pop in request.runners] == [2, 2, 2, 2]


async def test_idle_scheduler_calls_taskdb_only_for_renewals(site: Site) -> None:
    runners = [await site.runner(f"runner-{n}") for n in range(3)]
    site.taskdb.add_tasks(3)
    for runner in runners:
        await runner.complete(await runner.next_assignment())
    await site.taskdb.called("RenewSessions", len(site.taskdb.requests("RenewSessions")) + 3)
    before = len(site.taskdb.calls)
    await site.taskdb.called("RenewSessions", len(site.taskdb.requests("RenewSessions")) + 6)
    assert {name for name, _ in site.taskdb.calls[before:]} == {"RenewSessions"}


async def test_a_lane_that_no_runner_matches_causes_no_claim(site: Site) -> None:
    runner = await site.runner(described=registration(4, task_types=["render"]))
    site.taskdb.add_class(class_id=7, task_type="encode")
    site.taskdb.add_tasks(5, class_id=7)
    await runner.heartbeat_acked(await runner.heartbeat())
    assert site.taskdb.requests("ClaimForRunners") == []


async def test_tasks_pinned_to_a_runner_wait_for_it(site: Site) -> None:
    other = await site.runner("runner-1")
    site.taskdb.add_tasks(pinned="runner-2")
    await other.heartbeat_acked(await other.heartbeat())
    assert other.waiting_assignments == 0
    meant = await site.runner("runner-2")
    assert await meant.next_assignment()


async def test_a_runner_serves_the_tenants_of_its_scope_only(site: Site) -> None:
    site.taskdb.runners["runner-1"] = runner_pb2.Runner(name="runners/runner-1", tenants=["acme"])
    runner = await site.runner(capacity=10)
    site.taskdb.add_tasks(2, tenant="other")
    site.taskdb.add_tasks(1, tenant="acme")
    assert (await runner.next_assignment()).lease.task.startswith("tenants/acme/")
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0


async def test_labels_an_administrator_sets_count_at_once(site: Site) -> None:
    runner = await site.runner()
    selector = common_pb2.RunnerSelector(match_labels={"zone": "eu"})
    required = task_pb2.RunnerConstraint(selector=selector)
    site.taskdb.add_class(class_id=3, placement=task_pb2.Placement(required=required))
    site.taskdb.add_tasks(class_id=3)
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0
    site.taskdb.change_runner(runner_pb2.Runner(name="runners/runner-1", admin_labels={"zone": "eu"}))
    assert await runner.next_assignment()


async def test_a_label_that_the_key_does_not_give_is_not_the_runners(site: Site) -> None:
    scoped = runner_pb2.Runner(name="runners/runner-1", scope_labels={"zone": "public"})
    site.taskdb.runners["runner-1"] = scoped
    runner = await site.agent(described=registration(10, labels={"pci": "yes", "zone": "private"}))
    await runner.connect(runner.hello())
    for class_id, labels in ((5, {"pci": "yes"}), (6, {"zone": "private"}), (7, {"zone": "public"})):
        required = task_pb2.RunnerConstraint(selector=common_pb2.RunnerSelector(match_labels=labels))
        site.taskdb.add_class(class_id=class_id, placement=task_pb2.Placement(required=required))
        site.taskdb.add_tasks(class_id=class_id)
    assert await runner.next_assignment()
    await runner.heartbeat_acked(await runner.heartbeat())
    assert runner.waiting_assignments == 0


async def test_a_claim_names_budget_and_cost_where_resources_are_accounted(site: Site) -> None:
    total = common_pb2.Resources(cpu_millis=2000, memory_mb=1000)
    runner = await site.agent(described=registration(10, resources=total))
    hello = runner.hello()
    hello.free.resources.CopyFrom(total)
    await runner.connect(hello)
    cost = common_pb2.Resources(cpu_millis=600, memory_mb=100)
    site.taskdb.add_class(class_id=4, resources=cost)
    site.taskdb.add_tasks(9, class_id=4, resources=cost)
    request = await site.taskdb.called("ClaimForRunners")
    (pop,) = request.runners
    assert pop.max_tasks == 3, "three tasks fit into two cores"
    assert pop.budget == total
    assert pop.tenants[0].lanes[0].cost == cost


@pytest.mark.seed("S0.87", "S2.135")
async def test_higher_priority_goes_first_and_is_reflected_in_offsets(site: Site) -> None:
    site.taskdb.shares["default"] = lease_service_pb2.TenantShare(
        tenant="default", weight=10, claimable_count=-1
    )
    site.taskdb.add_tasks(3, priority=1, ready_time=1000.0)
    site.taskdb.add_tasks(3, priority=50, ready_time=1060.0)
    runner = await site.runner(capacity=2)
    taken = [await runner.next_assignment() for _ in range(2)]
    assert [assignment.spec.priority for assignment in taken] == [50, 50]
    lanes = site.taskdb.requests("ClaimForRunners")[0].runners[0].tenants[0].lanes
    assert {lane.lane.priority: lane.offset.seconds for lane in lanes} == {50: 6000, 1: 120}


async def test_a_suspended_tenant_and_a_paused_type_are_not_claimed(site: Site) -> None:
    site.taskdb.shares["acme"] = lease_service_pb2.TenantShare(
        tenant="acme", weight=1, claimable_count=-1, paused=True
    )
    site.taskdb.shares["other"] = lease_service_pb2.TenantShare(
        tenant="other", weight=1, claimable_count=-1, paused_task_types=["render"]
    )
    site.taskdb.add_tasks(tenant="acme")
    site.taskdb.add_class("other", 5, task_type="render")
    site.taskdb.add_tasks(tenant="other", class_id=5)
    runner = await site.runner()
    await runner.heartbeat_acked(await runner.heartbeat())
    assert site.taskdb.requests("ClaimForRunners") == []
    resumed = lease_service_pb2.TenantShare(tenant="acme", weight=1, claimable_count=-1)
    site.taskdb.publish(lease_service_pb2.WatchQueueResponse(tenants=[resumed]))
    assert await runner.next_assignment()


async def test_work_published_while_a_claim_finds_its_lane_empty_is_kept(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.add_tasks(publish=False)
    lane, (task,) = next(iter(site.taskdb.queue.items()))
    update = lease_service_pb2.WatchQueueResponse(lanes=[site.taskdb._lane(lane)])
    site.taskdb.queue[lane].clear()
    with site.taskdb.held_back("ClaimForRunners"):
        site.taskdb.publish(update)
        await site.taskdb.called("ClaimForRunners")
        # Queued after the claim read the lane, published before the claim returns.
        site.taskdb.publish(update)
        await runner.heartbeat_acked(await runner.heartbeat())
    site.taskdb.queue[lane].append(task)
    assert await runner.next_assignment(timeout=0.8)


async def test_two_schedulers_hand_out_each_task_once_and_strand_none(make_site: SiteMaker) -> None:
    sites = [await make_site(), await make_site()]
    runners = [await site.runner(f"runner-{i}-{n}") for i, site in enumerate(sites) for n in range(3)]
    names = sites[0].taskdb.add_tasks(300)
    done: list[str] = []

    async def work(runner: LinkRunner) -> None:
        while True:
            assignment = await runner.next_assignment()
            done.append(assignment.lease.task)
            await runner.complete(assignment)

    workers = [asyncio.create_task(work(runner)) for runner in runners]
    async with asyncio.timeout(20):
        while len(done) < 300 or any(sites[0].taskdb.phase(n) != "SUCCEEDED" for n in names):
            await sites[0].taskdb.called("ReportRuns", len(sites[0].taskdb.requests("ReportRuns")) + 1)
    for worker in workers:
        worker.cancel()
    assert sorted(done) == sorted(names)
    assert {task.generation for task in sites[0].taskdb.tasks.values()} == {1}


async def test_without_taskdb_nothing_is_granted_and_work_continues_afterwards(site: Site) -> None:
    runner = await site.runner()
    port = site.taskdb.port
    await site.taskdb.stop()
    await runner.message("flow", lambda m: m.flow.hold_bulk)
    site.taskdb.add_tasks()
    beat = await runner.heartbeat()
    await site.taskdb.start(port)
    assert await runner.next_assignment()
    await runner.heartbeat_acked(beat)


async def test_a_hello_without_taskdb_is_answered_unavailable(site: Site) -> None:
    await site.runner("warm-up")
    site.taskdb.failures["OpenSession"] = [errors.StorageUnavailable()] * 4
    runner = await site.agent()
    try:
        await runner.connect()
    except errors.StorageUnavailable as error:
        assert error.retryable
    else:
        raise AssertionError("welcome without a session")


async def test_claim_whose_response_was_lost_is_repeated_under_its_own_id(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.lose_responses = 1
    site.taskdb.add_tasks()
    assignment = await runner.next_assignment()
    assert assignment.lease.generation == 1, "the repeat got the lease of the first"
    # A repeat returns leases and says nothing of the lanes: one more claim finds that they are empty.
    await site.taskdb.called("ClaimForRunners", 3)
    await runner.heartbeat_acked(await runner.heartbeat())
    ids = [request.request_id for request in site.taskdb.requests("ClaimForRunners")]
    assert len(ids) == 3 and ids[0] == ids[1] != ids[2]


async def test_the_submissions_trace_is_passed_on(site: Site) -> None:
    assert not tracing.enabled()
    runner = await site.runner()
    site.taskdb.add_tasks(publish=False)
    task = next(iter(site.taskdb.tasks.values()))
    task.traceparent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    site.taskdb.publish(lease_service_pb2.WatchQueueResponse(lanes=[site.taskdb._lane(task.lane)]))
    assert (await runner.next_assignment()).traceparent == task.traceparent


async def test_runner_key_verification_is_cached(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER)
    for n in range(5):
        agent = await site.agent(f"runner-{n}", key=key)
        await agent.connect()
    assert [request.key for request in site.taskdb.requests("VerifyApiKey")].count(key) == 1


async def test_tasks_of_a_claim_whose_response_was_lost_for_too_long_are_released_at_once(site: Site) -> None:
    runner = await site.runner()
    site.taskdb.lose_responses = 1000
    site.taskdb.add_tasks()
    began = time.monotonic()
    # The first lease of the quick settings is 2 s: after that the runner cannot start the task.
    while time.monotonic() - began < 2.5:
        await site.taskdb.called("ClaimForRunners", len(site.taskdb.requests("ClaimForRunners")) + 1)
    site.taskdb.lose_responses = 0
    request = await site.taskdb.called("ReportRuns")
    assert [item.report.WhichOneof("report") for item in request.reports] == ["released"]
    assert (await runner.next_assignment()).lease.generation == 2


async def test_queue_watch_reconnects_every_second_during_a_long_outage(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runners withhold their logs until the watch is open again."""
    delays: list[float] = []
    done = asyncio.Event()

    async def record(delay: float) -> None:
        delays.append(delay)
        if len(delays) == 20:
            done.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(queue_watch, "asyncio", SimpleNamespace(sleep=record))
    await site.runner()
    await site.taskdb.stop()
    async with asyncio.timeout(20):
        await done.wait()
    assert max(delays) <= 1.0
