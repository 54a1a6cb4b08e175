"""What PostgreSQL itself can do with the same rows: the limits that the services are compared with."""

import time
from datetime import UTC, datetime
from uuid import UUID

import psycopg

from taskyard.v1 import task_pb2
from taskyard_taskdb.rpc.ids import Uuid7, uuid_text
from taskyard_taskdb.storage import arrays

BATCH = 1000
CREATE = """
WITH i AS (SELECT * FROM unnest(%s::text[], %s::uuid[], %s::bytea[]) AS i (task_id, uid, spec)),
t AS (INSERT INTO tasks (update_time, ready_time, phase, pending_reason, class_id, create_time, uid, max_retries, kind,
        priority, creator_type, tenant_id, task_id, spec)
    SELECT now(), now(), 1, 1, 1, now(), uid, 3, 1, 10, 4, 'default', task_id, spec FROM i),
q AS (INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id)
    SELECT 1, now(), 10, 'default', task_id FROM i)
INSERT INTO changes (time, version, event, actor_type, phase, pending_reason, tenant_id, resource_id)
SELECT now(), 1, 1, 4, 1, 1, 'default', task_id FROM i
"""
CLAIM = """
WITH c AS (SELECT ctid FROM queue WHERE tenant_id = 'default' AND class_id = 1 AND priority = 10 AND pinned_runner = ''
        ORDER BY ready_time, task_id LIMIT %s FOR UPDATE SKIP LOCKED),
q AS (DELETE FROM queue USING c WHERE queue.ctid = c.ctid RETURNING queue.task_id),
l AS (INSERT INTO leases (generation, lease_id, version, schedule_time, expire_time, attempt, phase, overlap,
        on_runner_lost, tenant_id, task_id, runner_id, claim_request_id)
    SELECT 1, 1, 2, now(), now() + interval '15 s', 1, 2, 2, 1, 'default', task_id, 'r', 'c' FROM q),
g AS (INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, tenant_id, resource_id)
    SELECT now(), 2, 2, 1, 2, 1, 'default', task_id FROM q)
SELECT q.task_id, t.spec FROM q JOIN tasks t ON t.tenant_id = 'default' AND t.task_id = q.task_id
"""
COMPLETE = """
WITH l AS (DELETE FROM leases USING unnest(%s::text[]) AS i (task_id)
    WHERE leases.tenant_id = 'default' AND leases.task_id = i.task_id AND leases.lease_id = 1
    RETURNING leases.task_id, leases.schedule_time),
r AS (INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, attempt, state, tenant_id, task_id,
        runner_id)
    SELECT 1, 1, schedule_time, now(), now(), 1, 3, 'default', task_id, 'r' FROM l),
t AS (UPDATE tasks SET phase = 10, pending_reason = 0, version = 4, generation = 1, attempt = 1, end_time = now(),
        update_time = now(), start_time = now() FROM l WHERE tasks.tenant_id = 'default' AND tasks.task_id = l.task_id)
INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, tenant_id, resource_id)
SELECT now(), 4, 8, 2, 10, 3, 'default', task_id FROM l
"""


def spec() -> bytes:
    """The spec of a no-op task as taskdb stores it, roughly."""
    command = task_pb2.CommandExecution(program="true")
    return task_pb2.TaskSpec(
        execution=task_pb2.Execution(command=command), priority=10, max_steps=30
    ).SerializeToString()


def lifecycle_rate(url: str, count: int) -> float:
    """Tasks per second through create, claim and complete from one connection, in batches."""
    stored, ids = spec(), Uuid7()
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("SET jit = off")
        start = time.perf_counter()
        for _ in range(count // BATCH):
            drawn = [ids.draw() for _ in range(BATCH)]
            uids = arrays.uuids([UUID(bytes=one) for one in drawn])
            rows = (arrays.texts([uuid_text(one) for one in drawn]), uids, arrays.byteas([stored] * BATCH))
            connection.execute(CREATE, rows)
            claimed = connection.execute(CLAIM, (BATCH,)).fetchall()
            connection.execute(COMPLETE, (arrays.texts([row[0] for row in claimed]),))
        return count / (time.perf_counter() - start)


def copy_rate(url: str, count: int) -> float:
    """Tasks per second when the rows of a create (task, queue row, change) are only copied in."""
    stored, now, ids = spec(), datetime.now(UTC), Uuid7()
    tables = (
        ("tasks (update_time, ready_time, phase, pending_reason, class_id, create_time, uid, max_retries, kind, priority,"
         " creator_type, tenant_id, task_id, spec)",
         ("timestamptz", "timestamptz", "int2", "int2", "int8", "timestamptz", "uuid", "int4", "int2", "int2", "int2",
          "text", "text", "bytea"),
         lambda i, u: (now, now, 1, 1, 1, now, u, 3, 1, 10, 4, "default", i, stored)),
        ("queue (class_id, ready_time, priority, tenant_id, task_id)", ("int8", "timestamptz", "int2", "text", "text"),
         lambda i, u: (1, now, 10, "default", i)),
        ("changes (time, version, event, actor_type, phase, pending_reason, tenant_id, resource_id)",
         ("timestamptz", "int8", "int2", "int2", "int2", "int2", "text", "text"),
         lambda i, u: (now, 1, 1, 4, 1, 1, "default", i)),
    )  # fmt: skip
    with psycopg.connect(url) as connection:
        start = time.perf_counter()
        for _ in range(count // BATCH):
            made = [ids.draw() for _ in range(BATCH)]
            for table, types, row in tables:
                with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                    copy.set_types(types)
                    for one in made:
                        copy.write_row(row(uuid_text(one), UUID(bytes=one)))
            connection.commit()
        return count / (time.perf_counter() - start)
