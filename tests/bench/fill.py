"""Deep databases: millions of rows as a long life leaves them, written by PostgreSQL itself."""

import psycopg

TASKS = """
INSERT INTO tasks (update_time, ready_time, end_time, phase, pending_reason, class_id, create_time, uid, max_retries, kind,
    priority, creator_type, tenant_id, task_id, spec)
SELECT t, t, CASE WHEN %(phase)s::int >= 10 THEN t END, %(phase)s, CASE WHEN %(phase)s = 1 THEN 1 ELSE 0 END, 2, t,
    gen_random_uuid(), 3, 1, 10, 4, 'default', %(prefix)s || lpad(n::text, 8, '0'), 'x'::bytea
FROM (SELECT n, now() - interval '1 day' + n * interval '1 ms' AS t FROM generate_series(%(first)s::int, %(last)s::int) n) made
"""
QUEUE = """
INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id)
SELECT class_id, ready_time, priority, tenant_id, task_id FROM tasks WHERE phase = 1 AND class_id = 2
"""
STEP = 500_000


def deepen(url: str, *, pending: int, finished: int) -> None:
    """Add finished tasks, and pending ones of a class that no runner matches."""
    with psycopg.connect(url, autocommit=True) as connection:
        for phase, prefix, count in ((10, "done-", finished), (1, "wait-", pending)):
            for first in range(0, count, STEP):
                last = min(first + STEP, count) - 1
                values = {"phase": phase, "prefix": prefix, "first": first, "last": last}
                connection.execute(TASKS, values)
                print(f"  filled {last + 1:,} {'finished' if phase == 10 else 'pending'}", flush=True)
        connection.execute(QUEUE)
        connection.execute("VACUUM ANALYZE tasks, queue")
