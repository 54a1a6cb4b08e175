"""Rules of stored tasks, tried by breaking them with SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

INSERT = (
    "INSERT INTO tasks (tenant_id, task_id, update_time, create_time, phase, class_id, uid, max_retries, "
    "kind, priority, creator_type, spec, end_time, error, retry_count, entity_type, entity_id) VALUES "
    "(%(tenant_id)s, %(task_id)s, now(), now(), %(phase)s, 1, gen_random_uuid(), %(max_retries)s, %(kind)s, "
    "%(priority)s, 4, ''::bytea, %(end_time)s, %(error)s, %(retry_count)s, %(entity_type)s, %(entity_id)s)"
)
GOOD: dict[str, Any] = {
    "tenant_id": "default",
    "task_id": "t1",
    "phase": 1,
    "max_retries": 3,
    "kind": 1,
    "priority": 10,
    "end_time": None,
    "error": None,
    "retry_count": 0,
    "entity_type": None,
    "entity_id": None,
}


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url) as made:
        yield made


@pytest.mark.seed("S0.4", "S0.20-21", "S0.23", "S1.8-13", "S1.19", "S1.21-25", "S1.63-64", "S2.129")
@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant_id": None},
        {"task_id": None},
        {"task_id": "taken"},
        {"phase": None},
        {"phase": 0},
        {"phase": 9},
        {"phase": 99},
        {"phase": 10},
        {"phase": 1, "end_time": "2026-01-01T00:00:00Z"},
        {"phase": 11, "end_time": "2026-01-01T00:00:00Z"},
        {"max_retries": -1},
        {"retry_count": -1},
        {"retry_count": 4},
        {"priority": -1},
        {"priority": 1001},
        {"kind": 0},
        {"entity_type": "planner"},
    ],
)
def test_database_refuses_tasks_that_break_the_rules(
    connection: psycopg.Connection, wrong: dict[str, Any]
) -> None:
    connection.execute(INSERT, GOOD | {"task_id": "taken"})
    with pytest.raises(psycopg.IntegrityError):
        connection.execute(INSERT, GOOD | wrong)


@pytest.mark.seed("S0.24", "S2.130-134")
@pytest.mark.parametrize(
    "statement",
    [
        # A leased task has a runner, a running one a start.
        "INSERT INTO leases (generation, lease_id, version, schedule_time, attempt, phase, overlap, "
        "on_runner_lost, tenant_id, task_id, runner_id, claim_request_id) "
        "VALUES (1, 1, 1, now(), 1, 2, 1, 1, 'default', 't', '', 'c')",
        "INSERT INTO leases (generation, lease_id, version, schedule_time, attempt, phase, overlap, "
        "on_runner_lost, tenant_id, task_id, runner_id, claim_request_id) "
        "VALUES (1, 1, 1, now(), 1, 3, 1, 1, 'default', 't', 'r', 'c')",
        *(
            "INSERT INTO checkpoints (sequence, generation, size_bytes, progress_percent, tenant_id, "
            f"task_id, sha256, data) VALUES ({values})"
            for values in (
                "0, 1, 1, 0, 'default', 't', sha256(''), 'x'",
                "1, 1, 0, 0, 'default', 't', sha256(''), ''",
                "1, 1, 10485761, 0, 'default', 't', sha256(''), 'x'",
                "1, 1, 1, 101, 'default', 't', sha256(''), 'x'",
                "1, 1, 1, -1, 'default', 't', sha256(''), 'x'",
                "1, 1, 1, 0, 'default', NULL, sha256(''), 'x'",
            )
        ),
    ],
)
def test_database_refuses_leases_and_checkpoints_that_break_the_rules(
    connection: psycopg.Connection, statement: str
) -> None:
    with pytest.raises(psycopg.IntegrityError):
        connection.execute(statement)
