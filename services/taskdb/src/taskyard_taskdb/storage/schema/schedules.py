"""Schedules, and the live tasks of those that pause on a failure."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
)
from sqlalchemy.dialects.postgresql import UUID

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

schedules = table(
    "schedules",
    "Schedules of tasks. `definition` is the message of the contract without what has a column; the next "
    "instant is the cursor: everything before it has its event in the change log.",
    optional("next_fire_time", instant, doc="Null while paused and after the end."),
    optional("next_scheduled_time", instant, doc="The next instant; next_fire_time is later by its jitter."),
    optional("skip_until", instant, doc="Instants up to this fell into a pause that has ended."),
    optional("last_scheduled_time", instant),
    required("version", BigInteger, default="1"),
    required("create_time", instant, default="now()"),
    required("update_time", instant, default="now()"),
    required("fired_count", BigInteger, default="0"),
    required("skipped_count", BigInteger, default="0"),
    required("missed_count", BigInteger, default="0"),
    optional(
        "remaining_runs", BigInteger, CheckConstraint("remaining_runs >= 0", name="schedule_remaining_runs")
    ),
    required("uid", UUID),
    required("paused", Boolean, default="false"),
    required("pause_on_failure", Boolean, default="false"),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE")),
    required("schedule_id", key, CheckConstraint("length(schedule_id) BETWEEN 1 AND 55", name="schedule_id")),
    optional("last_task_id", key),
    required("pause_note", Text, default="''"),
    required("definition", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "schedule_id"),
    CheckConstraint("(next_fire_time IS NULL) = (next_scheduled_time IS NULL)", name="schedule_cursor"),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

index("schedules_due", schedules.c.next_fire_time, where="next_fire_time IS NOT NULL")

schedule_tasks = table(
    "schedule_tasks",
    "The tasks of schedules that pause on a failure, until their end was seen.",
    required("tenant_id", key),
    required("schedule_id", key),
    required("task_id", key),
    PrimaryKeyConstraint("tenant_id", "schedule_id", "task_id"),
    ForeignKeyConstraint(
        ["tenant_id", "schedule_id"], ["schedules.tenant_id", "schedules.schedule_id"], ondelete="CASCADE"
    ),
)
