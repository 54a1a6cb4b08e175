"""WorkService: foreign workers claim, renew, report, log and checkpoint without a stream."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio
import pytest

from services.scheduler.tests.conftest import Site, SiteMaker
from taskyard import errors
from taskyard.status import from_rpc_error, from_status
from taskyard.v1 import (
    api_key_pb2,
    checkpoint_pb2,
    common_pb2,
    lease_pb2,
    log_pb2,
    runner_pb2,
    task_pb2,
    work_service_pb2,
)
from taskyard.v1.work_service_pb2_grpc import WorkServiceStub
from taskyard_scheduler.link_config import duration
from tests.harness.link_runner import registration


async def stub_of(site: Site, key: str = "") -> Any:
    return WorkServiceStub(await site.channel(key))


def claim_request(worker_id: str = "worker-1", **fields: Any) -> work_service_pb2.ClaimTasksRequest:
    fields.setdefault("request_id", uuid.uuid4().hex)
    fields.setdefault("registration", registration(1000))
    # The update about a task may not have reached the scheduler yet.
    fields.setdefault("wait", timedelta(seconds=5))
    return work_service_pb2.ClaimTasksRequest(worker_id=worker_id, **fields)


async def failure(call: Any) -> errors.TaskyardError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value)


async def until(owner: object, method: str, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, checked after each call of a method."""
    called = asyncio.Event()
    original = getattr(owner, method)

    def signalling(*args: Any) -> None:
        original(*args)
        called.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, signalling)
        async with asyncio.timeout(5):
            while not holds():
                await called.wait()
                called.clear()


async def ready(site: Site) -> None:
    """Wait until the scheduler has its first view of the queue."""
    dispatcher = site.scheduler.dispatcher
    await until(dispatcher, "wake", lambda: dispatcher.available)


async def test_a_worker_claims_reports_and_is_done(site: Site) -> None:
    stub = await stub_of(site)
    (name,) = site.taskdb.add_tasks()
    await ready(site)
    response = await stub.ClaimTasks(claim_request())
    (assignment,) = response.assignments
    assert assignment.lease.task == name
    reports = [
        lease_pb2.RunReport(lease=assignment.lease, started=lease_pb2.RunStarted()),
        lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded(exit_code=0)),
    ]
    request = work_service_pb2.ReportWorkRequest(worker_id="worker-1", reports=reports)
    results = (await stub.ReportWork(request)).results
    assert [r.phase for r in results] == [task_pb2.TASK_PHASE_RUNNING, task_pb2.TASK_PHASE_SUCCEEDED]
    again = (await stub.ReportWork(request)).results
    assert [r.duplicate for r in again] == [True, True]


async def test_claim_returns_at_most_max_tasks_with_the_requested_lease(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks(10)
    await ready(site)
    request = claim_request(max_tasks=3, lease_duration=timedelta(seconds=50))
    assignments = (await stub.ClaimTasks(request)).assignments
    assert len(assignments) == 3
    assert {a.lease_ttl.seconds for a in assignments} == {50}
    pop = site.taskdb.requests("ClaimForRunners")[-1].runners[0]
    assert (pop.runner_id, pop.session_epoch) == ("worker-1", 0)


async def test_claim_without_work_returns_empty_at_once_or_after_its_wait(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    assert list((await stub.ClaimTasks(claim_request(wait=timedelta(0)))).assignments) == []
    waited = await stub.ClaimTasks(claim_request(wait=timedelta(seconds=0.3)))
    assert list(waited.assignments) == []


async def test_a_long_poll_is_answered_when_work_arrives(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    waiting = asyncio.ensure_future(stub.ClaimTasks(claim_request(wait=timedelta(seconds=20))))
    await site.taskdb.called("ClaimForRunners")
    (name,) = site.taskdb.add_tasks()
    async with asyncio.timeout(3):
        response = await waiting
    assert [a.lease.task for a in response.assignments] == [name]


async def test_many_waiting_workers_share_new_work(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    claims = [
        asyncio.ensure_future(
            stub.ClaimTasks(claim_request(f"worker-{n}", max_tasks=5, wait=timedelta(seconds=20)))
        )
        for n in range(5)
    ]
    await site.taskdb.called("ClaimForRunners", 5)
    names = site.taskdb.add_tasks(5)
    async with asyncio.timeout(5):
        responses = await asyncio.gather(*claims)
    assert [len(r.assignments) for r in responses] == [1, 1, 1, 1, 1]
    assert sorted(r.assignments[0].lease.task for r in responses) == names


async def test_a_claim_does_not_wait_beyond_its_deadline(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    response = await stub.ClaimTasks(claim_request(wait=timedelta(seconds=30)), timeout=1.5)
    assert list(response.assignments) == []


async def test_a_repeated_claim_gets_the_same_leases(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks(4)
    await ready(site)
    request = claim_request(max_tasks=2)
    first, second = await stub.ClaimTasks(request), await stub.ClaimTasks(request)
    assert [a.lease for a in first.assignments] == [a.lease for a in second.assignments]
    other = await stub.ClaimTasks(claim_request(max_tasks=2))
    assert {a.lease.task for a in other.assignments}.isdisjoint(a.lease.task for a in first.assignments)


async def test_a_claim_lost_at_one_scheduler_is_found_at_another(make_site: SiteMaker) -> None:
    here, there = await make_site(), await make_site()
    here.taskdb.add_tasks(2)
    await ready(here)
    await ready(there)
    request = claim_request(max_tasks=2)
    first = await (await stub_of(here)).ClaimTasks(request)
    second = await (await stub_of(there, here.key)).ClaimTasks(request)
    assert len(first.assignments) == 2
    assert [a.lease for a in first.assignments] == [a.lease for a in second.assignments]


async def test_a_cancelled_long_poll_strands_nothing(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    call = stub.ClaimTasks(claim_request(wait=timedelta(seconds=20)))
    await site.taskdb.called("ClaimForRunners")
    call.cancel()
    fleet = site.scheduler.fleet
    await until(fleet, "remove_claimant", lambda: not fleet.claims())
    (name,) = site.taskdb.add_tasks()
    assert site.taskdb.phase(name) == "PENDING"
    assert len((await stub.ClaimTasks(claim_request())).assignments) == 1


async def test_workers_and_runners_on_the_link_never_get_the_same_task(site: Site) -> None:
    stub, runner = await stub_of(site), await site.runner(capacity=50)
    names = site.taskdb.add_tasks(100)
    taken = [a.lease.task for a in (await stub.ClaimTasks(claim_request(max_tasks=50))).assignments]
    while len(taken) < 100:
        if runner.waiting_assignments:
            taken.append((await runner.next_assignment()).lease.task)
        else:
            more = await stub.ClaimTasks(claim_request(max_tasks=50, wait=timedelta(seconds=0.2)))
            taken += [a.lease.task for a in more.assignments]
    assert sorted(taken) == sorted(names)


async def test_a_worker_is_registered_once_a_minute_and_not_by_each_call(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks(5)
    await ready(site)
    for _ in range(3):
        (one,) = (await stub.ClaimTasks(claim_request())).assignments
        request = work_service_pb2.RenewWorkRequest(worker_id="worker-1", leases=[one.lease])
        await stub.RenewWork(request)
    (registered,) = site.taskdb.requests("RegisterWorker")
    assert (registered.worker_id, registered.registration.capacity) == ("worker-1", 1000)
    request.lease_duration.seconds = 3600
    await stub.RenewWork(request)
    longer = site.taskdb.requests("RegisterWorker")[1:]
    assert [(r.HasField("registration"), r.duration.seconds > 3600) for r in longer] == [(False, True)]


async def test_labels_of_an_administrator_count_for_a_workers_claims(site: Site) -> None:
    stub = await stub_of(site)
    runner = site.taskdb.runners["worker-1"] = runner_pb2.Runner(name="runners/worker-1")
    runner.admin_labels["zone"] = "b"
    await ready(site)
    claim = asyncio.ensure_future(
        stub.ClaimTasks(claim_request(registration=registration(10, labels={"zone": "a", "gpu": "yes"})))
    )
    await site.taskdb.called("ClaimForRunners")
    assert [dict(found.profile.labels) for found in site.scheduler.fleet.claims()] == [
        {"zone": "b", "gpu": "yes"}
    ]
    claim.cancel()


async def test_a_worker_claims_although_it_cannot_be_registered_unless_that_is_denied(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks()
    await ready(site)
    site.taskdb.failures["RegisterWorker"] = [
        errors.StorageUnavailable(),
        errors.PermissionDenied("a", "b", "c"),
    ]
    assert (await stub.ClaimTasks(claim_request())).assignments
    assert isinstance(await failure(stub.ClaimTasks(claim_request())), errors.PermissionDenied)


async def test_renewal_passes_verdicts_on(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks(2)
    await ready(site)
    one, two = (await stub.ClaimTasks(claim_request(max_tasks=2))).assignments
    site.taskdb.tasks[two.lease.task].generation += 1
    request = work_service_pb2.RenewWorkRequest(
        worker_id="worker-1", leases=[one.lease, two.lease], lease_duration=duration(45)
    )
    response = await stub.RenewWork(request)
    assert response.lease_ttl.seconds == 45
    assert [v.lease.task for v in response.verdicts] == [two.lease.task]


async def test_the_same_fencing_holds_for_workers(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks()
    await ready(site)
    (assignment,) = (await stub.ClaimTasks(claim_request())).assignments
    report = lease_pb2.RunReport(lease=assignment.lease, succeeded=lease_pb2.RunSucceeded())
    request = work_service_pb2.ReportWorkRequest(worker_id="worker-2", reports=[report])
    (result,) = (await stub.ReportWork(request)).results
    assert isinstance(from_status(result.error), errors.LeaseNotHeld)


async def test_logs_and_checkpoints_of_workers_are_stored_and_read_back(site: Site) -> None:
    stub = await stub_of(site)
    site.taskdb.add_tasks()
    await ready(site)
    lease = (await stub.ClaimTasks(claim_request())).assignments[0].lease
    batch = lease_pb2.LogBatch(lease=lease, entries=[log_pb2.LogEntry(sequence=1, message="hi")])
    logs = work_service_pb2.AppendWorkLogsRequest(worker_id="worker-1", batches=[batch])
    assert [status.code for status in (await stub.AppendWorkLogs(logs)).results] == [0]
    assert site.taskdb.logs == [("worker-1", batch)]

    data = b"state" * 1000
    header = checkpoint_pb2.CheckpointHeader(
        task=lease.task,
        generation=1,
        lease_id=lease.lease_id,
        sequence=1,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).digest(),
    )

    async def pieces() -> AsyncIterator[work_service_pb2.WriteWorkCheckpointRequest]:
        first = checkpoint_pb2.CheckpointChunk(header=header, data=data[:2000])
        yield work_service_pb2.WriteWorkCheckpointRequest(worker_id="worker-1", chunk=first)
        last = checkpoint_pb2.CheckpointChunk(offset=2000, data=data[2000:], last=True)
        yield work_service_pb2.WriteWorkCheckpointRequest(chunk=last)

    await stub.WriteWorkCheckpoint(pieces())
    read = work_service_pb2.ReadWorkCheckpointRequest(worker_id="worker-1", lease=lease)
    found = [piece async for piece in stub.ReadWorkCheckpoint(read)]
    assert b"".join(piece.data for piece in found) == data


async def test_a_worker_id_outside_the_keys_scope_is_refused_by_every_call(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_id="worker-9")
    stub = await stub_of(site, key)
    lease = lease_pb2.LeaseRef(task="tenants/a/tasks/b", generation=1)
    report = lease_pb2.RunReport(lease=lease, started=lease_pb2.RunStarted())
    batch = lease_pb2.LogBatch(lease=lease)
    chunk = checkpoint_pb2.CheckpointChunk(data=b"x", last=True)

    async def piece() -> AsyncIterator[work_service_pb2.WriteWorkCheckpointRequest]:
        yield work_service_pb2.WriteWorkCheckpointRequest(worker_id="worker-1", chunk=chunk)

    calls = [
        stub.ClaimTasks(claim_request()),
        stub.RenewWork(work_service_pb2.RenewWorkRequest(worker_id="worker-1", leases=[lease])),
        stub.ReportWork(work_service_pb2.ReportWorkRequest(worker_id="worker-1", reports=[report])),
        stub.AppendWorkLogs(work_service_pb2.AppendWorkLogsRequest(worker_id="worker-1", batches=[batch])),
        stub.WriteWorkCheckpoint(piece()),
        stub.ReadWorkCheckpoint(
            work_service_pb2.ReadWorkCheckpointRequest(worker_id="worker-1", lease=lease)
        ).read(),
    ]
    for call in calls:
        assert isinstance(await failure(call), errors.PermissionDenied)


async def test_the_keys_scope_decides_about_tenants_and_labels_of_a_worker(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER, tenants=["acme"])
    stub = await stub_of(site, key)
    site.taskdb.add_tasks(tenant="other")
    (mine,) = site.taskdb.add_tasks(tenant="acme")
    await ready(site)
    response = await stub.ClaimTasks(claim_request(max_tasks=10))
    assert [a.lease.task for a in response.assignments] == [mine]


async def test_a_worker_has_the_labels_of_its_key_and_no_other(site: Site) -> None:
    key = site.taskdb.add_key(api_key_pb2.PRINCIPAL_KIND_RUNNER, labels={"zone": "public"})
    stub = await stub_of(site, key)
    required = task_pb2.RunnerConstraint(selector=common_pb2.RunnerSelector(match_labels={"pci": "yes"}))
    site.taskdb.add_class(class_id=5, placement=task_pb2.Placement(required=required))
    site.taskdb.add_tasks(class_id=5)
    (mine,) = site.taskdb.add_tasks()
    await ready(site)
    described = registration(1000, labels={"pci": "yes"})
    response = await stub.ClaimTasks(claim_request(max_tasks=10, registration=described))
    assert [a.lease.task for a in response.assignments] == [mine]


async def test_a_draining_scheduler_sends_waiting_workers_elsewhere(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    waiting = stub.ClaimTasks(claim_request(wait=timedelta(seconds=20)), timeout=4)
    await site.taskdb.called("ClaimForRunners")
    await site.server.drain()
    error = await failure(waiting)
    assert error.code is errors.Code.UNAVAILABLE


async def test_without_taskdb_workers_get_an_error_within_their_deadline(site: Site) -> None:
    stub = await stub_of(site)
    await ready(site)
    await stub.ClaimTasks(claim_request(wait=timedelta(0)))
    await site.taskdb.stop()
    async with asyncio.timeout(10):
        error = await failure(stub.ClaimTasks(claim_request(wait=timedelta(seconds=20)), timeout=8))
    assert isinstance(error, errors.StorageUnavailable)
