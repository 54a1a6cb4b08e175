"""What the replaced systems ask of storage: whole transitions, the leader, room to grow."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.retry import delay
from taskyard_taskdb.domain.words import Jitter
from taskyard_taskdb.storage.audit import listing as audit_listing
from taskyard_taskdb.storage.audit.listing import AuditQuery
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.housekeeping import leader_lock
from taskyard_taskdb.storage.stats import stats as task_stats
from taskyard_taskdb.storage.stats.stats import StatsQuery
from taskyard_taskdb.storage.transition.load import database_time


@pytest.mark.seed("S1.54-55")
async def test_retry_delays_double_and_the_next_attempt_time_is_stored(yard: Yard) -> None:
    policy = TaskPolicy(jitter=Jitter.NONE)
    waits = [delay(policy, number, None, Random(1)).total_seconds() for number in range(10)]
    assert waits == [min(2**number, 300) for number in range(10)]
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), failed(assignment))
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_PENDING
    wait = task.status.next_attempt_time.ToDatetime() - task.metadata.update_time.ToDatetime()
    assert timedelta(0) < wait <= timedelta(seconds=1)


@pytest.mark.seed("S2.145")
async def test_status_audit_and_leases_of_a_runner_change_in_one_transaction(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await yard.report(runner, succeeded(assignment))
    rows = await taskdb.rows(
        "SELECT t.xmin::text, c.xmin::text FROM tasks t JOIN ended_runs r USING (tenant_id, task_id) "
        "JOIN changes c ON c.resource_id = t.task_id AND c.event = 8"
    )
    assert len(rows) == 1 and len(set(rows[0])) == 1
    assert not await taskdb.rows("SELECT FROM leases")


@pytest.mark.seed("S2.103-105")
async def test_the_leader_row_is_acquired_after_its_expiry_or_by_its_holder(taskdb: RunningTaskDb) -> None:
    await taskdb.taskdb.housekeeping.stop()
    pool = taskdb.pool
    async with pool.transaction() as tx:
        # In one transaction, since a renewal of the stopped leader may still run.
        await tx.execute("UPDATE coordinator_state SET value = '', expires_at = now() - interval '1 s'")
        first = await leader_lock.acquire(tx, "one")
    assert first is not None and await pool.run(lambda tx: leader_lock.acquire(tx, "two")) is None
    assert await pool.run(lambda tx: leader_lock.acquire(tx, "one")) == first
    (left,) = (await taskdb.rows("SELECT expires_at - updated_at FROM coordinator_state"))[0]
    assert timedelta(seconds=9) < left <= timedelta(seconds=11)
    async with pool.transaction() as tx:
        await tx.execute("UPDATE coordinator_state SET expires_at = now() - interval '1 s'")
    second = await pool.run(lambda tx: leader_lock.acquire(tx, "two"))
    assert second is not None and second.epoch > first.epoch
    with pytest.raises(leader_lock.LeadershipLost):
        await pool.run(lambda tx: leader_lock.check(tx, first))
    # Inserting it again changes nothing.
    async with pool.transaction() as tx:
        await tx.execute(
            "INSERT INTO coordinator_state (key, value, expires_at) VALUES ('leader_lock', '', now()) "
            "ON CONFLICT DO NOTHING"
        )
    assert await taskdb.rows("SELECT value FROM coordinator_state WHERE key = 'leader_lock'") == [("two",)]


# Tables with rows of tenants whose key begins with something else, and why that may be.
OTHER_KEYS = {
    "api_keys": "a caller sends the id of its key, which identifies it",
    "inbox": "reports are applied in the order of their ids; each names its tenant",
    "revocations": "a renewal asks for those of a runner, over all tenants",
    "webhooks": "calls are made in the order of their ids; each names its tenant",
}


async def test_keys_begin_with_the_tenant_except_for_documented_indexes(
    taskdb: RunningTaskDb,
) -> None:
    """So that tenants can be distributed over several servers."""
    rows: list[tuple[Any, ...]] = await taskdb.rows(
        "SELECT c.relname::text, first.attname::text FROM pg_class c "
        "JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id' "
        "JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary "
        "JOIN pg_attribute first ON first.attrelid = c.oid AND first.attnum = i.indkey[0] "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition"
    )
    leading = dict(rows)
    assert {"tasks", "queue", "leases", "slots", "timers", "runs", "checkpoints"} < leading.keys()
    assert {table for table, column in leading.items() if column != "tenant_id"} == OTHER_KEYS.keys()


@pytest.mark.seed("S2.134")
async def test_a_checkpoint_above_ten_mebibytes_is_refused_by_the_database(taskdb: RunningTaskDb) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        async with taskdb.pool.transaction() as tx:
            await tx.execute(
                "INSERT INTO checkpoints (sequence, generation, size_bytes, tenant_id, task_id, sha256, "
                "data) VALUES (1, 1, 10485761, 'default', 't', decode(repeat('00', 32), 'hex'), 'x')"
            )


@pytest.mark.seed("S2.154")
async def test_audit_and_statistics_are_answered_in_a_transaction_that_may_not_write(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    """So that a read replica of PostgreSQL can take them."""
    await taskdb.taskdb.housekeeping.stop()
    (name,) = await yard.create()
    async with taskdb.pool.reading() as tx:
        end = await change_reader.settled(tx)
    assert await task_stats.fold(taskdb.pool, end)
    async with taskdb.pool.transaction() as tx:
        await tx.execute("SET TRANSACTION READ ONLY", prepare=False)
        page = await audit_listing.list_page(tx, AuditQuery("default", None), None, 50)
        assert name.endswith(page.changes[0].resource_id)
        day = timedelta(days=1)
        now = await database_time(tx)
        (counted,) = await task_stats.read(tx, StatsQuery("default", now - day, now + day))
        assert counted.total == 1
