"""Limits of tenants: waiting, leased and created per second, exact over two replicas and after a crash."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, new_task, run_taskdb
from services.taskdb.tests.yard import Yard, failed, released, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import (
    common_pb2,
    lease_service_pb2,
    task_pb2,
    task_service_pb2,
    tenant_pb2,
    tenant_service_pb2,
)
from taskyard_taskdb.storage.tenant import counters

DEFAULT = "tenants/default"


async def limit(admin: Caller, **limits: int) -> None:
    """Give the tenant "default" these limits, and no others."""
    quota = {"max_concurrent_tasks": 0, "max_queue_depth": 0, "rate_limit_per_sec": 0} | limits
    request = tenant_service_pb2.UpdateTenantRequest(
        tenant=tenant_pb2.Tenant(name=DEFAULT, quota=tenant_pb2.TenantQuota(**quota))
    )
    await admin.tenants.UpdateTenant(request)


async def counted(taskdb: RunningTaskDb) -> tuple[int, int] | None:
    """The counters, which equal a recount."""
    async with taskdb.pool.reading() as tx:
        assert await counters.compare(tx) == []
    rows = await taskdb.rows("SELECT pending, leased FROM tenant_counters WHERE tenant_id = 'default'")
    return rows[0] if rows else None


@pytest.fixture
async def replica(taskdb: RunningTaskDb) -> AsyncIterator[RunningTaskDb]:
    """A second taskdb on the same database."""
    async for running in run_taskdb(taskdb.url):
        yield running


async def outcome(call: Any) -> Any:
    try:
        return await call
    except errors.TaskyardError as error:
        return error


@pytest.mark.seed("S2.7")
@pytest.mark.covers("CreateTask", "QUEUE_DEPTH_EXCEEDED")
async def test_a_full_queue_refuses_with_quota_and_a_time_to_retry(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await limit(admin, max_queue_depth=2)
    for _ in range(2):
        await tenant.create()
    with pytest.raises(errors.QueueDepthExceeded) as refused:
        await tenant.create()
    assert refused.value.subject == DEFAULT and refused.value.limit == "2" and refused.value.retryable
    assert await counted(taskdb) == (2, 0)
    assert (await taskdb.rows("SELECT count(*) FROM tasks")) == [(2,)]


async def test_200_creates_at_quota_less_one_over_two_replicas_never_exceed_it(
    admin: Caller, taskdb: RunningTaskDb, replica: RunningTaskDb
) -> None:
    await limit(admin, max_queue_depth=50)
    callers = [await taskdb.caller(), await replica.caller()]
    for number in range(49):
        await callers[number % 2].create()
    results = await asyncio.gather(*(outcome(callers[n % 2].create()) for n in range(200)))
    refused = [result for result in results if isinstance(result, errors.QueueDepthExceeded)]
    assert len(refused) == 199, {type(result) for result in results}
    assert await counted(taskdb) == (50, 0)


@pytest.mark.covers("BatchCreateTasks", "QUEUE_DEPTH_EXCEEDED")
async def test_items_beyond_the_limit_are_refused_singly_and_an_atomic_batch_as_a_whole(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await limit(admin, max_queue_depth=3)
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=DEFAULT, requests=[new_task() for _ in range(5)], mode=common_pb2.BATCH_MODE_ATOMIC
    )
    with pytest.raises(errors.QueueDepthExceeded) as refused:
        await tenant.tasks.BatchCreateTasks(batch)
    assert refused.value.extra["index"] == "3" and await counted(taskdb) == (0, 0)
    batch.mode = common_pb2.BATCH_MODE_PER_ITEM
    response = await tenant.tasks.BatchCreateTasks(batch)
    assert [item.HasField("created") for item in response.results] == [True] * 3 + [False] * 2
    assert isinstance(from_status(response.results[4].error), errors.QueueDepthExceeded)
    assert await counted(taskdb) == (3, 0)


@pytest.mark.seed("S2.8")
@pytest.mark.covers("CreateTask", "RATE_LIMITED")
@pytest.mark.covers("BatchCreateTasks", "RATE_LIMITED")
@pytest.mark.covers("BatchCreateTasks", "BATCH_TOO_LARGE")
async def test_rate_limit_admits_a_burst_and_then_returns_a_retry_time(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await limit(admin, rate_limit_per_sec=1, rate_burst=5)
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=DEFAULT, requests=[new_task() for _ in range(6)], mode=common_pb2.BATCH_MODE_PER_ITEM
    )
    with pytest.raises(errors.BatchTooLarge) as refused:
        await tenant.tasks.BatchCreateTasks(batch)
    assert refused.value.limit == 5
    for _ in range(3):
        await tenant.create()
    del batch.requests[5:]
    response = await tenant.tasks.BatchCreateTasks(batch)
    error = from_status(response.results[4].error)
    assert isinstance(error, errors.RateLimited) and error.retry_after is not None
    assert 1 < error.retry_after.total_seconds() <= 3
    created = sum(item.HasField("created") for item in response.results)
    with pytest.raises(errors.RateLimited):
        for _ in range(5):
            await tenant.create()
    assert created >= 2


async def test_a_bucket_over_two_replicas_admits_its_rate(
    admin: Caller, taskdb: RunningTaskDb, replica: RunningTaskDb
) -> None:
    rate, burst = 100, 1000
    await limit(admin, rate_limit_per_sec=rate, rate_burst=burst)
    callers = [await taskdb.caller(), await replica.caller()]
    # An empty bucket, so that nothing but the rate is measured.
    async with taskdb.pool.transaction() as tx:
        empty = "UPDATE tenant_counters SET tokens = 0, refill_time = clock_timestamp() RETURNING refill_time"
        [(start,)] = await tx.fetch(empty)
    begin = time.monotonic()
    admitted = 0

    async def create(caller: Caller) -> None:
        nonlocal admitted
        while time.monotonic() < begin + 10:
            batch = task_service_pb2.BatchCreateTasksRequest(
                parent=DEFAULT,
                requests=[new_task() for _ in range(20)],
                mode=common_pb2.BATCH_MODE_PER_ITEM,
                view=task_service_pb2.TASK_VIEW_NAME,
            )
            response = await caller.tasks.BatchCreateTasks(batch)
            admitted += len(response.results) - response.failed_count

    await asyncio.gather(*(create(caller) for caller in callers for _ in range(2)))
    # By the clock that fills it, up to the last look at it; a batch smaller than what had flowed in
    # leaves the rest.
    [(last, left)] = await taskdb.rows("SELECT refill_time, tokens FROM tenant_counters")
    seconds = (last - start).total_seconds()
    assert seconds > 9
    assert abs(admitted + left - rate * seconds) <= 1, (admitted, left, seconds)
    assert await counted(taskdb) == (admitted, 0)


@pytest.mark.seed("S2.6")
async def test_leased_tasks_never_exceed_their_limit_over_two_replicas(
    admin: Caller, scheduler: Caller, tenant: Caller, taskdb: RunningTaskDb, replica: RunningTaskDb
) -> None:
    await limit(admin, max_concurrent_tasks=3)
    there = await replica.caller(3, None)
    yards = [
        await make_yard(taskdb, scheduler, tenant),
        await make_yard(replica, there, await replica.caller(), "scheduler-2"),
    ]
    await yards[0].create(10)
    lanes = await yards[0].lane_claims()
    runners = [(await yard.hello(f"runner-{n}"))[0] for n, yard in enumerate(yards)]
    results = await asyncio.gather(*(yards[n % 2].claim(runners[n % 2], 4, lanes=lanes) for n in range(8)))
    taken = [assignment for result in results for assignment in result.assignments]
    assert len(taken) == 3
    assert await counted(taskdb) == (7, 3)
    first = taken[0]
    await yards[0].report(_holder(runners, results, first), started(first), succeeded(first))
    assert await counted(taskdb) == (7, 2)
    again = await yards[1].claim(runners[1], 4, lanes=lanes)
    assert len(again.assignments) == 1


def _holder(runners: Any, results: Any, assignment: Any) -> str:
    for number, result in enumerate(results):
        if assignment in result.assignments:
            return str(runners[number % 2].id)
    raise AssertionError("somebody holds it")


async def test_queue_watch_sends_the_claimable_count_of_a_limited_tenant(admin: Caller, yard: Yard) -> None:
    await limit(admin, max_concurrent_tasks=2)
    await yard.create(3)
    runner, _ = await yard.hello()
    call = yard.scheduler.leases.WatchQueue(
        lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
    )

    async def claimable(expected: int) -> None:
        async with asyncio.timeout(20):
            while True:
                tenants = [t for t in (await call.read()).tenants if t.tenant == "default"]
                if tenants and tenants[-1].claimable_count == expected:
                    return

    await claimable(2)
    taken = (await yard.claim(runner)).assignments
    assert len(taken) == 2
    await claimable(0)
    await yard.report(runner, started(taken[0]), succeeded(taken[0]))
    await claimable(1)
    await yard.report(runner, started(taken[1]), failed(taken[1], permanent=True))
    await claimable(2)
    call.cancel()


@pytest.mark.covers("RetryTask", "QUEUE_DEPTH_EXCEEDED")
@pytest.mark.covers("BatchRetryTasks", "QUEUE_DEPTH_EXCEEDED")
async def test_retries_need_room_in_the_queue(admin: Caller, tenant: Caller, taskdb: RunningTaskDb) -> None:
    names = [(await tenant.create()).name for _ in range(3)]
    for name in names:
        await taskdb.fail(name)
    await limit(admin, max_queue_depth=2)
    await tenant.create()
    response = await tenant.tasks.BatchRetryTasks(
        task_service_pb2.BatchRetryTasksRequest(parent=DEFAULT, names=names[:2])
    )
    refused = [from_status(r.status) for r in response.results if r.HasField("status") and r.status.code]
    assert [type(error) for error in refused] == [errors.QueueDepthExceeded]
    with pytest.raises(errors.QueueDepthExceeded):
        await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=names[2]))
    assert await counted(taskdb) == (2, 0)


async def test_counters_equal_a_recount_whatever_happens_to_tasks(
    admin: Caller, tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    rng = random.Random(7)
    await limit(admin, max_concurrent_tasks=50, max_queue_depth=500)
    runner, _ = await yard.hello()
    names: list[str] = []
    held: list[Any] = []
    for round in range(40):
        names += await yard.create(
            2,
            slot=rng.choice(["", "a", "b"]),
            admission=rng.choice([0, 1, 2, 3]),
            retry=common_pb2.RetryPolicy(max_retries=rng.choice([0, 1])),
        )
        held += (await yard.claim(runner, rng.randint(1, 4))).assignments
        rng.shuffle(held)
        for assignment in [held.pop() for _ in range(min(len(held), rng.randint(0, 3)))]:
            reports = [succeeded(assignment), failed(assignment), released(assignment)]
            reports.append(failed(assignment, permanent=True))
            await yard.report(runner, started(assignment), rng.choice(reports))
        name = rng.choice(names)
        service = task_service_pb2
        for call in rng.sample(
            [
                tenant.tasks.CancelTask(service.CancelTaskRequest(name=name)),
                tenant.tasks.PauseTask(service.PauseTaskRequest(name=name)),
                tenant.tasks.ResumeTask(service.ResumeTaskRequest(name=name)),
                tenant.tasks.RetryTask(service.RetryTaskRequest(name=name)),
                tenant.tasks.DeleteTask(service.DeleteTaskRequest(name=name)),
            ],
            5,
        ):
            await outcome(call)
        assert await counted(taskdb) is not None, round
    assert (await taskdb.rows("SELECT pending + leased > 0 FROM tenant_counters")) == [(True,)]


async def test_unlimited_tenants_have_no_counters_and_a_first_limit_counts_what_is_there(
    admin: Caller, tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    await yard.create(5)
    runner, _ = await yard.hello()
    await yard.claim(runner, 2)
    assert await taskdb.rows("SELECT * FROM tenant_counters") == []
    stop, made = asyncio.Event(), asyncio.Event()

    async def busy() -> None:
        while not stop.is_set():
            await yard.create(1)
            made.set()

    async def some_more() -> None:
        """Return when a task has been made meanwhile."""
        made.clear()
        await made.wait()

    workers = [asyncio.create_task(busy()) for _ in range(4)]
    for _ in range(5):
        await limit(admin, max_queue_depth=100_000)
        await some_more()
        await limit(admin)
        await some_more()
    await limit(admin, max_queue_depth=100_000, max_concurrent_tasks=10)
    await some_more()
    stop.set()
    await asyncio.gather(*workers)
    found = await counted(taskdb)
    assert found is not None and found[0] > 3 and found[1] == 2


async def test_wrong_counters_are_found_and_repaired(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await limit(admin, max_queue_depth=10)
    await tenant.create()
    async with taskdb.pool.transaction() as tx:
        await tx.execute("UPDATE tenant_counters SET pending = 9, leased = 4")
        [off] = await counters.compare(tx, repair=True)
    assert (off.pending, off.leased, off.counted_pending, off.counted_leased) == (9, 4, 1, 0)
    assert await counted(taskdb) == (1, 0)


@pytest.mark.covers("CreateTask", "STORAGE_QUOTA_EXCEEDED")
@pytest.mark.covers("BatchCreateTasks", "STORAGE_QUOTA_EXCEEDED")
async def test_a_tenant_creates_nothing_beyond_its_storage(
    taskdb: RunningTaskDb, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archived tasks count; after a deletion and the next measurement there is room again."""
    monkeypatch.setattr("taskyard_taskdb.storage.tenant.stored_bytes.MEASURE_SECONDS", 0.0)
    quota = tenant_pb2.TenantQuota(max_storage_bytes=250_000)
    tenant = tenant_pb2.Tenant(tier=tenant_pb2.TENANT_TIER_ENTERPRISE, display_name="Small", quota=quota)
    request = tenant_service_pb2.CreateTenantRequest(tenant_id="small", tenant=tenant)
    made = (await admin.tenants.CreateTenant(request)).tenant
    assert made.quota.max_storage_bytes == 250_000
    caller = await taskdb.caller(tenant_id="small")
    payload = common_pb2.Payload(raw=b"x" * 100_000, content_type="text/plain")
    large = new_task("tenants/small", payload=payload)

    async def create() -> task_pb2.Task:
        task: task_pb2.Task = (await caller.tasks.CreateTask(large)).task
        return task

    first = await create()
    await create()
    with pytest.raises(errors.StorageQuotaExceeded, match="250000 bytes already") as refused:
        await create()
    assert refused.value.retry_after
    batch = task_service_pb2.BatchCreateTasksRequest(parent="tenants/small", requests=[large])
    with pytest.raises(errors.StorageQuotaExceeded):
        await caller.tasks.BatchCreateTasks(batch)
    await caller.create(parent="tenants/small")
    await caller.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=first.name))
    await caller.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=first.name))
    async with asyncio.timeout(30):
        while True:
            try:
                await create()
                break
            except errors.StorageQuotaExceeded:
                # The measurement runs beside the calls.
                await asyncio.sleep(0.05)
