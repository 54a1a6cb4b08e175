"""taskdb's metrics; kit's metric_names defines Metric. The leader alone reports those of the whole suite."""

from __future__ import annotations

from taskyard_kit.metric_names import JOB_BUCKETS, Metric

JOB_RUNS = Metric(
    "taskyard.taskdb.job.runs",
    "counter",
    "{run}",
    ("job", "outcome"),
    "Runs of a maintenance job by this replica: done or failed.",
)
JOB_ITEMS = Metric(
    "taskyard.taskdb.job.items",
    "counter",
    "{item}",
    ("job",),
    "Items that a maintenance job has moved, deleted or made.",
)
JOB_DURATION = Metric(
    "taskyard.taskdb.job.duration",
    "histogram",
    "s",
    ("job",),
    "How long a maintenance job ran.",
    JOB_BUCKETS,
)
JOB_AGE = Metric(
    "taskyard.taskdb.job.age",
    "gauge",
    "s",
    ("job",),
    "Time since a job last succeeded, reported by the leader; alert on a few of its periods.",
)
WEBHOOK_CALLS = Metric(
    "taskyard.taskdb.webhook.calls",
    "counter",
    "{call}",
    ("outcome",),
    "Webhook calls: delivered, failed (and repeated later) or given_up.",
)
WEBHOOK_PENDING = Metric(
    "taskyard.taskdb.webhook.pending", "gauge", "{call}", (), "Webhooks that are not delivered yet."
)
WEBHOOK_OLDEST = Metric(
    "taskyard.taskdb.webhook.oldest", "gauge", "s", (), "Age of the oldest webhook that is not delivered."
)
DOCTOR_FINDINGS = Metric(
    "taskyard.taskdb.doctor.findings",
    "gauge",
    "{finding}",
    ("check",),
    "Findings that each check of the last RunDoctor of this replica left unrepaired; 0 is healthy. The check "
    "durability is repeated with every reading of the gauges.",
)
DOCTOR_REPAIRED = Metric(
    "taskyard.taskdb.doctor.repaired",
    "counter",
    "{finding}",
    ("check",),
    "Findings that RunDoctor has repaired.",
)
QUEUE_DEPTH = Metric(
    "taskyard.taskdb.queue.depth",
    "gauge",
    "{task}",
    ("tenant", "class"),
    "Tasks that wait for a runner, by tenant and placement class; the 200 largest, the others as _other.",
)
QUEUE_OLDEST = Metric(
    "taskyard.taskdb.queue.oldest_wait",
    "gauge",
    "s",
    ("tenant", "class"),
    "How long the oldest task of each of those has waited.",
)
TASKS_CREATED = Metric("taskyard.taskdb.tasks.created", "counter", "{task}", (), "Tasks that were created.")
RUNS_STARTED = Metric(
    "taskyard.taskdb.runs.started", "counter", "{run}", (), "Runs: times that a runner claimed a task."
)
TASKS_ENDED = Metric(
    "taskyard.taskdb.tasks.ended",
    "counter",
    "{task}",
    ("outcome",),
    "Tasks that ended: succeeded, failed, timed_out, exhausted or cancelled.",
)
TASKS_RETRIED = Metric(
    "taskyard.taskdb.tasks.retried", "counter", "{run}", (), "Runs that failed and are followed by another."
)
LEASES_LOST = Metric(
    "taskyard.taskdb.leases.lost",
    "counter",
    "{lease}",
    (),
    "Leases that ended because their runner was lost or drained; the task waits for another runner.",
)
RUNNERS = Metric(
    "taskyard.taskdb.runners",
    "gauge",
    "{runner}",
    ("state",),
    "Runners by state: healthy, draining, dead or stopped.",
)
POOL_CONNECTIONS = Metric(
    "taskyard.taskdb.pool.connections",
    "gauge",
    "{connection}",
    ("purpose", "state"),
    "Database connections of this replica, used and free, for work, heartbeats and queries.",
)
DATABASE_WRITABLE = Metric(
    "taskyard.taskdb.database.writable",
    "gauge",
    "",
    (),
    "1 if the last probe of this replica could write to the database, else 0.",
)
DATABASE_SIZE = Metric("taskyard.taskdb.database.size", "gauge", "By", (), "Size of the database.")
REPLICATION_LAG = Metric(
    "taskyard.taskdb.replication.lag",
    "gauge",
    "s",
    ("standby",),
    "Age of what a standby has replayed last, as PostgreSQL reports it.",
)
REPLICATION_LAG_BYTES = Metric(
    "taskyard.taskdb.replication.lag_size",
    "gauge",
    "By",
    ("standby",),
    "WAL that a standby has not replayed.",
)
LEADER = Metric(
    "taskyard.taskdb.leader", "gauge", "", (), "1 on the replica that runs housekeeping, 0 on the others."
)
