"""Leases and runs: who holds a task, and what became of each claim."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from taskyard_taskdb.storage.schema.base import at_the_end, index, instant, key, optional, required, table

leases = table(
    "leases",
    "One row per claimed task: the current run. It stays after expiry until the next claim moves it to runs.",
    required("lease_id", BigInteger),
    required("session_epoch", BigInteger, default="0"),
    required("schedule_time", instant),
    optional("start_time", instant),
    optional("sign_time", instant),
    optional(
        "progress_time",
        instant,
        doc="observe_time of the stored progress: an older report does not overwrite a newer one.",
    ),
    optional(
        "expire_time",
        instant,
        doc="Own expiry of a first lease, a pull worker's or a superseded session's lease; null "
        "follows the session.",
    ),
    optional(
        "deadline_time",
        instant,
        doc="When taskdb ends the run itself unless the holder has: timeouts plus grace.",
    ),
    optional("action_deadline", instant),
    optional("start_checkpoint", BigInteger, doc="Null if the run began without a checkpoint."),
    required("generation", Integer, CheckConstraint("generation >= 1")),
    required("version", Integer),
    required("attempt", Integer),
    required("task_type_revision", Integer, default="0"),
    required("phase", SmallInteger, CheckConstraint("phase IN (2, 3, 5)", name="lease_phase")),
    required("overlap", SmallInteger),
    required("on_runner_lost", SmallInteger),
    required("requested_action", SmallInteger, default="0"),
    required("plain", Boolean, default="false"),
    required("timed", Boolean, default="false"),
    optional("deadline_code", Text),
    required("tenant_id", key),
    required("task_id", key),
    required("runner_id", key, CheckConstraint("runner_id <> ''", name="leased_task_has_runner")),
    required("claim_request_id", key),
    optional("slot", key),
    optional("action", JSONB),
    optional("progress", LargeBinary),
    optional("details", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "task_id"),
    CheckConstraint("phase <> 3 OR start_time IS NOT NULL", name="running_lease_has_start"),
    CheckConstraint(
        "(requested_action <> 0) = (action_deadline IS NOT NULL)", name="requested_action_has_deadline"
    ),
    postgresql_with={
        "fillfactor": 60,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

index(
    "leases_by_runner",
    leases.c.runner_id,
    doc="The leases of a runner; those of one claim request are found by reading all of them.",
)

index("leases_asked", leases.c.runner_id, leases.c.action_deadline, where="requested_action <> 0")

revocations = table(
    "revocations",
    "Leases that taskdb ended itself, kept for a while so that renewals can notify their holders.",
    required("time", instant, default="now()"),
    required("generation", BigInteger),
    required("lease_id", BigInteger),
    required("runner_id", key),
    required("tenant_id", key),
    required("task_id", key),
    required("reason", Text),
    PrimaryKeyConstraint("runner_id", "tenant_id", "task_id", "generation"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_threshold": 200},
)

runs = table(
    "runs",
    "Ended runs, except the plain successes that their row of tasks describes.",
    required("generation", BigInteger),
    required("lease_id", BigInteger),
    required("schedule_time", instant),
    optional("start_time", instant),
    required("end_time", instant),
    required("task_type_revision", BigInteger, default="0"),
    required("start_checkpoint", BigInteger, default="0"),
    optional("log_sequence", BigInteger),
    required("attempt", Integer),
    optional("exit_code", Integer),
    required("state", SmallInteger, CheckConstraint("state BETWEEN 3 AND 8", name="run_state")),
    required("tenant_id", key),
    required("task_id", key),
    required("runner_id", key),
    optional("error", LargeBinary),
    optional("progress", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "task_id", "generation"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_insert_scale_factor": 0.1},
)

at_the_end(
    "Every run that has ended, by the primary keys of runs and tasks.",
    """
CREATE VIEW ended_runs AS
SELECT generation, lease_id, schedule_time, start_time, end_time, task_type_revision, start_checkpoint,
    log_sequence, attempt, exit_code, state, tenant_id, task_id, runner_id, error, progress
FROM runs
UNION ALL
SELECT generation, run_lease_id, schedule_time, start_time, end_time, task_type_revision,
    coalesce(run_start_checkpoint, 0), run_log_sequence, attempt, exit_code, 3::smallint, tenant_id, task_id,
    last_runner_id, error, progress
FROM tasks WHERE run_lease_id IS NOT NULL
""",
)

at_the_end(
    (
        "No live task of the tenant was created before this time; null if there is none. The function goes "
        "from lane to lane along the primary key of queue, whose rows are ready since their creation or "
        "held; it uses tasks_held and the primary keys of leases and tasks."
    ),
    """
CREATE FUNCTION oldest_live(tenant text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
WITH RECURSIVE lane AS (
    (SELECT class_id, priority, pinned_runner, ready_time FROM queue WHERE tenant_id = tenant
    ORDER BY class_id, priority, pinned_runner, ready_time LIMIT 1)
    UNION ALL
    SELECT next.* FROM lane CROSS JOIN LATERAL (
        SELECT q.class_id, q.priority, q.pinned_runner, q.ready_time FROM queue q
        WHERE q.tenant_id = tenant
            AND (q.class_id, q.priority, q.pinned_runner) > (lane.class_id, lane.priority, lane.pinned_runner)
        ORDER BY q.class_id, q.priority, q.pinned_runner, q.ready_time LIMIT 1
    ) next
)
SELECT least(
    (SELECT min(ready_time) FROM lane),
    (SELECT held_time FROM tasks WHERE tenant_id = tenant AND held_time IS NOT NULL
        ORDER BY held_time LIMIT 1),
    (SELECT min(t.create_time) FROM leases l
        JOIN tasks t ON t.tenant_id = l.tenant_id AND t.task_id = l.task_id WHERE l.tenant_id = tenant))
$$
""",
)
