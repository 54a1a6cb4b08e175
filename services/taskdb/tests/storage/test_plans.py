"""Plans: hot statements look rows up by their keys, on a young database too; queries are planned freely."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from taskyard_taskdb.storage.numbered import convert
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx, connect_arguments
from taskyard_taskdb.storage.read import listing
from taskyard_taskdb.storage.read.listing import Query
from taskyard_taskdb.storage.statements import statement

# The lookups by key of claims, reports, cancels and updates.
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
def test_rows_are_looked_up_by_key_at_every_table_size(database_url: str, rows: int) -> None:
    with psycopg.connect(
        database_url, autocommit=True, **connect_arguments(database_url, PoolOptions())
    ) as connection:
        connection.execute("ALTER TABLE tasks SET (autovacuum_enabled = false)")
        connection.execute(FILL, (rows,))
        for name in BY_KEY:
            explain = f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {convert(statement(name))[0].decode()}"
            plan = "\n".join(row[0] for row in connection.execute(explain).fetchall())
            used = set(re.findall(r"using (tasks\w+)", plan))
            assert used <= {"tasks_pkey"}, f"{name} with {rows} rows:\n{plan}"
            assert "Seq Scan on tasks" not in plan


@pytest.mark.parametrize("planned", [False, True])
def test_oldest_live_task_is_read_once_and_not_for_every_row(database_url: str, planned: bool) -> None:
    arguments = connect_arguments(database_url, PoolOptions(), planned=planned)
    with psycopg.connect(database_url, autocommit=True, **arguments) as connection:
        connection.execute(FILL, (5000,))
        connection.execute("ANALYZE tasks")
        for name in ("oldest_pending", "oldest_pending_of_all"):
            explain = f"EXPLAIN (COSTS OFF) {statement(name)}"
            rows = connection.execute(explain.encode(), {"tenant": "acme", "type": None}).fetchall()
            conditions = [line for (line,) in rows if "Cond:" in line or "Filter:" in line]
            # In parentheses it is a value that an outer node has computed.
            assert conditions and not [line for line in conditions if ">= oldest_live(" in line]


async def test_a_query_scans_a_table_where_that_is_cheaper(database_url: str) -> None:
    pool = Pool(database_url, PoolOptions(size=2, queries=1))
    await pool.open()
    async with pool.reading() as tx:
        await tx.execute(FILL, (5000,))
        await tx.execute("ANALYZE tasks", prepare=False)
    plans = {}
    for planned in (False, True):
        async with pool.transaction(planned=planned) as tx:
            explaining = Explaining(tx.connection)
            assert await listing.count(explaining, Query(None, None)) == 5000
            plans[planned] = explaining.plan
    await pool.close()
    assert "Seq Scan on tasks" in plans[True], plans[True]
    assert "Seq Scan" not in plans[False], plans[False]


class Explaining(Tx):
    """A transaction that notes the plan of the last query."""

    plan = ""

    async def fetch(self, sql: str, params: Any = None, *, prepare: bool = True) -> list[tuple[Any, ...]]:
        self.plan = "\n".join(row[0] for row in await super().fetch(f"EXPLAIN {sql}", params, prepare=False))
        return await super().fetch(sql, params, prepare=prepare)
