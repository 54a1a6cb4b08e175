"""Plans of hot statements while a table grows and was never analysed: rows are looked up by their keys."""

from __future__ import annotations

import re

import psycopg
import pytest

from services.taskdb.tests.storage.rows import numbered
from taskyard_taskdb.storage.pool import PoolOptions, connect_arguments
from taskyard_taskdb.storage.statements import statement

# What claims, reports, cancels and updates do with rows whose keys they know.
BY_KEY = (
    "insert_claimed_leases",
    "complete_plain",
    "peek_queue_keys",
    "lock_leases",
    "lock_tasks",
    "end_runs",
    "update_tasks",
    "find_repeated_claims",
)
FILL = """
INSERT INTO tasks (tenant_id, task_id, phase, class_id, create_time, update_time, max_retries, kind, priority,
    creator_type, spec)
SELECT 'acme', gen_random_uuid(), 1, 1, now() + (n / 100) * interval '1 second', now(), 0, 1, 10, 1,
    convert_to(repeat('x', 60), 'UTF8')
FROM generate_series(1, %s) n
"""


@pytest.mark.parametrize("rows", [0, 150, 300, 500, 1000, 2000, 5000])
def test_rows_are_looked_up_by_their_keys_however_many_there_are(database_url: str, rows: int) -> None:
    with psycopg.connect(database_url, autocommit=True, **connect_arguments(PoolOptions())) as connection:
        connection.execute("ALTER TABLE tasks SET (autovacuum_enabled = false)")
        connection.execute(FILL, (rows,))
        for name in BY_KEY:
            explain = f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {numbered(statement(name))}"
            plan = "\n".join(row[0] for row in connection.execute(explain).fetchall())
            used = set(re.findall(r"using (tasks\w+)", plan))
            assert used <= {"tasks_pkey"}, f"{name} with {rows} rows:\n{plan}"
            assert "Seq Scan on tasks" not in plan
