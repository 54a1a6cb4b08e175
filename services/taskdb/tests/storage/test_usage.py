"""What tenants have used: what runs is read from its lease, what has ended is added up and written."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.lifecycle_sequences import lives
from services.taskdb.tests.yard import Assignment, Yard, failed, released, started, succeeded
from taskyard.v1 import lease_pb2, lease_service_pb2
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenant import usage
from taskyard_taskdb.storage.tenant.usage import ALWAYS, UsageLedger, Use, used, worth


async def read(pool: Pool, ledger: UsageLedger, after: datetime = ALWAYS) -> dict[str, Use]:
    async with pool.reading() as tx:
        return await ledger.read(tx, after)


async def age(pool: Pool, seconds: float) -> None:
    """Make what is written older, and what runs run for longer."""
    async with pool.transaction() as tx:
        for table, column in (("tenant_usage", "update_time"), ("leases", "start_time")):
            await tx.execute(
                f"UPDATE {table} SET {column} = {column} - make_interval(secs => %s)", (seconds,)
            )


# ---- what has ended


async def test_usage_of_an_ended_run_counts_at_once_and_is_written_once(pool: Pool) -> None:
    ledger = UsageLedger()
    ledger.add([("default", 10.0, 1), ("other", 4.0, 1), ("default", 20.0, 1)])
    expected = {"default": worth(10) + worth(20), "other": worth(4)}
    before = await read(pool, ledger)
    assert {tenant: use.usage for tenant, use in before.items()} == pytest.approx(expected, rel=0.01)
    assert await ledger.flush(pool) == 2
    assert await ledger.flush(pool) == 0, "there is nothing more"
    for reader in (ledger, UsageLedger()):
        after = await read(pool, reader)
        assert {tenant: use.usage for tenant, use in after.items()} == pytest.approx(expected, rel=0.01)


async def test_usage_halves_in_five_minutes_also_within_a_long_run(pool: Pool) -> None:
    assert worth(1.0) == pytest.approx(1.0, rel=0.01)
    assert worth(1e6) == pytest.approx(300 / math.log(2))
    ledger = UsageLedger()
    ledger.add([("default", 60.0, 1)])
    await ledger.flush(pool)
    await age(pool, 300.0)
    assert (await read(pool, ledger))["default"].usage == pytest.approx(worth(60) / 2, rel=0.01)


async def test_replicas_add_to_the_same_tenant(pool: Pool) -> None:
    for _ in range(2):
        replica = UsageLedger()
        replica.add([("default", 5.0, 1)])
        await replica.flush(pool)
    assert (await read(pool, UsageLedger()))["default"].usage == pytest.approx(2 * worth(5), rel=0.01)


async def test_only_tenants_whose_usage_changed_are_published_again(pool: Pool) -> None:
    ledger = UsageLedger()
    ledger.add([("default", 5.0, 1)])
    await ledger.flush(pool)
    written = (await read(pool, ledger))["default"].update_time
    assert await read(pool, ledger, written) == {}
    ledger.add([("default", 1.0, 1)])
    assert (await read(pool, ledger, written))["default"].usage == pytest.approx(worth(5) + 1, rel=0.01)


async def test_usage_of_a_tenant_idle_for_hours_is_deleted(pool: Pool) -> None:
    ledger = UsageLedger()
    ledger.add([("default", 5.0, 1)])
    await ledger.flush(pool)
    for seconds, gone in ((3600.0, 0), (4 * 3600.0, 1)):
        await age(pool, seconds)
        async with pool.transaction() as tx:
            assert await usage.forget(tx) == gone


# ---- what a transition ends


def running_since(task: TaskState) -> datetime | None:
    """The model: a run uses a place from its start until its lease is gone or its holder is lost."""
    held = task.lease is not None and task.phase in (Phase.SCHEDULED, Phase.RUNNING)
    return task.lease.start_time if held and task.lease else None


def test_usage_of_ended_and_running_runs_is_their_run_time() -> None:
    ended = 0
    for life in lives(400):
        added, passed, last = 0.0, 0.0, life.created.task.create_time
        for step in life.steps:
            if running_since(step.before) is not None:
                passed += (step.now - last).total_seconds()
            last = step.now
            if step.transition is None:
                continue
            if step.transition.starts:
                # It may have started a little before its start is reported.
                begun = running_since(step.after) or step.after.start_time
                passed += (step.now - begun).total_seconds() if begun else 0.0
            added += used(step.transition)
            since = running_since(step.after)
            runs = (step.now - since).total_seconds() if since else 0.0
            assert added + runs == pytest.approx(passed), step
        ended += added > 0
    assert ended > 100


# ---- through the services


async def expect_use(yard: Yard, usage: float, leased_count: int) -> None:
    """A full queue watch publishes this usage and lease count of "default"."""
    request = lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
    call = yard.scheduler.leases.WatchQueue(request)
    response = await call.read()
    call.cancel()
    (share,) = [share for share in response.tenants if share.tenant == "default"]
    assert not share.limits_only
    assert share.usage == pytest.approx(usage, abs=1.0)
    assert share.leased_count == leased_count


@pytest.mark.parametrize("end", [succeeded, failed, released], ids=lambda end: end.__name__)
async def test_a_run_counts_from_its_start_and_stays_counted_when_it_ends(
    yard: Yard, taskdb: RunningTaskDb, end: Callable[[Assignment], lease_pb2.RunReport]
) -> None:
    await yard.create(2)
    runner, _ = await yard.hello()
    first, _second = (await yard.claim(runner)).assignments
    # Nothing has started.
    await expect_use(yard, 0.0, 2)
    await yard.report(runner, started(first))
    await age(taskdb.pool, 60.0)
    await expect_use(yard, worth(60), 2)
    await yard.report(runner, end(first))
    await expect_use(yard, worth(60), 1)


async def test_usage_of_a_short_run_is_its_reported_time_bounded_by_its_lease(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    await yard.create(2)
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    async with taskdb.pool.transaction() as tx:
        await tx.execute("UPDATE leases SET schedule_time = schedule_time - interval '20 seconds'")
    # The clock of the runner is an hour ahead.
    begin = datetime.now(UTC) + timedelta(hours=1)
    for assignment, seconds in zip(assignments, (5.0, 500.0), strict=True):
        reports = [started(assignment), succeeded(assignment)]
        reports[0].time.FromDatetime(begin)
        reports[1].time.FromDatetime(begin + timedelta(seconds=seconds))
        await yard.report(runner, *reports)
    await expect_use(yard, worth(5) + worth(20), 0)
