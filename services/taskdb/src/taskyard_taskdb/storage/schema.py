"""The tables as SQLAlchemy knows them, for the queries that filters put together."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()
_time = DateTime(timezone=True)

tasks = Table(
    "tasks",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("create_time", _time),
    Column("update_time", _time),
    Column("start_time", _time),
    Column("end_time", _time),
    Column("phase", SmallInteger),
    Column("failed_phase", SmallInteger),
    Column("attempt", Integer),
    Column("retry_count", Integer),
    Column("priority", SmallInteger),
    Column("kind", SmallInteger),
    Column("task_type", Text),
    Column("slot", Text),
    Column("entity_type", Text),
    Column("entity_id", Text),
    Column("parent_task_id", Text),
    Column("creator_id", Text),
    Column("error_code", Text),
    Column("last_runner_id", Text),
    Column("labels", JSONB),
).alias("t")

leases = Table(
    "leases",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("runner_id", Text),
    Column("phase", SmallInteger),
    Column("attempt", Integer),
    Column("requested_action", SmallInteger),
    Column("schedule_time", _time),
    Column("start_time", _time),
    Column("session_epoch", BigInteger),
).alias("l")

changes = Table(
    "changes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("time", _time),
    Column("resource_kind", SmallInteger),
    Column("event", SmallInteger),
    Column("actor_type", SmallInteger),
    Column("tenant_id", Text),
    Column("resource_id", Text),
    Column("actor_id", Text),
    Column("request_id", Text),
).alias("c")
