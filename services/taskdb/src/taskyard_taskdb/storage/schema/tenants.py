"""Tenants, their keys, task types, quota counters and usage."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

tenants = table(
    "tenants",
    "One row per tenant, with the overrides of its tier's quota.",
    required(
        "tenant_id",
        key,
        CheckConstraint("length(tenant_id) BETWEEN 1 AND 64", name="tenant_id_length"),
        primary_key=True,
    ),
    required(
        "display_name",
        Text,
        CheckConstraint("length(display_name) <= 255", name="tenant_display_name_length"),
    ),
    required("tier", SmallInteger, CheckConstraint("tier BETWEEN 1 AND 4", name="tenant_tier")),
    optional(
        "max_concurrent_tasks",
        Integer,
        CheckConstraint("max_concurrent_tasks >= 0"),
        doc="Here and below, null takes the tier's value and 0 is unlimited.",
    ),
    optional("max_queue_depth", Integer, CheckConstraint("max_queue_depth >= 0")),
    optional("rate_limit_per_sec", Integer, CheckConstraint("rate_limit_per_sec >= 0")),
    optional("rate_burst", Integer, CheckConstraint("rate_burst >= 0")),
    optional("weight", Integer, CheckConstraint("weight BETWEEN 1 AND 1000")),
    required("suspended", Boolean, default="false"),
    required("queue_paused", Boolean, default="false"),
    required("version", BigInteger, default="1"),
    required("create_time", instant, default="now()"),
    required("update_time", instant, default="now()"),
    optional("max_storage_bytes", BigInteger, CheckConstraint("max_storage_bytes >= 0")),
)

index("tenants_by_tier", tenants.c.tier)

api_keys = table(
    "api_keys",
    "Keys of users, schedulers, runners and administrators; only a hash of the secret is stored.",
    required("key_id", key, primary_key=True),
    required("kind", SmallInteger, CheckConstraint("kind BETWEEN 1 AND 4", name="api_key_kind")),
    optional("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE")),
    required("secret_hash", LargeBinary),
    required("read_only", Boolean, default="false"),
    optional("runner_scope", JSONB),
    required("description", Text, default="''"),
    required("create_time", instant, default="now()"),
    optional("expire_time", instant),
    optional("revoke_time", instant),
    optional(
        "parent_key_id",
        key,
        ForeignKey("api_keys.key_id", ondelete="CASCADE"),
        doc="The key whose sign-in code was exchanged for this one.",
    ),
    CheckConstraint("(kind = 1) = (tenant_id IS NOT NULL)", name="tenant_key_has_tenant"),
)

index("api_keys_by_tenant", api_keys.c.tenant_id, where="tenant_id IS NOT NULL")
index("api_keys_by_parent", api_keys.c.parent_key_id, where="parent_key_id IS NOT NULL")

sign_in_codes = table(
    "sign_in_codes",
    "Codes that sign one browser in with the rights of a key, once; only a hash is stored.",
    required("code_id", key, primary_key=True),
    required("secret_hash", LargeBinary),
    required("key_id", key, ForeignKey("api_keys.key_id", ondelete="CASCADE")),
    required("expire_time", instant),
)

index("sign_in_codes_by_key", sign_in_codes.c.key_id, sign_in_codes.c.expire_time)

task_types = table(
    "task_types",
    "The newest revision of each type. Queries and other services read the columns; "
    "`definition` is the whole message of the contract.",
    required(
        "revision", BigInteger, CheckConstraint("revision >= 1", name="task_type_revision"), default="1"
    ),
    required("version", BigInteger, default="1"),
    required("create_time", instant, default="now()"),
    required("update_time", instant, default="now()"),
    optional(
        "retention",
        Interval,
        CheckConstraint("retention >= interval '0'", name="task_type_retention"),
        doc="How long ended tasks are kept: null takes the default.",
    ),
    optional(
        "attempt_timeout",
        Interval,
        CheckConstraint("attempt_timeout > interval '0'", name="task_type_timeout"),
    ),
    optional(
        "checkpoint_interval",
        Interval,
        CheckConstraint("checkpoint_interval >= interval '0'", name="task_type_checkpoints"),
    ),
    optional("max_retries", Integer, CheckConstraint("max_retries >= 0", name="task_type_retries")),
    required("archive", Boolean, default="false"),
    required("disabled", Boolean, default="false"),
    required("queue_paused", Boolean, default="false"),
    required(
        "checks_result",
        Boolean,
        default="false",
        doc="This revision or an earlier one checks results against a schema.",
    ),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE")),
    required("task_type", key, CheckConstraint("length(task_type) BETWEEN 1 AND 128", name="task_type_id")),
    required("runner_id_pattern", Text, default="''"),
    required("description", Text, default="''"),
    required("definition", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "task_type"),
)

index("task_types_by_type", task_types.c.task_type)

index("task_types_checking", task_types.c.tenant_id, where="checks_result")

index("task_types_paused", task_types.c.tenant_id, task_types.c.task_type, where="queue_paused")

task_type_revisions = table(
    "task_type_revisions",
    "Every revision of each type: a run names the revision whose configuration it received.",
    required("revision", BigInteger),
    required("create_time", instant, default="now()"),
    required("tenant_id", key),
    required("task_type", key),
    required("definition", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "task_type", "revision"),
    ForeignKeyConstraint(
        ["tenant_id", "task_type"], ["task_types.tenant_id", "task_types.task_type"], ondelete="CASCADE"
    ),
)

tenant_counters = table(
    "tenant_counters",
    "One row per tenant with a limit, none for the others. The row holds the limits in force "
    "beside the counts, so that a transaction that has locked it has both. Every writer of "
    "tasks also opens this table for writing, which delays the table lock under which a row is "
    "added.",
    required("pending", BigInteger, default="0"),
    required("leased", BigInteger, default="0"),
    required("tokens", Double, default="0"),
    required("refill_time", instant, default="clock_timestamp()"),
    required("max_concurrent_tasks", Integer, CheckConstraint("max_concurrent_tasks >= 0")),
    required("max_queue_depth", Integer, CheckConstraint("max_queue_depth >= 0")),
    required("rate_limit_per_sec", Integer, CheckConstraint("rate_limit_per_sec >= 0")),
    required("rate_burst", Integer, CheckConstraint("rate_burst >= 0")),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    postgresql_with={
        "fillfactor": 30,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

tenant_usage = table(
    "tenant_usage",
    "Capacity-seconds of ended runs, each halved every five minutes, as of update_time. The "
    "usage of a current run is read from its lease; a run that was counted as lost and resumes "
    "is subtracted until it ends.",
    required("update_time", instant),
    required("usage", Double),
    required("tenant_id", key, primary_key=True),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

entities = table(
    "entities",
    "Business objects of a tenant that tasks of types with entities_must_exist may name.",
    required("create_time", instant, default="now()"),
    required("tenant_id", key, ForeignKey("tenants.tenant_id", ondelete="CASCADE")),
    required("entity_type", key),
    required("entity_id", key),
    PrimaryKeyConstraint("tenant_id", "entity_type", "entity_id"),
)
