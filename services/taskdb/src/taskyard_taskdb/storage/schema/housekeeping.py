"""Leadership, jobs, webhooks and the archive."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from taskyard_taskdb.storage.schema.base import after, index, instant, key, optional, required, table
from taskyard_taskdb.storage.schema.leases import runs
from taskyard_taskdb.storage.schema.tasks import tasks


def _archived(source: Table) -> list[Column[Any]]:
    """The columns of a table without their defaults and expressions; what is archived has an end."""
    return [
        Column(column.name, column.type, nullable=column.nullable and column.name != "end_time")
        for column in source.columns
    ]


coordinator_state = table(
    "coordinator_state",
    "Leadership of the housekeeping, and other state that replicas share.",
    required("key", key, CheckConstraint("length(key) <= 64"), primary_key=True),
    required("value", Text),
    required("epoch", BigInteger, default="0"),
    required("expires_at", instant),
    required("updated_at", instant, default="now()"),
)

facts = table(
    "facts",
    "Facts about this database: the epoch of the change log, the restore epoch.",
    required("key", key, primary_key=True),
    required("value", Text),
)

job_runs = table(
    "job_runs",
    "The last run of each housekeeping job. `run` grows with every run and guards what the run "
    "writes; a run whose seen_time is old was interrupted.",
    required("start_time", instant),
    optional("end_time", instant),
    optional("success_time", instant, doc="When the job last succeeded."),
    required("item_count", BigInteger, default="0"),
    required("job", key, primary_key=True),
    optional("error", Text),
    required("run", BigInteger, default="0"),
    required("seen_time", instant, default="now()"),
    required("failure_count", Integer, default="0", doc="Failures since the job last succeeded."),
    postgresql_with={"fillfactor": 50},
)

webhooks = table(
    "webhooks",
    "Webhook requests to send: written in the transaction of the transition, deleted when the "
    "receiver has answered. `task` is the task as it was then, so that a retry, a deletion or "
    "the archive cannot change the request.",
    required("id", BigInteger, Identity(always=True), primary_key=True),
    required("create_time", instant, default="now()"),
    required("due_time", instant, default="now()"),
    required("attempt", Integer, CheckConstraint("attempt >= 0"), default="0"),
    required("tenant_id", key),
    required("task_id", key),
    optional("last_error", Text),
    required("task", JSONB),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

index("webhooks_by_task", webhooks.c.tenant_id, webhooks.c.task_id, webhooks.c.id)

index("webhooks_by_due_time", webhooks.c.due_time)

webhook_secrets = table(
    "webhook_secrets",
    "The secrets that sign a tenant's webhooks. The former secret also signs for a day after a rotation.",
    required("rotate_time", instant, default="now()"),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    required("secret", LargeBinary, CheckConstraint("length(secret) >= 24")),
    optional("former_secret", LargeBinary),
)

tasks_archive = table(
    "tasks_archive",
    "Ended tasks after their retention, by the month in which they ended: the columns of tasks, "
    "in their order.",
    *_archived(tasks),
    PrimaryKeyConstraint("tenant_id", "task_id", "end_time"),
    postgresql_partition_by="RANGE (end_time)",
)

after(tasks_archive, "CREATE TABLE tasks_archive_default PARTITION OF tasks_archive DEFAULT")

runs_archive = table(
    "runs_archive",
    "The runs of archived tasks: the columns of runs, in their order.",
    *_archived(runs),
    PrimaryKeyConstraint("tenant_id", "task_id", "generation", "end_time"),
    postgresql_partition_by="RANGE (end_time)",
)

after(runs_archive, "CREATE TABLE runs_archive_default PARTITION OF runs_archive DEFAULT")
