"""Runners and their sessions."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, CheckConstraint, ForeignKey, Integer, LargeBinary, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

runners = table(
    "runners",
    "Registered runners. labels come from the runner, admin_labels from administrators.",
    required("version", BigInteger, default="1"),
    required("register_time", instant, default="now()"),
    required("update_time", instant, default="now()"),
    optional("delete_time", instant),
    required("runner_id", key, primary_key=True),
    required("key_id", key),
    required("backend_type", Text, default="''"),
    required("registration", LargeBinary),
    optional("scope", JSONB),
    required("labels", JSONB, default="'{}'"),
    required("admin_labels", JSONB, default="'{}'"),
    optional("drain", LargeBinary),
    optional("drained_time", instant, doc="When the draining runner held no lease any more."),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_vacuum_threshold": 50},
)

index("runners_by_backend_type", runners.c.backend_type, where="delete_time IS NULL")

runner_counts = table(
    "runner_counts",
    "How many runs of a runner ended. Not in its row of runners, which a hello locks before the "
    "leases that it lists: an outcome has locked those when it counts.",
    required("completed_count", BigInteger),
    required("failed_count", BigInteger),
    required("runner_id", key, primary_key=True),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

sessions = table(
    "sessions",
    "One row per runner: the newest session. A heartbeat renews this row and nothing else.",
    required("epoch", BigInteger, CheckConstraint("epoch >= 1")),
    required("open_time", instant),
    required("heartbeat_time", instant),
    required("expire_time", instant),
    optional("disconnect_time", instant),
    required("used_capacity", Integer, default="0"),
    required("closed", Boolean, default="false"),
    required("draining", Boolean, default="false"),
    required("session_id", Uuid),
    required("instance_id", Uuid),
    required("runner_id", key, ForeignKey("runners.runner_id", ondelete="CASCADE"), primary_key=True),
    required("scheduler_id", key),
    optional("free_resources", LargeBinary),
    required("stopped", Boolean, default="false", doc="The agent closed the session itself."),
    optional(
        "missed_after",
        instant,
        doc="heartbeat_time of the heartbeat after which the log has runner.heartbeat_missed.",
    ),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)
