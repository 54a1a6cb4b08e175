"""Questions of the replaced systems to tables with thousands of rows: how much of them is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import psycopg
import pytest

from taskyard_taskdb.storage.statements import statement

# A life of some months in small: 20,000 ended tasks, a few live ones of every sort, and what belongs to them.
FILL = """
INSERT INTO tenants (tenant_id, display_name, tier)
SELECT 'tenant-' || n, 'T', CASE WHEN n % 500 = 0 THEN 3 ELSE 1 END FROM generate_series(1, 5000) n;

INSERT INTO task_types (tenant_id, task_type, definition)
SELECT 'tenant-' || 1 + n / 10, 'type-' || n, '' FROM generate_series(0, 9999) n;

INSERT INTO tasks (tenant_id, task_id, create_time, update_time, end_time, phase, error, class_id,
    max_retries, kind, priority, creator_type, spec, task_type, entity_type, entity_id, slot, labels)
SELECT 'd', 'task-' || lpad(n::text, 6, '0'), t, t, t, CASE WHEN n % 100 = 0 THEN 11 ELSE 10 END,
    CASE WHEN n % 100 = 0 THEN 'x'::bytea END, 1, 3, 1, 10, 4, repeat('x', 200)::bytea, 'type-' || n % 200,
    'planner', 'entity-' || n / 4, CASE WHEN n % 10 = 0 THEN 'slot-' || n % 500 END,
    CASE WHEN n % 10 = 0 THEN jsonb_build_object('run', n::text) END
FROM (SELECT n, now() - (20000 - n) * interval '10 minutes' AS t FROM generate_series(1, 20000) n) made;

INSERT INTO tasks (tenant_id, task_id, create_time, update_time, ready_time, phase, pending_reason, class_id,
    max_retries, kind, priority, creator_type, spec, slot)
SELECT 'd', 'live-' || lpad(n::text, 6, '0'), now(), now(), now(), CASE WHEN n % 20 = 0 THEN 4 ELSE 1 END, 1,
    n % 5, 3, 1, 10, 4, repeat('x', 200)::bytea, CASE WHEN n % 4 = 0 THEN 'slot-' || n % 40 END
FROM generate_series(1, 2000) n;

INSERT INTO queue (tenant_id, task_id, class_id, priority, ready_time)
SELECT tenant_id, task_id, class_id, priority, ready_time FROM tasks WHERE phase = 1 AND slot IS NULL;

INSERT INTO queue (tenant_id, task_id, class_id, priority, ready_time)
SELECT 'tenant-' || n % 3, 'waiting-' || lpad(n::text, 6, '0'), n % 4, n * 7 % 10,
    now() - (n * 7919 % 6000) * interval '1 second'
FROM generate_series(1, 6000) n;

INSERT INTO runners (runner_id, key_id, backend_type, registration)
SELECT 'runner-' || n, 'k', CASE WHEN n % 500 = 0 THEN 'kind' ELSE 'vm' END, ''
FROM generate_series(1, 5000) n;

INSERT INTO logs (tenant_id, task_id, time, last_time, generation, first_sequence, last_sequence, max_level,
    entries)
SELECT tenant_id, task_id, create_time, create_time, 1, 1, 9, 2, repeat('x', 200)::bytea FROM tasks;

INSERT INTO changes (time, event, actor_type, tenant_id, resource_id, version)
SELECT create_time, event, 3, tenant_id, task_id, event FROM tasks, generate_series(1, 3) event
ORDER BY create_time, task_id, event;

INSERT INTO idempotency_keys (create_time, method, tenant_id, request_id, task_id, body_hash)
SELECT now() - n * interval '10 seconds', 1, 'd', 'request-' || n, 'task', ''
FROM generate_series(1, 10000) n;

ANALYZE tenants, task_types, tasks, queue, runners, logs, changes, idempotency_keys;
"""
SUMMARISE = """
SELECT brin_summarize_new_values(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'brin' AND c.relkind = 'i'
"""

# The queries of each replaced system, as filters of ours.
QUESTIONS = {
    "a runner by its id, S0.47": "SELECT * FROM runners WHERE runner_id = 'runner-7'",
    "runners by backend, S0.48": """
        SELECT runner_id FROM runners WHERE backend_type = 'kind' AND delete_time IS NULL""",
    "a task with its logs, S0.89": """
        SELECT t.task_id, l.entries FROM tasks t LEFT JOIN logs l USING (tenant_id, task_id)
        WHERE t.tenant_id = 'd' AND t.task_id = 'task-000042' ORDER BY l.generation, l.first_sequence""",
    "tasks of a day, S0.90": """
        SELECT count(*) FROM tasks WHERE tenant_id = 'd' AND create_time > now() - interval '1 day'""",
    "tasks by a path into JSON, S0.95": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND labels @> '{"run": "70"}'""",
    "held back by creation, S1.14": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND held_time IS NOT NULL
        ORDER BY held_time LIMIT 100""",
    "tasks of an entity, S1.15": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND entity_type = 'planner'
        AND entity_id = 'entity-9'""",
    "tasks of a function, S1.16": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND task_type = 'type-9' AND task_type <> ''""",
    "failed ones by time, S1.17": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND failed_phase = 11
        AND create_time < now() - interval '7 days' ORDER BY create_time LIMIT 100""",
    "ended before a time, S1.17": """
        SELECT task_id FROM tasks WHERE end_time < now() - interval '130 days'""",
    "the oldest of a busy entity, S1.44": """
        SELECT task_id FROM tasks WHERE tenant_id = 'd' AND live_slot = 'slot-8'
        ORDER BY priority DESC, create_time LIMIT 1""",
    "customers of a tier, S2.11": "SELECT tenant_id FROM tenants WHERE tier = 3",
    "configurations of a customer, S2.27": """
        SELECT task_type FROM task_types WHERE tenant_id = 'tenant-70'""",
    "configurations by type, S2.28": "SELECT tenant_id FROM task_types WHERE task_type = 'type-70'",
    "history of a workload, S2.137": """
        SELECT event FROM changes WHERE tenant_id = 'd' AND resource_id = 'task-000042'
        ORDER BY id DESC LIMIT 50""",
    "request ids before a time, S2.149": """
        SELECT FROM idempotency_keys WHERE create_time < now() - interval '1 day'""",
}
# How much less than its table a question reads, in blocks of tables and indexes.
FRACTION = 2


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """A database with some months in it, and PostgreSQL's own settings of the planner."""
    with psycopg.connect(database_url, autocommit=True) as made:
        made.execute(FILL.encode())
        made.execute(SUMMARISE)
        yield made


def blocks_read(connection: psycopg.Connection, sql: str, params: dict[str, object] | None = None) -> int:
    """The blocks of tables and indexes that a statement reads; what it writes is undone."""
    written = psycopg.ClientCursor(connection).mogrify(sql, params) if params else sql
    explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {written}"
    with connection.transaction(force_rollback=True):
        row = connection.execute(explain.encode()).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def blocks_of(connection: psycopg.Connection, table: str) -> int:
    """The blocks that hold the rows of a table, with its partitions."""
    row = connection.execute(
        "SELECT (pg_relation_size(t) + coalesce(sum(pg_relation_size(relid)), 0)) / "
        "current_setting('block_size')::int "
        "FROM to_regclass(%s) t LEFT JOIN pg_partition_tree(t) p ON true GROUP BY t",
        (table,),
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.seed("S0.47", "S1.14-17", "S2.11", "S2.27-28", "S2.149")
def test_every_query_of_the_replaced_systems_reads_a_fraction_of_its_table(
    connection: psycopg.Connection,
) -> None:
    wrong = {}
    for question, query in QUESTIONS.items():
        table = query.split(" FROM ")[1].split()[0]
        read, whole = blocks_read(connection, query), blocks_of(connection, table)
        if read * FRACTION > whole:
            wrong[question] = f"{read} blocks read, {table} has {whole}"
    assert not wrong


@pytest.mark.seed("S0.87", "S1.59", "S2.50", "S2.135")
def test_queued_tasks_are_claimed_by_priority_and_age_from_the_heads_of_their_lanes(
    connection: psycopg.Connection,
) -> None:
    """Three tenants with twenty lanes each, as the statement of claims reads them."""
    tenants = [f"tenant-{n}" for n in range(3)]
    lanes = connection.execute(
        "SELECT DISTINCT tenant_id, class_id, priority FROM queue WHERE tenant_id = ANY (%s)", (tenants,)
    ).fetchall()
    assert len(lanes) == 3 * 20
    params: dict[str, object] = {
        "tenant_ids": [lane[0] for lane in lanes],
        "class_ids": [lane[1] for lane in lanes],
        "priorities": [lane[2] for lane in lanes],
        "pinned_runners": [""] * len(lanes),
        "after_times": [datetime(2000, 1, 1, tzinfo=UTC)] * len(lanes),
        "after_ids": [""] * len(lanes),
        # Priority alone decides: an offset that no age makes up for.
        "offsets": [timedelta(days=365 * lane[2]) for lane in lanes],
        "bundles": [tenants.index(lane[0]) for lane in lanes],
        "counts": [100] * len(lanes),
        "pages": [100] * len(lanes),
    }
    # The heads of sixty lanes, of a hundred tasks each: a few blocks for each, however long the lanes are.
    heads = params | {"counts": [1] * len(lanes), "pages": [1] * len(lanes)}
    assert blocks_read(connection, statement("claim_lanes"), heads) < 10 * len(lanes)
    expected = {
        tenant: connection.execute(
            "SELECT task_id FROM queue WHERE tenant_id = %s ORDER BY priority DESC, ready_time LIMIT 100",
            (tenant,),
        ).fetchall()
        for tenant in tenants
    }
    rows = connection.execute(statement("claim_lanes"), params).fetchall()
    taken = sorted((row[:3] for row in rows if row[2] is not None), key=itemgetter(1))
    for tenant in tenants:
        assert [(task_id,) for n, _, task_id in taken if lanes[n - 1][0] == tenant] == expected[tenant]
    one = {"tenant_id": "tenant-1", "class_id": 1, "priority": 7, "pinned_runner": "", "at_most": 1}
    first = one | {"after_time": datetime(2000, 1, 1, tzinfo=UTC)}
    assert blocks_read(connection, statement("claim_lane"), first) < 20 < blocks_of(connection, "queue")


@pytest.mark.seed("S0.96", "S1.14", "S2.135")
def test_live_tasks_are_found_without_reading_past_ended_ones(connection: psycopg.Connection) -> None:
    # They are queued, leased, or in a partial index of those that wait for something else.
    query = statement("live_tasks").replace("%(tenant)s", "'d'").replace("%(limit)s", "2001")
    assert blocks_read(connection, query) * 5 < blocks_of(connection, "tasks")


def test_times_updated_by_heartbeats_are_not_indexed(connection: psycopg.Connection) -> None:
    """The deviation: health and expiry are read from tables of the live, which heartbeats update in place."""
    rows = connection.execute(
        "SELECT DISTINCT c.relname::text, a.attname::text "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) "
        "WHERE c.relname IN ('sessions', 'leases')"
    ).fetchall()
    assert set(rows) == {
        ("sessions", "runner_id"),
        ("leases", "tenant_id"),
        ("leases", "task_id"),
        ("leases", "runner_id"),
        ("leases", "action_deadline"),
    }
