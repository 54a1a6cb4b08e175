"""Maintenance jobs: partitions, retention of the audit, request ids, checkpoints, vacuum."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard
from services.taskdb.tests.yard import started
from taskyard.v1 import task_service_pb2
from taskyard_taskdb.domain.schedule import Every
from taskyard_taskdb.storage.housekeeping.partitions import month_of
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep import maintenance_jobs
from taskyard_taskdb.sweep.jobs import Job, no_guard, run_job

DAY = timedelta(days=1)


@pytest.fixture
async def caller(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller()


async def write_logs(quiet: RunningTaskDb, caller: Caller) -> str:
    """Make a running task with three log lines; returns its name."""
    yard = await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER, None), caller)
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await yard.write(runner, assignment, "line 1", "line 2", "line 3")
    return name


async def test_rows_of_a_missing_partition_are_kept_and_moved_when_it_is_made(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    month = month_of(datetime.now(UTC))
    await quiet.execute(f"DROP TABLE changes_{month:%Y_%m}")
    await quiet.execute(f"DROP TABLE logs_{month:%Y_%m}")
    names = [(await caller.create()).name for _ in range(5)]
    for name in names:
        await quiet.succeed(name)
    written = await write_logs(quiet, caller)
    logs = await quiet.rows("SELECT task_id, first_sequence, last_sequence, entries FROM logs")
    assert await quiet.rows("SELECT DISTINCT tableoid::regclass::text FROM logs") == [("logs_default",)]
    changes = await quiet.rows("SELECT id, resource_id, version FROM changes ORDER BY id")
    assert len(changes) >= 20
    assert await quiet.rows("SELECT DISTINCT tableoid::regclass::text FROM changes") == [("changes_default",)]
    # The change log's month, the logs' month.
    assert await run_job(quiet.pool, jobs["partitions"], no_guard) == 2
    assert await quiet.rows("SELECT id, resource_id, version FROM changes ORDER BY id") == changes
    assert not await quiet.rows("SELECT FROM changes_default")
    assert await quiet.rows("SELECT task_id, first_sequence, last_sequence, entries FROM logs") == logs
    assert await quiet.rows("SELECT count(*) FROM logs_default") == [(0,)]
    page = await caller.tasks.ListTaskLogs(task_service_pb2.ListTaskLogsRequest(parent=written))
    assert [entry.message for entry in page.entries] == ["line 1", "line 2", "line 3"]
    # The next rows go to the new partition, and an older month gets its partition as well.
    await caller.create()
    await quiet.execute("INSERT INTO changes SELECT * FROM changes WHERE false")
    await quiet.execute(
        "INSERT INTO changes (time, event, actor_type, tenant_id, resource_id) "
        "VALUES ('2020-02-29T12:00:00Z', 1, 3, 'default', 'x')",
    )
    assert await run_job(quiet.pool, jobs["partitions"], no_guard) == 1
    assert await quiet.rows("SELECT count(*) FROM changes_2020_02") == [(1,)]
    assert not await quiet.rows("SELECT FROM changes_default")


@pytest.mark.seed("S2.140")
async def test_monthly_partitions_of_the_change_log_are_dropped_after_a_year(
    quiet: RunningTaskDb, jobs: dict[str, Job]
) -> None:
    for moment in ("2020-02-29T12:00:00Z", datetime.now(UTC) - 300 * DAY):
        await quiet.execute(
            "INSERT INTO changes (time, event, actor_type, tenant_id, resource_id) "
            "VALUES (%s, 1, 3, 'default', 'x')",
            moment,
        )
    await run_job(quiet.pool, jobs["partitions"], no_guard)
    assert await run_job(quiet.pool, jobs["audit"], no_guard) == 1
    assert await quiet.rows("SELECT count(*) FROM changes WHERE resource_id = 'x'") == [(1,)]
    assert await run_job(quiet.pool, jobs["audit"], no_guard) == 0


@pytest.mark.seed("S2.147-148")
async def test_request_ids_are_deleted_after_a_day(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    first = await caller.create(request_id="r-1")
    await caller.create(request_id="r-2")
    assert (await caller.create(request_id="r-1")).name == first.name
    await quiet.execute(
        "UPDATE idempotency_keys SET create_time = now() - interval '25 h' WHERE request_id = 'r-1'"
    )
    assert await run_job(quiet.pool, jobs["request-ids"], no_guard) == 1
    assert (await caller.create(request_id="r-1")).name != first.name


@pytest.mark.seed("S2.139", "S2.144")
async def test_checkpoints_beyond_ten_and_of_deleted_tasks_are_deleted(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    task_id = (await caller.create()).metadata.id
    await quiet.execute(
        "INSERT INTO checkpoints (sequence, generation, size_bytes, tenant_id, task_id, sha256, data) "
        "SELECT n, 1, 1, 'default', t, decode(repeat('00', 32), 'hex'), 'x' "
        "FROM generate_series(1, 13) n, unnest(ARRAY[%s, 'gone']) t",
        task_id,
    )
    assert await run_job(quiet.pool, jobs["checkpoints"], no_guard) == 16
    kept = await quiet.rows("SELECT task_id, min(sequence), count(*) FROM checkpoints GROUP BY task_id")
    assert kept == [(task_id, 4, 10)]


@pytest.mark.seed("S0.99")
async def test_the_space_of_deleted_runners_is_used_again(quiet: RunningTaskDb, jobs: dict[str, Job]) -> None:
    async def fill() -> int:
        await quiet.execute(
            "INSERT INTO runners (runner_id, key_id, registration) "
            "SELECT 'runner-' || n, 'k', repeat('x', 500)::bytea FROM generate_series(1, 2000) n"
        )
        size: int = (await quiet.rows("SELECT pg_relation_size('runners')"))[0][0]
        return size

    await quiet.execute("ALTER TABLE runners SET (autovacuum_enabled = false)")
    once = await fill()
    await quiet.execute("DELETE FROM runners")
    assert await run_job(quiet.pool, jobs["vacuum"], no_guard) > 5
    assert await fill() <= once


async def test_tables_with_many_deletions_are_vacuumed_early(quiet: RunningTaskDb) -> None:
    settings = dict(
        await quiet.rows("SELECT relname::text, reloptions FROM pg_class WHERE reloptions IS NOT NULL")
    )
    for table in ("runners", "tasks", "queue", "leases", "webhooks", "idempotency_keys"):
        assert any(option.startswith("autovacuum_vacuum_scale_factor") for option in settings[table]), table


# ANALYZE evaluates this index expression: it waits for a lock, and fails under the usual statement_timeout.
SLOW_INDEX = """
CREATE FUNCTION patient(text) RETURNS text IMMUTABLE LANGUAGE plpgsql SET lock_timeout = 0 AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared(7);
    IF current_setting('statement_timeout') = '30s' THEN RAISE 'cut short'; END IF;
    RETURN $1;
END $$;
CREATE INDEX ON runners (patient(runner_id));
"""


async def test_a_long_vacuum_has_a_longer_timeout_and_sends_heartbeats(
    quiet: RunningTaskDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance_jobs, "HEARTBEAT_SECONDS", 0.01)
    heartbeats, alive = 0, asyncio.Event()

    async def guard(tx: Tx) -> None:
        nonlocal heartbeats
        heartbeats += 1
        if heartbeats == 20:
            alive.set()

    pool = Pool(quiet.url, PoolOptions(size=2))
    await pool.open()
    with psycopg.connect(quiet.url, autocommit=True) as connection:
        connection.execute("INSERT INTO runners (runner_id, key_id, registration) VALUES ('r', 'k', '')")
        connection.execute(SLOW_INDEX)
        connection.execute("SELECT pg_advisory_lock(7)")
        job = asyncio.create_task(run_job(pool, maintenance_jobs.VacuumJob(pool, Every(DAY)), guard))
        async with asyncio.timeout(60):
            await alive.wait()
        assert not job.done()
        connection.execute("SELECT pg_advisory_unlock(7)")
        async with asyncio.timeout(60):
            assert await job > 5
    # The connections of the pool have the ordinary timeout again.
    async with pool.reading() as one, pool.reading() as other:
        for tx in (one, other):
            assert await tx.fetch("SHOW statement_timeout") == [("30s",)]
    await pool.close()
