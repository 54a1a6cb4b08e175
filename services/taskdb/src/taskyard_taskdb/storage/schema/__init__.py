"""Every table, as SQLAlchemy describes it. Queries built of filters use the aliases."""

from taskyard_taskdb.storage.schema import (  # noqa: F401
    functions,
    groups,
    housekeeping,
    limits,
    log,
    queue,
    runners,
    schedules,
    tenants,
)
from taskyard_taskdb.storage.schema import leases as _leases
from taskyard_taskdb.storage.schema import tasks as _tasks
from taskyard_taskdb.storage.schema.base import metadata

tasks = _tasks.tasks.alias("t")
leases = _leases.leases.alias("l")
changes = log.changes.alias("c")
dependencies = queue.dependencies.alias("d")

__all__ = ["changes", "dependencies", "leases", "metadata", "tasks"]
