"""What PostgreSQL itself can do with the same rows: the limits that the services are compared with.

One connection writes what taskdb writes for tasks that are created, claimed, started and completed, in the same
way: creates and the changes of outcomes by COPY, the claim as one statement, the outcome kept in the task's row.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import psycopg

from taskyard.v1 import task_pb2
from taskyard_taskdb.rpc.ids import Uuid7, uuid_text
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import PoolOptions, connect_arguments

BATCH = 1000
# Warm-up batches that do not count, while catalogues and pages are cold.
WARM_UP = 2
RUNNER = "INSERT INTO runners (runner_id, key_id, registration) VALUES ('bench', 'k', '')"
TASKS = """
COPY tasks (create_time, update_time, ready_time, phase, pending_reason, class_id, max_retries, kind, priority,
    creator_type, tenant_id, creator_id, task_id, spec) FROM STDIN (FORMAT binary)
"""
QUEUE = "COPY queue (class_id, ready_time, priority, tenant_id, task_id) FROM STDIN (FORMAT binary)"
CREATIONS = """
COPY changes (time, version, event, actor_type, phase, pending_reason, tenant_id, actor_id, resource_id)
FROM STDIN (FORMAT binary)
"""
CLAIM = """
WITH c AS MATERIALIZED (SELECT ctid AS at, task_id FROM queue WHERE tenant_id = 'default' AND class_id = 1
        AND priority = 10 AND pinned_runner = '' ORDER BY ready_time, task_id LIMIT %s FOR UPDATE SKIP LOCKED),
q AS (DELETE FROM queue USING c WHERE queue.ctid = c.at),
l AS (INSERT INTO leases (generation, lease_id, version, session_epoch, schedule_time, expire_time, attempt, phase,
        overlap, on_runner_lost, plain, tenant_id, task_id, runner_id, claim_request_id)
    SELECT 1, 1, 2, 1, now(), now() + interval '15 s', 0, 2, 2, 1, true, 'default', task_id, 'bench', 'abcdefghijkl'
    FROM c),
g AS (INSERT INTO changes (time, version, generation, event, actor_type, phase, previous_phase, tenant_id, resource_id,
        actor_id, runner_id)
    SELECT now(), 2, 1, 2, 1, 2, 1, 'default', task_id, 'bench', 'bench' FROM c)
SELECT c.task_id, t.spec FROM c CROSS JOIN LATERAL (
    SELECT spec FROM tasks WHERE tasks.tenant_id = 'default' AND tasks.task_id = c.task_id OFFSET 0) t
"""
COMPLETE = """
WITH l AS (DELETE FROM leases USING unnest(%s::text[]) AS i (task_id)
    CROSS JOIN LATERAL (SELECT x.ctid AS at FROM leases x WHERE x.tenant_id = 'default' AND x.task_id = i.task_id
        OFFSET 0) x
    WHERE leases.ctid = x.at AND leases.lease_id = 1 AND leases.generation = 1
    RETURNING leases.task_id, leases.schedule_time)
UPDATE tasks SET phase = 10, pending_reason = 0, version = 4, generation = 1, attempt = 1, update_time = now(),
    schedule_time = l.schedule_time, start_time = now(), end_time = now(), exit_code = 0, last_runner_id = 'bench',
    run_lease_id = 1
FROM l CROSS JOIN LATERAL (SELECT x.ctid AS at FROM tasks x WHERE x.tenant_id = 'default' AND x.task_id = l.task_id
    OFFSET 0) x
WHERE tasks.ctid = x.at AND tasks.end_time IS NULL
"""
COUNT = """
INSERT INTO runner_counts AS c (completed_count, failed_count, runner_id) VALUES (%s, 0, 'bench')
ON CONFLICT (runner_id) DO UPDATE SET completed_count = c.completed_count + excluded.completed_count
"""
OUTCOMES = """
COPY changes (time, version, generation, attempt, exit_code, event, actor_type, phase, previous_phase, tenant_id,
    actor_id, runner_id, resource_id) FROM STDIN (FORMAT binary)
"""


class Lifecycle(NamedTuple):
    """Tasks per second of a whole life, and of its part after the create."""

    whole: float
    run: float


def spec() -> bytes:
    """The spec of a no-op task as taskdb stores it, roughly."""
    command = task_pb2.CommandExecution(program="true")
    return task_pb2.TaskSpec(
        execution=task_pb2.Execution(command=command), priority=10, max_steps=30
    ).SerializeToString()


def lifecycle_rate(url: str, count: int) -> Lifecycle:
    """Create, claim and complete from one connection, in batches: a transaction for each of the three."""
    stored, ids = spec(), Uuid7()
    creating = running = 0.0
    # With taskdb's settings, which keep plans right that are made for empty tables.
    settings = connect_arguments(url, PoolOptions())
    with psycopg.connect(url, autocommit=True, prepare_threshold=0, **settings) as connection:
        connection.execute(RUNNER)
        for number in range(-WARM_UP, count // BATCH):
            if number == 0:
                # A plan of an empty table may look a task up by its tenant alone.
                connection.execute("ANALYZE tasks, queue, leases")
                creating = running = 0.0
            start = time.perf_counter()
            _create(connection, [uuid_text(ids.draw()) for _ in range(BATCH)], stored)
            created = time.perf_counter()
            claimed = [row[0] for row in connection.execute(CLAIM, (BATCH,)).fetchall()]
            assert len(claimed) == BATCH, len(claimed)
            _complete(connection, claimed)
            creating += created - start
            running += time.perf_counter() - created
    return Lifecycle(count / (creating + running), count / running)


def copy_rate(url: str, count: int) -> float:
    """Tasks per second when the rows of a create (task, queue row, change) are only copied in."""
    stored, ids = spec(), Uuid7()
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(-WARM_UP, count // BATCH):
            if number == 0:
                start = time.perf_counter()
            _create(connection, [uuid_text(ids.draw()) for _ in range(BATCH)], stored)
        return count / (time.perf_counter() - start)


def _create(connection: psycopg.Connection, task_ids: list[str], stored: bytes) -> None:
    now, names = datetime.now(UTC), arrays.texts(task_ids).elements
    # A microsecond apart, as taskdb makes them.
    time = arrays.timestamp_series(now, BATCH)
    tenant, creator = _repeated(arrays.texts, "default"), _repeated(arrays.texts, "k")
    small = {value: _repeated(arrays.smallints, value) for value in (1, 4, 10)}
    class_id, three = _repeated(arrays.bigints, 1), _repeated(arrays.integers, 3)
    with connection.transaction():
        _copy(
            connection, TASKS,
            [time, time, time, small[1], small[1], class_id, three, small[1], small[10], small[4], tenant, creator,
             names, _repeated(arrays.byteas, stored)],
        )  # fmt: skip
        _copy(connection, QUEUE, [class_id, time, small[10], tenant, names])
        version = _repeated(arrays.integers, 1)
        _copy(
            connection, CREATIONS,
            [time, version, small[1], small[4], small[1], small[1], tenant, creator, names],
        )  # fmt: skip


def _complete(connection: psycopg.Connection, claimed: Sequence[str]) -> None:
    names = arrays.texts(sorted(claimed))
    now = _same(arrays.timestamps, datetime.now(UTC)) * 2
    one, bench = _same(arrays.integers, 1) * 2, _same(arrays.texts, "bench") * 2
    # A start and an end for each task, one behind the other.
    pairs = [
        _pairs(arrays.integers, 3, 4), one, one, _pairs(arrays.integers, None, 0), _pairs(arrays.smallints, 3, 8),
        _pairs(arrays.smallints, 2, 2), _pairs(arrays.smallints, 3, 10), _pairs(arrays.smallints, 2, 3),
    ]  # fmt: skip
    twice = [name for name in names.elements for _ in range(2)]
    with connection.transaction():
        connection.execute(COMPLETE, (names,))
        connection.execute(COUNT, (len(claimed),))
        _copy(connection, OUTCOMES, [now, *pairs, _same(arrays.texts, "default") * 2, bench, bench, twice])


def _copy(connection: psycopg.Connection, statement: str, columns: Sequence[arrays.Column]) -> None:
    with connection.cursor().copy(statement) as copy:
        copy.write(arrays.copy_data(columns))


def _repeated(encode: arrays.Encoder, value: object) -> arrays.Repeated:
    return arrays.Repeated(encode([value]).elements[0], BATCH)


def _same(encode: arrays.Encoder, value: object) -> list[bytes]:
    return encode([value]).elements * BATCH


def _pairs(encode: arrays.Encoder, first: object, second: object) -> list[bytes]:
    return encode([first, second]).elements * BATCH
