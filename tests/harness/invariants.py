"""Invariants of a taskdb database at any moment and after any kill, as queries of the tables.

Each rule is a sentence and a query for the rows that break it. They hold between transactions, so a test may
ask while services run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from tests.harness.logged_changes import LOGGED


@dataclass(frozen=True)
class Rule:
    """A sentence, and the query for what breaks it; the first two columns name the task."""

    sentence: str
    breaches: str


# A task in effect: while it is leased, the lease row has its phase, version, generation and attempt. Phases
# are 1 PENDING, 2 SCHEDULED, 3 RUNNING, 4 PAUSED, 5 REDISTRIBUTING, from 10 on ended; kind 6 is external.
EFFECTIVE = """
CREATE TEMPORARY VIEW effective AS
SELECT t.tenant_id, t.task_id, t.kind, t.slot, t.end_time, t.retry_count, t.checkpoint_sequence,
    t.class_id, t.priority, t.pinned_runner, t.ready_time,
    coalesce(l.phase, t.phase) AS phase, coalesce(l.version, t.version) AS version,
    coalesce(l.generation, t.generation) AS generation, coalesce(l.attempt, t.attempt) AS attempt,
    CASE WHEN l.phase IS NULL THEN t.pending_reason ELSE 0 END AS reason,
    l.task_id IS NOT NULL AS leased, l.start_time IS NOT NULL AS started,
    coalesce(l.requested_action, 0) <> 0 AS asked,
    EXISTS (SELECT FROM queue q WHERE (q.tenant_id, q.task_id) = (t.tenant_id, t.task_id)) AS queued,
    EXISTS (SELECT FROM timers d
        WHERE (d.tenant_id, d.task_id, d.kind) = (t.tenant_id, t.task_id, 1)) AS timed
FROM tasks t LEFT JOIN leases l USING (tenant_id, task_id);
-- Rejected reports (23) change nothing.
CREATE TEMPORARY VIEW logged AS SELECT * FROM @LOGGED WHERE event <> 23;
CREATE TEMPORARY VIEW steps AS
SELECT c.*, lag(c.phase) OVER task AS phase_before, lag(c.version) OVER task AS version_before,
    lag(c.generation) OVER task AS generation_before, lag(c.retry_count) OVER task AS retry_count_before,
    lag(c.attempt) OVER task AS attempt_before
FROM logged c JOIN tasks t ON (t.tenant_id, t.task_id) = (c.tenant_id, c.resource_id)
WHERE c.resource_kind = 1 AND c.event <> 23 AND NOT EXISTS (SELECT FROM logged d
    -- An id that was given to a second task after the first was deleted.
    WHERE (d.tenant_id, d.resource_id, d.resource_kind, d.event) = (c.tenant_id, c.resource_id, 1, 21)
        AND d.id >= c.id)
WINDOW task AS (PARTITION BY c.tenant_id, c.resource_id ORDER BY c.id);
CREATE TEMPORARY VIEW uncharged AS
SELECT s.* FROM steps s WHERE s.event = 3 AND s.attempt = s.attempt_before
-- A run that ended to wait for children gives its attempt back.
UNION ALL SELECT s.* FROM steps s WHERE s.attempt < s.attempt_before
"""

# Events of the log: 2 scheduled, 3 started, 6 paused, 13 cancel requested, 18 retried, 19 retry scheduled,
# 20 updated, 21 deleted. A rejected report, 23, is an event beside the task that changes nothing of it.
RULES = (
    Rule(
        "a live task waits in exactly one place: queue, lease, timer, slot, prerequisites, limits or pause",
        """SELECT tenant_id, task_id, phase, reason, queued, leased, timed FROM effective
        WHERE phase < 10 AND kind <> 6 AND 1 <> queued::int + timed::int
            + (leased AND (phase <> 5 OR asked))::int + (phase = 1 AND reason IN (4, 6, 7))::int
            + (phase = 4)::int""",
    ),
    Rule(
        "the place in which a task waits is the one of its phase",
        """SELECT tenant_id, task_id, phase, reason, queued, leased, timed FROM effective
        WHERE kind <> 6 AND (queued <> (phase = 1 AND reason = 1 OR phase = 5 AND NOT asked)
            OR timed <> (phase = 1 AND reason IN (2, 3))
            OR leased AND phase NOT IN (2, 3, 5) OR NOT leased AND phase IN (2, 3))""",
    ),
    Rule(
        "a queue row has the key of its task and knows of a lease beside it",
        """SELECT q.tenant_id, q.task_id, q.ready_time, e.ready_time FROM queue q
        LEFT JOIN effective e USING (tenant_id, task_id)
        WHERE (q.class_id, q.priority, q.pinned_runner, q.ready_time, q.has_lease)
            IS DISTINCT FROM (e.class_id, e.priority, e.pinned_runner, e.ready_time, e.leased)""",
    ),
    Rule(
        "what has ended, or does not exist, has no queue row, lease or timer and heads no slot",
        """SELECT r.tenant_id, r.task_id, r.what FROM (
            SELECT tenant_id, task_id, 'queue' FROM queue UNION ALL
            SELECT tenant_id, task_id, 'lease' FROM leases UNION ALL
            SELECT tenant_id, task_id, 'timer' FROM timers UNION ALL
            SELECT tenant_id, head_task_id, 'slot' FROM slots WHERE head_task_id IS NOT NULL
        ) AS r (tenant_id, task_id, what) LEFT JOIN tasks t USING (tenant_id, task_id)
        WHERE t.task_id IS NULL OR t.end_time IS NOT NULL""",
    ),
    Rule(
        "a claimable or claimed task of a slot is its head, and a waiter waits for a head",
        """SELECT e.tenant_id, e.task_id, e.phase, e.reason, s.head_task_id FROM effective e
        LEFT JOIN slots s USING (tenant_id, slot)
        WHERE e.slot IS NOT NULL AND e.kind <> 6 AND (
            (queued OR leased OR phase = 5) AND s.head_task_id IS DISTINCT FROM e.task_id
            OR phase = 1 AND reason = 4 AND (s.head_task_id IS NULL OR s.head_task_id = e.task_id))""",
    ),
    Rule(
        "the head of a slot is claimable or claimed",
        """SELECT e.tenant_id, e.task_id, e.phase, e.reason FROM slots s
        JOIN effective e ON (e.tenant_id, e.task_id) = (s.tenant_id, s.head_task_id)
        WHERE e.slot IS DISTINCT FROM s.slot OR NOT (queued OR leased OR phase = 5)""",
    ),
    Rule(
        "the version of a task is the number of its changes",
        """SELECT e.tenant_id, e.task_id, e.version, count(s.id) FROM effective e
        LEFT JOIN steps s ON (s.tenant_id, s.resource_id) = (e.tenant_id, e.task_id)
        GROUP BY e.tenant_id, e.task_id, e.version HAVING e.version <> count(s.id)""",
    ),
    Rule(
        "the changes of a task are in the order of its versions, each beginning where the former ended",
        """SELECT tenant_id, resource_id, id, version, version_before, previous_phase, phase_before FROM steps
        WHERE version <> coalesce(version_before, 0) + 1 OR previous_phase <> phase_before
            OR generation < generation_before""",
    ),
    Rule(
        "the last change of a task says what the task is",
        """SELECT e.tenant_id, e.task_id, e.phase, s.phase, e.generation, s.generation FROM effective e
        JOIN steps s ON (s.tenant_id, s.resource_id, s.version) = (e.tenant_id, e.task_id, e.version)
        WHERE (s.phase, s.generation, s.attempt, s.retry_count)
            IS DISTINCT FROM (e.phase, e.generation, e.attempt, e.retry_count)""",
    ),
    Rule(
        "a task ends once: nothing but a retry or an edit follows its end",
        """SELECT tenant_id, resource_id, id, event, phase FROM steps
        WHERE phase_before >= 10 AND event <> 18 AND (event <> 20 OR phase <> phase_before)""",
    ),
    Rule(
        "every claim is one run or the current lease",
        """SELECT e.tenant_id, e.task_id, e.generation, e.leased,
            (SELECT count(*) FROM ended_runs r
                WHERE (r.tenant_id, r.task_id) = (e.tenant_id, e.task_id)) AS runs
        FROM effective e WHERE kind <> 6 AND NOT (
            e.generation = (SELECT count(*) FROM steps s
                WHERE (s.tenant_id, s.resource_id, s.event) = (e.tenant_id, e.task_id, 2))
            AND e.generation = e.leased::int + (SELECT count(*) FROM ended_runs r
                WHERE (r.tenant_id, r.task_id) = (e.tenant_id, e.task_id)
                    AND r.generation <= e.generation))""",
    ),
    Rule(
        "an attempt is charged for a start and for nothing else, and has one run",
        """SELECT e.tenant_id, e.task_id, e.attempt, started FROM effective e WHERE kind <> 6 AND NOT (
            e.attempt = (SELECT count(*) FROM steps s
                WHERE (s.tenant_id, s.resource_id, s.event) = (e.tenant_id, e.task_id, 3)
                    AND s.attempt > s.attempt_before)
                - (SELECT count(*) FROM steps s WHERE (s.tenant_id, s.resource_id) = (e.tenant_id, e.task_id)
                    AND s.attempt < s.attempt_before)
            AND e.attempt = (started AND NOT EXISTS (SELECT FROM uncharged u
                WHERE (u.tenant_id, u.resource_id, u.generation)
                    = (e.tenant_id, e.task_id, e.generation)))::int
                + (SELECT count(*) FROM ended_runs r
                WHERE (r.tenant_id, r.task_id) = (e.tenant_id, e.task_id) AND r.start_time IS NOT NULL
                    AND NOT EXISTS (SELECT FROM uncharged u WHERE (u.tenant_id, u.resource_id, u.generation)
                        = (r.tenant_id, r.task_id, r.generation))))""",
    ),
    Rule(
        "a run that starts after its cancel charges no attempt, and no other run does so",
        """SELECT s.tenant_id, s.resource_id, s.generation FROM steps s
        WHERE s.event = 3 AND (s.attempt = s.attempt_before) <> coalesce((
            SELECT c.event = 13 FROM steps c WHERE (c.tenant_id, c.resource_id) = (s.tenant_id, s.resource_id)
                AND c.event IN (13, 18) AND c.id < s.id ORDER BY c.id DESC LIMIT 1), false)""",
    ),
    Rule(
        "a retry is charged one at a time, by a run that failed",
        """SELECT tenant_id, resource_id, id, event, retry_count, retry_count_before FROM steps
        WHERE retry_count > retry_count_before
            AND (event NOT IN (6, 19) OR retry_count > retry_count_before + 1)""",
    ),
    Rule(
        "a stored checkpoint is whole, and the task names the newest",
        """SELECT c.tenant_id, c.task_id, c.sequence FROM checkpoints c
        WHERE sha256(data) <> c.sha256 OR octet_length(data) <> size_bytes
        UNION ALL
        SELECT t.tenant_id, t.task_id, t.checkpoint_sequence FROM tasks t
        WHERE checkpoint_sequence <> coalesce((SELECT max(sequence) FROM checkpoints c
            WHERE (c.tenant_id, c.task_id) = (t.tenant_id, t.task_id)), 0)""",
    ),
    Rule(
        "a request id leads to a task",
        """SELECT k.tenant_id, k.task_id, k.request_id FROM idempotency_keys k
        WHERE method IN (1, 2) AND NOT EXISTS (SELECT FROM changes c
            WHERE (c.tenant_id, c.resource_id, c.resource_kind) = (k.tenant_id, k.task_id, 1))""",
    ),
)  # fmt: skip


def breaches(connection: psycopg.Connection) -> Iterator[str]:
    """One line for each rule that does not hold, with the first rows that break it."""
    with connection.transaction(force_rollback=True):
        connection.execute(EFFECTIVE.replace("@LOGGED", LOGGED))
        for rule in RULES:
            if found := connection.execute(f"{rule.breaches} LIMIT 5").fetchall():
                yield f"{rule.sentence}; not so: {found}"


def assert_invariants(url: str) -> None:
    """Fails with every rule that does not hold in this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        # One snapshot for all rules: services may write meanwhile.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        broken = list(breaches(connection))
    assert not broken, "\n".join(broken)
