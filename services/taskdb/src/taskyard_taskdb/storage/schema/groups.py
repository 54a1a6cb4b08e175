"""Groups of tasks, and what is to be added to their counts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
)
from sqlalchemy.dialects.postgresql import UUID

from taskyard_taskdb.storage.schema.base import index, instant, key, optional, required, table

groups = table(
    "groups",
    "Groups of tasks. The counts lack what group_deltas holds, which the leader adds within a second.",
    required("live_count", BigInteger, default="0"),
    required("succeeded_count", BigInteger, default="0"),
    required("not_succeeded_count", BigInteger, default="0"),
    required("completion_count", Integer, default="0"),
    optional("close_time", instant),
    optional("complete_time", instant),
    optional("cancel_time", instant),
    optional("cancel_after_time", instant, doc="The last task that was cancelled, by its create_time."),
    required("cancelling", Boolean, default="false", doc="Some of its tasks are still to be cancelled."),
    required("awaited", Boolean, default="false", doc="Some task names it in spec.after."),
    required("create_time", instant, default="now()"),
    required("uid", UUID, default="gen_random_uuid()"),
    optional("cancel_actor_type", SmallInteger),
    required("tenant_id", key),
    required("group_id", key),
    optional("parent_task_id", key, doc="Whose children the tasks are; the group closes when it ends."),
    optional("cancel_after_id", key),
    optional("cancel_actor_id", Text),
    optional("cancel_reason", Text),
    optional("callback", LargeBinary),
    PrimaryKeyConstraint("tenant_id", "group_id"),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 200,
    },
)

index(
    "groups_ended",
    groups.c.tenant_id,
    groups.c.group_id,
    where="close_time IS NOT NULL AND complete_time IS NULL AND live_count = 0",
    doc="Groups that are about to be complete.",
)

index("groups_cancelling", groups.c.tenant_id, groups.c.group_id, where="cancelling")

group_deltas = table(
    "group_deltas",
    "What transactions add to the counts of groups, a row per transaction and group, so that outcomes do not "
    "wait for each other. `closes` is set by the end of the task whose children they are, and reset by its "
    "retry.",
    required("id", BigInteger, Identity(always=True)),
    required("live", Integer),
    required("succeeded", Integer),
    required("not_succeeded", Integer),
    optional("closes", Boolean),
    required("tenant_id", key),
    required("group_id", key),
    PrimaryKeyConstraint("tenant_id", "group_id", "id"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.02, "autovacuum_vacuum_threshold": 1000},
)
