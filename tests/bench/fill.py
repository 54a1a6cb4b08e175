"""Deep databases: millions of rows as a long life leaves them, written by PostgreSQL itself."""

import time
from datetime import timedelta

import psycopg

from taskyard.v1 import lease_service_pb2, runner_pb2
from taskyard_taskdb.domain.placement_class import class_id
from tests.bench.raw import spec

STEP = 500_000
# Ids as taskdb makes them, in the order of their creation and before those of tasks to come.
MADE = """
FROM (
    SELECT '0180' || lpad(to_hex(n >> 16), 4, '0') || '-' || lpad(to_hex(n & 65535), 4, '0')
            || '-7000-8000-000000000000' AS task_id,
        now() - %(age)s::interval + n * %(apart)s::interval AS t
    FROM generate_series(%(first)s::int, %(last)s::int) n
) made
"""
# As complete_plain leaves them.
FINISHED = f"""
INSERT INTO tasks (version, generation, update_time, ready_time, schedule_time, start_time, end_time, run_lease_id, attempt,
    exit_code, phase, last_runner_id, class_id, create_time, max_retries, kind, priority, creator_type, tenant_id,
    task_id, spec)
SELECT 4, 1, t, t, t, t, t, 1, 1, 0, 10, 'bench', %(class)s, t, 3, 1, 10, 4, 'default', task_id, %(spec)s
{MADE}
"""
PENDING = f"""
INSERT INTO tasks (update_time, ready_time, phase, pending_reason, class_id, create_time, max_retries, kind, priority,
    creator_type, tenant_id, task_id, spec)
SELECT t, t, 1, 1, %(class)s, t, 3, 1, 10, 4, 'default', task_id, %(spec)s
{MADE}
"""
QUEUE = f"""
INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id)
SELECT %(class)s, t, 10, 'default', task_id
{MADE}
"""


def deepen(
    url: str,
    *,
    pending: int,
    finished: int,
    age: timedelta = timedelta(days=1),
    apart: timedelta = timedelta(microseconds=10),
) -> int:
    """Add finished tasks, and pending ones of a class that no runner matches; returns that class.

    The first was created `age` ago, each other one `apart` from its predecessor.
    """
    definition = _unmatched()
    values = {"class": class_id(definition), "spec": spec(), "age": age, "apart": apart}
    start = time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        # What is lost in a crash of the server is lost with the whole benchmark.
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "INSERT INTO placement_classes (tenant_id, class_id, definition) VALUES ('default', %s, %s)",
            (values["class"], definition),
        )
        for first in range(0, finished + pending, STEP):
            steps = [
                (FINISHED, first, min(first + STEP, finished)),
                (PENDING, max(first, finished), first + STEP),
            ]
            for statement, begin, end in steps:
                bounds = {"first": begin, "last": min(end, finished + pending) - 1}
                if bounds["first"] > bounds["last"]:
                    continue
                # One transaction and so one now(): a queue row has the time of its task.
                with connection.transaction():
                    connection.execute(statement, {**values, **bounds})
                    if statement is PENDING:
                        connection.execute(QUEUE, {**values, **bounds})
                took = time.monotonic() - start
                print(f"  filled {bounds['last'] + 1:,} tasks in {took:.0f} s", flush=True)
        connection.execute("VACUUM (ANALYZE) tasks, queue")
    print(f"  vacuumed, {time.monotonic() - start:.0f} s in all", flush=True)
    return class_id(definition)


def _unmatched() -> bytes:
    made = lease_service_pb2.PlacementClass(kind=runner_pb2.EXECUTION_KIND_COMMAND)
    made.placement.required.selector.match_labels["zone"] = "nowhere"
    return made.SerializeToString(deterministic=True)
