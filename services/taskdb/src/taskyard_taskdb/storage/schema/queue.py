"""What decides when a task may be claimed: queue, slots, timers, external reports, quarantines."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
)

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

queue = table(
    "queue",
    "Claimable tasks. The key is the lane, then its FIFO order; only claims skip locked rows.",
    required("class_id", BigInteger),
    required("ready_time", instant),
    required("priority", SmallInteger),
    required(
        "has_lease",
        Boolean,
        default="false",
        doc="The task also has an expired lease, which the claim moves to runs.",
    ),
    required("tenant_id", key),
    required("pinned_runner", key, default="''"),
    required("task_id", key),
    PrimaryKeyConstraint("tenant_id", "class_id", "priority", "pinned_runner", "ready_time", "task_id"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

slots = table(
    "slots",
    "At most one task of a slot holds it: the head, the only one that may have a queue row.",
    required("tenant_id", key),
    required("slot", key),
    optional("head_task_id", key),
    required("waiting_count", Integer, CheckConstraint("waiting_count >= 0"), default="0"),
    PrimaryKeyConstraint("tenant_id", "slot"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

timers = table(
    "timers",
    "One row per event that becomes due: 1 a delayed or retried task, 2 queue timeout, 3 total "
    "timeout, 4 report of an external task.",
    required("due_time", instant),
    required("kind", SmallInteger, CheckConstraint("kind BETWEEN 1 AND 4")),
    required("tenant_id", key),
    required("task_id", key),
    PrimaryKeyConstraint("tenant_id", "task_id", "kind"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

index("timers_by_due_time", timers.c.due_time)

inbox = table(
    "inbox",
    "Reports for external tasks, applied per task in the order of id.",
    required("id", BigInteger, Identity(always=True), primary_key=True),
    required("create_time", instant, default="now()"),
    required("tenant_id", key),
    required("task_id", key),
    required("actor_id", Text, default="''"),
    required("report", LargeBinary),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.02, "autovacuum_vacuum_threshold": 200},
)

index("inbox_by_task", inbox.c.tenant_id, inbox.c.task_id, inbox.c.id)

quarantines = table(
    "quarantines",
    "Specs that cost too many runners, by a digest of task type and execution. Each claim reads "
    "the open ones.",
    required("create_time", instant, default="now()"),
    optional("release_time", instant),
    required("runner_loss_count", Integer, CheckConstraint("runner_loss_count >= 0")),
    required("tenant_id", key),
    required("digest", key, CheckConstraint("digest ~ '^[a-f0-9]{1,64}$'")),
    required("task_type", key, default="''"),
    required("example_task_id", key),
    PrimaryKeyConstraint("tenant_id", "digest"),
)

index("quarantines_open", quarantines.c.tenant_id, quarantines.c.task_type, where="release_time IS NULL")

quarantine_holds = table(
    "quarantine_holds",
    "Tasks that were paused because their spec is quarantined; its release resumes them.",
    required("tenant_id", key),
    required("digest", key),
    required("task_id", key),
    PrimaryKeyConstraint("tenant_id", "digest", "task_id"),
)

dependencies = table(
    "dependencies",
    "spec.after of tasks, from the prerequisite to the task that names it; removed with the latter.",
    required("condition", SmallInteger, CheckConstraint("condition BETWEEN 1 AND 3")),
    required("position", SmallInteger),
    required("open", Boolean, doc="The prerequisite has not ended, or its end is not processed yet."),
    required("tenant_id", key),
    required("prerequisite_id", key),
    required("task_id", key),
    optional("alias", key),
    PrimaryKeyConstraint("tenant_id", "prerequisite_id", "task_id"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_threshold": 1000},
)

index("dependencies_of_task", dependencies.c.tenant_id, dependencies.c.task_id, dependencies.c.position)

index(
    "dependencies_open",
    dependencies.c.tenant_id,
    dependencies.c.prerequisite_id,
    dependencies.c.task_id,
    where="open",
    doc="The dependents that an outcome concerns; a page is found without those that are done.",
)

blocked_tasks = table(
    "blocked_tasks",
    "Tasks that wait for prerequisites: how many, and the first that ended otherwise than required.",
    required("open_count", Integer, CheckConstraint("open_count >= 0", name="open_count_not_negative")),
    optional("failed_phase", SmallInteger),
    required("tenant_id", key),
    required("task_id", key),
    optional("failed_task_id", key),
    PrimaryKeyConstraint("tenant_id", "task_id"),
    CheckConstraint("(failed_task_id IS NULL) = (failed_phase IS NULL)", name="failed_prerequisite_is_whole"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

index(
    "blocked_tasks_settled",
    blocked_tasks.c.tenant_id,
    blocked_tasks.c.task_id,
    where="open_count = 0 OR failed_task_id IS NOT NULL",
    doc="Tasks that wait no longer and that another transaction had locked at that moment.",
)

dependency_backlog = table(
    "dependency_backlog",
    "Prerequisites whose dependents are left to the sweep: 1 it has ended, 2 it was retried with cascade.",
    required("create_time", instant, default="clock_timestamp()"),
    required("kind", SmallInteger, CheckConstraint("kind IN (1, 2)")),
    required("phase", SmallInteger, doc="How it ended; 0 for kind 2."),
    required("after_id", key, default="''", doc="Of kind 2: the last dependent that was considered."),
    required("tenant_id", key),
    required("task_id", key),
    PrimaryKeyConstraint("tenant_id", "task_id", "kind"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)
