"""Tasks with their placement classes, request ids and checkpoints."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Computed,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import AddConstraint

from taskyard_taskdb.storage.schema.base import after, index, instant, key, optional, required, table

placement_classes = table(
    "placement_classes",
    "What a lane of the queue requires of a runner.",
    required("tenant_id", key),
    required("class_id", BigInteger),
    required("definition", LargeBinary),
    required("create_time", instant, default="now()"),
    PrimaryKeyConstraint("tenant_id", "class_id"),
)

tasks = table(
    "tasks",
    "A task that is pending, paused or ended is described by this row alone. While a lease "
    "exists, the lease row carries phase, version, generation and attempt, and this row keeps "
    "the values from before the claim. Columns that change come before those that do not: the "
    "write-ahead log of an update on the same page then holds the first part only.  PostgreSQL "
    "updates a row without new index entries (HOT) only if no column of any index, of its "
    "expressions or of its predicate changes, on any row. So an index of some tasks uses a "
    "generated column that stays null in the others: the outcome of a task that was queued at "
    "once changes none of them. A batch that ends together was created together and lies on the "
    "same pages: the fillfactor leaves room for a second, larger version of all its rows.",
    required("version", Integer, default="1"),
    required("generation", Integer, default="0"),
    required("update_time", instant),
    optional("ready_time", instant),
    optional("next_attempt_time", instant),
    optional("schedule_time", instant),
    optional("start_time", instant),
    optional("end_time", instant),
    optional(
        "retry_delay",
        Interval,
        doc="The delay before the current attempt, which decorrelated jitter builds on.",
    ),
    optional(
        "run_lease_id",
        BigInteger,
        doc="The first run, if it was a plain success: with the other columns, all that a row of "
        "`runs` would hold.",
    ),
    optional("run_start_checkpoint", BigInteger),
    optional("run_log_sequence", BigInteger),
    required("checkpoint_sequence", BigInteger, default="0"),
    required("attempt", Integer, default="0"),
    required(
        "retry_count",
        Integer,
        CheckConstraint("retry_count >= 0", name="retry_count_not_negative"),
        default="0",
    ),
    required("runner_loss_count", Integer, default="0"),
    optional("exit_code", Integer),
    required(
        "phase",
        SmallInteger,
        CheckConstraint("phase IN (1, 2, 3, 4, 5, 10, 11, 12, 13, 14)", name="task_phase"),
    ),
    required("pending_reason", SmallInteger, default="0"),
    optional("last_runner_id", key),
    optional("error_code", key),
    optional(
        "result",
        LargeBinary,
        doc="Serialised messages of the contract, here and below: storage never parses them.",
    ),
    optional("error", LargeBinary),
    optional("progress", LargeBinary),
    optional("details", LargeBinary),
    required("class_id", BigInteger),
    required("create_time", instant),
    optional("total_deadline", instant),
    optional("uid", Uuid, doc="Null where task_id is its text."),
    required("task_type_revision", Integer, default="0"),
    required("max_retries", Integer, CheckConstraint("max_retries >= 0", name="max_retries_not_negative")),
    required("kind", SmallInteger, CheckConstraint("kind BETWEEN 1 AND 7", name="task_kind")),
    required("priority", SmallInteger, CheckConstraint("priority BETWEEN 0 AND 1000", name="task_priority")),
    required("creator_type", SmallInteger),
    required(
        "restart",
        SmallInteger,
        default="2",
        doc="The parts of `policy` that a claim or a plain outcome reads.",
    ),
    required("overlap", SmallInteger, default="2"),
    required("on_runner_lost", SmallInteger, default="1"),
    required("timed", Boolean, default="false", doc="It may have a queue or total timeout in `timers`."),
    required(
        "plain",
        Boolean,
        Computed("callback IS NULL AND restart <> 3", persisted=True),
        doc="Its success is one guarded statement: nothing but lease, timers, slot and this row has "
        "to change.",
    ),
    required("tenant_id", key),
    required("task_id", key),
    required("task_type", key, default="''"),
    optional("task_type_tenant", key),
    required("pinned_runner", key, default="''"),
    optional("slot", key),
    optional("entity_type", key),
    optional("entity_id", key),
    optional("parent_task_id", key),
    required("creator_id", Text, default="''"),
    optional("traceparent", Text),
    required("spec", LargeBinary),
    optional(
        "policy",
        LargeBinary,
        doc="Retries and timeouts that differ from their defaults, as JSON; null where none does.",
    ),
    optional("callback", LargeBinary),
    optional("annotations", LargeBinary),
    optional("labels", JSONB),
    optional(
        "live_slot",
        key,
        Computed(
            "CASE WHEN end_time IS NULL AND NOT (phase = 1 AND pending_reason = 1) THEN slot END",
            persisted=True,
        ),
        doc="The slot of a live task that is not queued. A queued task heads its slot, which the "
        "row of the slot records.",
    ),
    optional(
        "held_time",
        instant,
        Computed(
            "CASE WHEN end_time IS NULL AND NOT (phase = 1 AND pending_reason = 1 AND ready_time IS "
            "NOT NULL AND ready_time = create_time) THEN create_time END",
            persisted=True,
        ),
        doc="When a live task was created that is not queued for the first time. The others are in "
        "`queue`, with that time as their ready_time, or in `leases`.",
    ),
    optional(
        "failed_phase",
        SmallInteger,
        Computed("CASE WHEN phase > 10 THEN phase END", persisted=True),
        doc="How a task ended that did not succeed.",
    ),
    optional(
        "blocked",
        Boolean,
        doc="Of a task with spec.after: whether it waits for one of them. Null without.",
    ),
    optional(
        "has_dependents",
        Boolean,
        doc="Some task names it in spec.after: its outcome is never plain. Null if none ever did.",
    ),
    optional("group_id", key, doc="The group that counts it: its outcome is never plain."),
    optional(
        "limited",
        Boolean,
        doc="Of a task with spec.limits: whether it holds its units. Its outcome is never plain.",
    ),
    PrimaryKeyConstraint("tenant_id", "task_id"),
    CheckConstraint("(phase >= 10) = (end_time IS NOT NULL)", name="ended_task_has_end_time"),
    CheckConstraint("phase NOT IN (11, 12, 14) OR error IS NOT NULL", name="failed_task_has_error"),
    CheckConstraint("retry_count <= max_retries", name="retries_within_maximum"),
    CheckConstraint("(entity_type IS NULL) = (entity_id IS NULL)", name="entity_is_whole"),
    CheckConstraint("run_lease_id IS NULL OR phase = 10", name="only_success_keeps_its_run"),
    postgresql_with={
        "fillfactor": 45,
        "autovacuum_vacuum_scale_factor": 0.05,
        "autovacuum_analyze_scale_factor": 0.05,
    },
)

index("tasks_by_creation", tasks.c.tenant_id, tasks.c.create_time)

index("tasks_held", tasks.c.tenant_id, tasks.c.held_time, where="held_time IS NOT NULL")

index(
    "tasks_failed",
    tasks.c.tenant_id,
    tasks.c.failed_phase,
    tasks.c.create_time,
    where="failed_phase IS NOT NULL",
)

index(
    "tasks_by_end",
    tasks.c.end_time,
    postgresql_using="brin",
    postgresql_with={"pages_per_range": 64, "autosummarize": "on"},
    doc="For ranges of end times. Tasks that were created together mostly end together. Since "
    "PostgreSQL 16 a BRIN index does not prevent HOT updates.",
)

index("tasks_by_type", tasks.c.tenant_id, tasks.c.task_type, tasks.c.create_time, where="task_type <> ''")

index(
    "tasks_by_entity",
    tasks.c.tenant_id,
    tasks.c.entity_type,
    tasks.c.entity_id,
    tasks.c.create_time,
    where="entity_type IS NOT NULL",
)

index(
    "tasks_by_parent",
    tasks.c.tenant_id,
    tasks.c.parent_task_id,
    tasks.c.create_time,
    where="parent_task_id IS NOT NULL",
)

index(
    "tasks_by_group",
    tasks.c.tenant_id,
    tasks.c.group_id,
    tasks.c.create_time,
    tasks.c.task_id,
    where="group_id IS NOT NULL",
)

index(
    "tasks_by_labels",
    tasks.c.labels,
    postgresql_using="gin",
    postgresql_ops={"labels": "jsonb_path_ops"},
    where="labels IS NOT NULL",
)

index("tasks_of_slot", tasks.c.tenant_id, tasks.c.slot, tasks.c.create_time, where="slot IS NOT NULL")

index(
    "tasks_by_slot",
    tasks.c.tenant_id,
    tasks.c.live_slot,
    tasks.c.priority.desc(),
    tasks.c.create_time,
    tasks.c.task_id,
    where="live_slot IS NOT NULL",
    doc="Waiters of a slot in the order in which they are promoted.",
)

# The last index: while the table is empty, every index that begins with the tenant seems equally good for a
# look-up by key, and PostgreSQL takes the youngest. Generic plans made then are kept until
# autovacuum analyses the table.
after(tasks, AddConstraint(tasks.primary_key))


idempotency_keys = table(
    "idempotency_keys",
    "Requests that were applied, so that a repeat returns the same task.",
    required("create_time", instant, default="now()"),
    required("method", SmallInteger),
    required("tenant_id", key),
    required("request_id", key, CheckConstraint("length(request_id) <= 64")),
    required("task_id", key),
    required("body_hash", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "method", "request_id"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_insert_scale_factor": 0.2},
)

index("idempotency_keys_by_time", idempotency_keys.c.create_time)

checkpoints = table(
    "checkpoints",
    "State that runs saved to resume from. `data` is stored out of line and uncompressed.",
    required("sequence", BigInteger, CheckConstraint("sequence >= 1")),
    required("generation", BigInteger),
    required("create_time", instant, default="now()"),
    required("size_bytes", Integer, CheckConstraint("size_bytes BETWEEN 1 AND 10485760")),
    required(
        "progress_percent", SmallInteger, CheckConstraint("progress_percent BETWEEN 0 AND 100"), default="0"
    ),
    required("tenant_id", key),
    required("task_id", key),
    required("content_type", Text, default="''"),
    required("sha256", LargeBinary, CheckConstraint("length(sha256) = 32")),
    required("data", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "task_id", "sequence"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_threshold": 200},
)

after(checkpoints, "ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL")
