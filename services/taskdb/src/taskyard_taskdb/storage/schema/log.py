"""The change log with its seals and statistics, and the logs of runs."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Double,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from taskyard_taskdb.storage.schema.base import (
    after,
    at_the_end,
    index,
    instant,
    key,
    metadata,
    optional,
    required,
    table,
)

# Ids are drawn under the shared advisory lock of the log, in steps of two: a row that stands for a start and
# the success that came with it has its own id for the success and the one before it for the start.
changes_id = Sequence("changes_id", metadata=metadata, cache=1, increment=2)

changes = table(
    "changes",
    "One log for watches and audit. A column without a value is null, which costs a bit; "
    "readers use the view change_log.",
    required("id", BigInteger, default="nextval('changes_id')"),
    required("time", instant),
    required("version", Integer, default="0"),
    optional("generation", Integer),
    optional("next_attempt_time", instant),
    optional("attempt", Integer),
    optional("retry_count", Integer),
    optional("runner_loss_count", Integer),
    optional("exit_code", Integer),
    required(
        "resource_kind",
        SmallInteger,
        default="1",
        doc="1 task, 2 runner, 3 tenant, 4 task type, 5 API key, 6 quarantine",
    ),
    required("event", SmallInteger),
    required("actor_type", SmallInteger),
    required("phase", SmallInteger, default="0"),
    optional("previous_phase", SmallInteger),
    optional("pending_reason", SmallInteger),
    required("tenant_id", key),
    required("resource_id", key),
    required("actor_id", Text, default="''"),
    optional("runner_id", Text),
    optional("error_code", Text),
    optional("request_id", Text),
    optional("details", JSONB),
    postgresql_partition_by="RANGE (time)",
)

after(changes, "CREATE TABLE changes_default PARTITION OF changes DEFAULT")

index(
    "changes_by_id",
    changes.c.id,
    doc="Not BRIN: the reader of the log asks for the newest rows, which BRIN has not summarised yet.",
)

index("changes_by_time", changes.c.time, postgresql_using="brin", postgresql_with={"pages_per_range": 16})

index(
    "changes_audit",
    changes.c.id,
    changes.c.resource_id,
    changes.c.tenant_id,
    changes.c.actor_id,
    changes.c.event,
    postgresql_using="brin",
    postgresql_ops={
        "id": "int8_minmax_ops",
        "resource_id": "text_bloom_ops",
        "tenant_id": "text_bloom_ops",
        "actor_id": "text_bloom_ops",
        "event": "int2_bloom_ops",
    },
    postgresql_with={"pages_per_range": 16, "autosummarize": "on"},
    doc="One index answers by resource, tenant, actor and event together, for less than a byte of "
    "log per change.",
)

at_the_end(
    "The log as it is read: a number without a value is zero.",
    """
CREATE VIEW change_log AS
SELECT id, time, version, coalesce(generation, 0) AS generation, next_attempt_time,
    coalesce(attempt, 0) AS attempt, coalesce(retry_count, 0) AS retry_count,
    coalesce(runner_loss_count, 0) AS runner_loss_count, exit_code, resource_kind, event, actor_type, phase,
    coalesce(previous_phase, 0::smallint) AS previous_phase,
    coalesce(pending_reason, 0::smallint) AS pending_reason,
    tenant_id, resource_id, actor_id, runner_id, error_code, request_id, details
FROM changes
""",
)

logs = table(
    "logs",
    "One row per batch of consecutive entries of a run, serialised as it was sent.",
    required("time", instant),
    required("last_time", instant),
    required("generation", BigInteger),
    required("first_sequence", BigInteger),
    required("last_sequence", BigInteger),
    required("dropped_count", BigInteger, default="0"),
    required("max_level", SmallInteger),
    required("tenant_id", key),
    required("task_id", key),
    required("entries", LargeBinary),
    postgresql_partition_by="RANGE (time)",
)

after(logs, "CREATE TABLE logs_default PARTITION OF logs DEFAULT")

index("logs_by_task", logs.c.tenant_id, logs.c.task_id, logs.c.generation, logs.c.first_sequence)

seals = table(
    "seals",
    "A chain over the change log: each seal covers every change above the former one's id, up to its own.",
    required("last_id", BigInteger, primary_key=True, autoincrement=False),
    required("after_id", BigInteger, unique=True),
    required("change_count", BigInteger, CheckConstraint("change_count > 0")),
    required("first_time", instant),
    required("last_time", instant),
    required("seal_time", instant, default="now()"),
    required("form", SmallInteger, doc="How the rows were turned into bytes."),
    required("previous_hash", LargeBinary, CheckConstraint("length(previous_hash) = 32")),
    required("hash", LargeBinary, CheckConstraint("length(hash) = 32")),
    CheckConstraint("after_id < last_id", name="seal_covers_ids"),
)

task_counts = table(
    "task_counts",
    "Tasks by quarter of an hour of their creation, type and phase, folded from the change log.",
    required("quarter", instant),
    required("phase", SmallInteger),
    required("task_count", BigInteger),
    required("retry_count", BigInteger),
    required("tenant_id", key),
    required("task_type", key),
    PrimaryKeyConstraint("tenant_id", "quarter", "task_type", "phase"),
    postgresql_with={"fillfactor": 70},
)

index("task_counts_by_quarter", task_counts.c.quarter)

task_minutes = table(
    "task_minutes",
    "What happened to a tenant's tasks within a minute, folded from the change log; kept for two days.",
    required("minute", instant),
    required("created", BigInteger),
    required("started", BigInteger),
    required("succeeded", BigInteger),
    required("failed", BigInteger),
    required("retried", BigInteger),
    required(
        "waited", BigInteger, doc="Ended tasks that had started once, and the seconds that they waited."
    ),
    required("waited_seconds", Double),
    required("tenant_id", key),
    PrimaryKeyConstraint("tenant_id", "minute"),
    postgresql_with={"fillfactor": 70},
)

index("task_minutes_by_minute", task_minutes.c.minute)

task_durations = table(
    "task_durations",
    "Their durations: 1 from start to end of a success, 2 from creation to start; a step is a "
    "quarter of a power of two of milliseconds.",
    required("quarter", instant),
    required("kind", SmallInteger),
    required("step", SmallInteger),
    required("task_count", BigInteger),
    required("seconds", Double),
    required("longest", Double),
    required("tenant_id", key),
    required("task_type", key),
    PrimaryKeyConstraint("tenant_id", "quarter", "task_type", "kind", "step"),
    postgresql_with={"fillfactor": 70},
)

index("task_durations_by_quarter", task_durations.c.quarter)

task_stats_place = table(
    "task_stats_place",
    "The one row holds the id up to which the log is folded into task_counts and task_durations.",
    required("last_id", BigInteger),
    required("fold_time", instant),
    Index("task_stats_place_is_one", text("(true)"), unique=True),
)
