"""Named limits: definitions, what is held and has started, and the tasks that name them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    ForeignKey,
    Integer,
    Interval,
    PrimaryKeyConstraint,
    Text,
)
from sqlalchemy.dialects.postgresql import UUID

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

_BUSY = {
    "fillfactor": 50,
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 200,
}

limits = table(
    "limits",
    "Named limits; 0 and null bound nothing. Whoever admits a task or gives its units back locks the row.",
    optional("try_time", instant, doc="When the sweep tries to admit those that wait."),
    optional("delete_time", instant, doc="It bounds nothing; the sweep removes it once nobody needs it."),
    required("version", BigInteger, default="1"),
    required("create_time", instant, default="now()"),
    required("update_time", instant, default="now()"),
    required("held", BigInteger, CheckConstraint("held >= 0", name="limit_held"), default="0"),
    required("max_running", Integer, default="0"),
    required("max_running_per_key", Integer, default="0"),
    optional("starts_count", Integer),
    optional("starts_per_key_count", Integer),
    required("uid", UUID),
    optional("starts_per", Interval),
    optional("starts_per_key_per", Interval),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE")),
    required("limit_id", key, CheckConstraint("length(limit_id) BETWEEN 1 AND 64", name="limit_id")),
    required("last_key", key, default="''", doc="The key that was admitted last; the next one follows it."),
    required("description", Text, default="''"),
    PrimaryKeyConstraint("tenant_id", "limit_id"),
    CheckConstraint("(starts_count IS NULL) = (starts_per IS NULL)", name="limit_starts"),
    CheckConstraint(
        "(starts_per_key_count IS NULL) = (starts_per_key_per IS NULL)", name="limit_starts_per_key"
    ),
    postgresql_with=_BUSY,
)

index("limits_due", limits.c.try_time, where="try_time IS NOT NULL")

limit_keys = table(
    "limit_keys",
    "Units that the tasks of a key hold; changed under the lock of the limit. A key that holds nothing has "
    "no row.",
    required("held", BigInteger, CheckConstraint("held > 0", name="limit_key_held")),
    required("tenant_id", key),
    required("limit_id", key),
    required("key", key),
    PrimaryKeyConstraint("tenant_id", "limit_id", "key"),
    postgresql_with=_BUSY,
)

limit_starts = table(
    "limit_starts",
    "Units that started within the duration of a limit, in total or of a key; changed under the lock of the "
    "limit.",
    required("entry_time", instant, doc="Starts that lie close together share an entry."),
    required("time", instant, doc="The last start of the entry."),
    required("units", BigInteger),
    required("of_key", Boolean),
    required("tenant_id", key),
    required("limit_id", key),
    required("key", key, doc="Empty for the total."),
    PrimaryKeyConstraint("tenant_id", "limit_id", "of_key", "key", "entry_time"),
    postgresql_with=_BUSY,
)

task_limits = table(
    "task_limits",
    "spec.limits of tasks; removed with the task.",
    optional("wait_time", instant, doc="Since when the task waits; in the row of the limit it waits for."),
    required("units", Integer, CheckConstraint("units > 0", name="task_limit_units")),
    required("held", Boolean, default="false", doc="Its units are counted in `limits` and `limit_keys`."),
    required("untried", Boolean, default="false", doc="It waits, and its limits were not looked at yet."),
    required("tenant_id", key),
    required("task_id", key),
    required("limit_id", key),
    required("key", key),
    PrimaryKeyConstraint("tenant_id", "task_id", "limit_id"),
    CheckConstraint("NOT untried OR wait_time IS NOT NULL", name="untried_waits"),
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 1000,
    },
)

index(
    "task_limits_waiting",
    task_limits.c.tenant_id,
    task_limits.c.limit_id,
    task_limits.c.key,
    task_limits.c.wait_time,
    task_limits.c.task_id,
    where="wait_time IS NOT NULL",
    doc="The tasks that wait for a limit, by key, in the order of their arrival.",
)

index("task_limits_untried", task_limits.c.tenant_id, task_limits.c.limit_id, where="untried")
