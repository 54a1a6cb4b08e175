"""Each test of equivalence notices when the SQL that it compares decides something else."""

from __future__ import annotations

from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, make_yard
from services.taskdb.tests.credit_stream import open_credit
from services.taskdb.tests.storage import test_create_equivalence as of_create
from services.taskdb.tests.storage import test_eager_equivalence as of_eager
from services.taskdb.tests.storage import test_sql_equivalence as of_sql
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.schema.base import functions
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.storage.tenant import api_keys

# Statement, what it has, and what it has instead.
CREATES = (
    ("insert_tasks", "CASE pending_reason WHEN 1 THEN now END", "now"),
    ("insert_tasks", "now + total_timeout", "now + total_timeout * 2"),
    ("copy_tasks", "total_deadline, next_attempt_time,", "next_attempt_time, total_deadline,"),
    ("copy_creations", "phase, pending_reason,", "pending_reason, phase,"),
)
CLAIMS = (
    ("insert_claimed_leases", "t.generation) + 1 AS generation", "t.generation) + 2 AS generation"),
    ("insert_claimed_leases", "coalesce(c.old_attempt, t.attempt)", "coalesce(c.old_attempt, 0)"),
    ("insert_claimed_leases", "coalesce(c.old_phase, t.phase)", "1::smallint"),
    ("insert_claimed_leases", "t.plain AND t.has_dependents IS NOT TRUE", "NOT t.plain"),
    ("end_expired_leases", "CASE WHEN start_time IS NULL THEN 0 ELSE attempt END", "0"),
    ("end_expired_leases", "%(lost)s::smallint", "(%(lost)s::smallint + 1)"),
)
# Of the function claim_tasks_v1.
ONE_CALLS = (
    ("t.generation + 1 AS generation", "t.generation + 2 AS generation"),
    ("t.version + 1 AS version", "t.version AS version"),
    ("t.phase AS previous_phase", "1::smallint AS previous_phase"),
    ("t.plain AND t.has_dependents IS NOT TRUE", "NOT t.plain"),
    ("claim_time + claim_durations[c.claim]", "claim_time"),
    ("claim_id, slot\n", "claim_id, NULL\n"),
    ("nullif(attempt, 0), nullif(retry_count, 0)", "nullif(attempt, 0), NULL"),
)
EAGER = (
    ("insert_eager_tasks", "SELECT 1, j.lease_id, 2,", "SELECT 2, j.lease_id, 2,"),
    ("insert_eager_tasks", "j.now + j.lease_duration", "j.now + j.lease_duration * 2"),
    ("insert_eager_tasks", "s.plain AND NOT j.checks_result", "NOT s.plain"),
    ("insert_eager_tasks", "NULL, tenant_id, task_id, scheduler_id", "NULL, tenant_id, task_id, creator_id"),
    ("insert_eager_tasks", "FROM judged WHERE NOT granted", "FROM judged"),
)
# Of the function complete_runs_v1.
SHORT_RUNS = (
    ("least(greatest(i.start_time, l.schedule_time), i.now)", "i.now"),
    ("least(greatest(e.end_time, e.start_time), e.now)", "e.now"),
    ("coalesce(e.exit_code, t.exit_code)", "e.exit_code"),
    ("version = e.version + 2", "version = e.version + 1"),
    ("attempt = e.attempt + 1,", "attempt = e.attempt,"),
    ("AND NOT l.timed AND l.slot IS NULL", ""),
    ("FROM finished WHERE generation > 1", "FROM finished"),
    ("SELECT now, version + 2, generation", "SELECT now, version + 1, generation"),
    ("10::smallint, 2::smallint", "10::smallint, 3::smallint"),
    ("leased = c.leased - u.count", "leased = c.leased - 1"),
    ("interval '0'), e.now - e.schedule_time)", "interval '0'), interval '1 day')"),
)
SUCCESSES = (
    ("complete_plain", "least(greatest(coalesce(i.start_time, now), l.schedule_time), now)", "now"),
    ("complete_plain", "least(greatest(coalesce(told_end, now), start_time), now)", "now"),
    ("complete_plain", "coalesce(e.exit_code, t.exit_code)", "e.exit_code"),
    ("complete_plain", "version = e.version + 1 + e.starts::int", "version = e.version + 1"),
    ("complete_plain", "l.attempt + i.starts::int AS attempt", "l.attempt AS attempt"),
)


def mutate(monkeypatch: pytest.MonkeyPatch, name: str, fragment: str, instead: str) -> None:
    sql = statements()[name]
    assert fragment in sql, f"{name} has no {fragment!r}"
    monkeypatch.setitem(statements(), name, sql.replace(fragment, instead))


@pytest.mark.parametrize("mutation", CREATES)
async def test_a_mutated_create_statement_is_detected(
    taskdb: Any, tenant: Any, make_task: Any, monkeypatch: pytest.MonkeyPatch, mutation: tuple[str, str, str]
) -> None:
    mutate(monkeypatch, *mutation)
    with pytest.raises(AssertionError):
        if mutation[0].startswith("copy_"):
            await of_create.test_state_of_a_large_batch_is_that_of_the_pure_function(
                taskdb, tenant, make_task, monkeypatch
            )
        else:
            await of_create.test_stored_state_is_that_of_the_pure_function(taskdb, tenant, make_task)


@pytest.mark.parametrize("mutation", EAGER)
async def test_a_mutated_create_on_credit_is_detected(
    quiet: RunningTaskDb, monkeypatch: pytest.MonkeyPatch, mutation: tuple[str, str, str]
) -> None:
    yard = await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())
    runner, _ = await yard.hello()
    credit = await open_credit(quiet, yard, runner)
    mutate(monkeypatch, *mutation)
    with pytest.raises(AssertionError):
        await of_eager.test_a_create_on_credit_equals_a_create_and_a_claim(quiet, yard, runner, credit)
    await credit.end()


@pytest.mark.parametrize("mutation", CLAIMS)
async def test_a_mutated_claim_statement_is_detected(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, mutation: tuple[str, str, str]
) -> None:
    mutate(monkeypatch, *mutation)
    with pytest.raises(AssertionError):
        await of_sql.test_a_claim_in_sql_equals_that_of_the_lifecycle(pool)


@pytest.mark.parametrize("mutation", ONE_CALLS)
async def test_a_mutated_claim_function_is_detected(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, mutation: tuple[str, str]
) -> None:
    await mutate_function(pool, "claim_tasks_v1", *mutation)
    with pytest.raises(AssertionError):
        await of_sql.test_a_claim_in_one_call_equals_that_of_the_lifecycle(pool, monkeypatch)


@pytest.mark.parametrize("mutation", SHORT_RUNS)
async def test_a_mutated_function_of_short_runs_is_detected(pool: Pool, mutation: tuple[str, str]) -> None:
    await mutate_function(pool, "complete_runs_v1", *mutation)
    with pytest.raises(AssertionError):
        await of_sql.test_short_runs_completed_in_columns_equal_those_of_the_lifecycle(pool)


async def mutate_function(pool: Pool, name: str, fragment: str, instead: str) -> None:
    created = functions()[name]
    assert fragment in created, f"{name} has no {fragment!r}"
    changed = created.replace(fragment, instead).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    async with pool.transaction() as tx:
        await tx.execute(changed, prepare=False)


@pytest.mark.parametrize("mutation", SUCCESSES)
async def test_a_mutated_success_statement_is_detected(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, mutation: tuple[str, str, str]
) -> None:
    mutate(monkeypatch, *mutation)
    with pytest.raises(AssertionError):
        await of_sql.test_a_plain_success_in_sql_equals_that_of_the_lifecycle(pool, monkeypatch)


async def test_mutated_renewal_statements_are_detected(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch, "renew_leases", "SET expire_time", "SET session_epoch = 5, expire_time")
    with pytest.raises(AssertionError):
        await of_sql.test_a_renewal_of_a_pull_worker_in_sql_equals_that_of_the_lifecycle(pool)


async def test_mutated_follower_statements_are_detected(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch, "follow_sessions", "expire_time = NULL, ", "")
    with pytest.raises(AssertionError):
        await of_sql.test_a_lease_that_follows_its_session_in_sql_equals_that_of_the_lifecycle(pool)
