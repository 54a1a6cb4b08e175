"""Two taskdbs killed while they create, claim and complete for a limited tenant: the counters stay exact."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from services.taskdb.tests.yard import started, succeeded
from taskyard.errors import QueueDepthExceeded, TaskyardError
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb

LIMIT = 50
FAILPOINTS = ("create.after_commit", "claim.after_commit", "report.before_commit")


@pytest.fixture
async def replicas(database_url: str, tmp_path: Path) -> AsyncIterator[list[CrashingTaskDb]]:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE tenants SET max_queue_depth = %s WHERE tenant_id = 'default'", (LIMIT,))
        connection.execute(
            "INSERT INTO tenant_counters (tenant_id, max_concurrent_tasks, max_queue_depth, "
            "rate_limit_per_sec, rate_burst) VALUES ('default', 10, %s, 0, 0)",
            (LIMIT,),
        )
    async with (
        crashing_taskdb(database_url, tmp_path, name="a") as first,
        crashing_taskdb(database_url, tmp_path, name="b") as second,
    ):
        yield [first, second]


async def recount_equals(taskdb: CrashingTaskDb) -> tuple[int, int]:
    """The counters, checked against a count of the rows."""
    [(pending, leased, waiting, held)] = await taskdb.rows(
        "SELECT c.pending, c.leased, (SELECT count(*) FROM tasks t WHERE t.phase = 1 AND t.end_time IS NULL "
        "AND NOT EXISTS (SELECT FROM leases l WHERE l.task_id = t.task_id)), (SELECT count(*) FROM leases) "
        "FROM tenant_counters c"
    )
    assert (pending, leased) == (waiting, held)
    return pending, leased


async def test_counters_equal_a_recount_after_kills_and_the_limit_holds(
    replicas: list[CrashingTaskDb],
) -> None:
    first, second = replicas
    await second.start()
    for failpoint in FAILPOINTS:
        await first.start(f"{failpoint}=kill")
        with contextlib.suppress(TaskyardError):
            runner, _ = await first.yard.hello(f"runner-{failpoint}")
            await first.yard.create(3)
            for assignment in (await first.yard.claim(runner, 2)).assignments:
                await first.yard.report(runner, started(assignment), succeeded(assignment))
        await first.killed()
        pending, leased = await recount_equals(second)
        assert pending <= LIMIT and leased <= 10
    await first.start()
    # What the killed ones held comes back to the queue when its leases expire, and not in the middle of this.
    await second.rows("UPDATE leases SET expire_time = now() + interval '1 hour' RETURNING 1")
    pending, _ = await recount_equals(second)
    await second.yard.create(LIMIT - 1 - pending)
    results = await asyncio.gather(
        *(replicas[n % 2].yard.create() for n in range(200)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, QueueDepthExceeded)]
    assert len(refused) == 199, [result for result in results if result not in refused]
    assert (await recount_equals(first))[0] == LIMIT
