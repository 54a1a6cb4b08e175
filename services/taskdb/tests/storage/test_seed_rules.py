"""Rules of what is stored, tried by breaking them with SQL."""

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


@pytest.mark.seed("S1.19", "S1.21-25", "S1.63-64", "S2.129")
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


@pytest.mark.seed("S2.130-134")
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


TENANT = "INSERT INTO tenants (tenant_id, display_name, tier, {}) VALUES ('t', 'T', 1, {})"
RUNNER = "INSERT INTO runners (runner_id, key_id, registration) VALUES ({})"
SESSION = (
    "INSERT INTO sessions (epoch, open_time, heartbeat_time, expire_time, session_id, instance_id, "
    "runner_id, scheduler_id) VALUES ({}, now(), {}, now(), gen_random_uuid(), gen_random_uuid(), {}, 's')"
)
LEADER = "INSERT INTO coordinator_state (key, value, expires_at, updated_at) VALUES ({})"
REQUEST = (
    "INSERT INTO idempotency_keys (method, tenant_id, request_id, task_id, body_hash, create_time) "
    "VALUES (1, 'default', {}, '', now())"
)
LONG = "repeat('x', 65)"

# Each rule with a statement that keeps it and those that break it.
RULES = {
    "limits of a tenant": (
        TENANT.format("max_queue_depth", 0),
        TENANT.format("max_concurrent_tasks", -1),
        TENANT.format("max_queue_depth", -1),
        TENANT.format("rate_limit_per_sec", -1),
        TENANT.format("rate_burst", -1),
        TENANT.format("weight", 0),
    ),
    "runners": (
        RUNNER.format("'r', 'k', ''"),
        RUNNER.format("NULL, 'k', ''"),
        RUNNER.format("'taken', 'k', ''"),
        RUNNER.format("'r', NULL, ''"),
        RUNNER.format("'r', 'k', NULL"),
        "UPDATE runners SET labels = NULL",
        "UPDATE runners SET register_time = NULL",
        "UPDATE runners SET update_time = NULL",
    ),
    "sessions of runners": (
        SESSION.format(1, "now()", "'taken'"),
        SESSION.format(0, "now()", "'taken'"),
        SESSION.format(1, "NULL", "'taken'"),
        SESSION.format(1, "now()", "'nobody'"),
        SESSION.format(1, "now()", "NULL"),
    ),
    "state of the coordinator": (
        LEADER.format("'other', '', now(), now()"),
        LEADER.format("'leader_lock', '', now(), now()"),
        LEADER.format(f"{LONG}, '', now(), now()"),
        LEADER.format("NULL, '', now(), now()"),
        LEADER.format("'other', NULL, now(), now()"),
        LEADER.format("'other', '', NULL, now()"),
        LEADER.format("'other', '', now(), NULL"),
    ),
    "request ids": (
        REQUEST.format("'r', 't'"),
        REQUEST.format("'taken', 't'"),
        REQUEST.format(f"{LONG}, 't'"),
        REQUEST.format("NULL, 't'"),
        REQUEST.format("'r', NULL"),
    ),
}
BROKEN = [
    pytest.param(broken, id=f"{rule} {number}")
    for rule, (_, *statements) in RULES.items()
    for number, broken in enumerate(statements)
]


@pytest.fixture
def taken(connection: psycopg.Connection) -> psycopg.Connection:
    """A connection to a database where names are taken."""
    connection.execute(RUNNER.format("'taken', 'k', ''").encode())
    connection.execute(REQUEST.format("'taken', 't'").encode())
    return connection


@pytest.mark.seed("S0.29", "S2.58", "S2.103", "S2.148")
@pytest.mark.parametrize("broken", BROKEN)
def test_database_refuses_rows_that_break_the_rules(taken: psycopg.Connection, broken: str) -> None:
    with pytest.raises(psycopg.IntegrityError):
        taken.execute(broken.encode())


def test_database_accepts_rows_that_keep_the_rules(taken: psycopg.Connection) -> None:
    for kept, *_ in RULES.values():
        assert taken.execute(kept.encode()).rowcount == 1, kept
