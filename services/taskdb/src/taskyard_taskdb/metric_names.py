"""taskdb's own metrics; kit's metric_names says what a Metric is."""

from __future__ import annotations

from taskyard_kit.metric_names import Metric

JOB_RUNS = Metric(
    "taskyard.taskdb.job.runs",
    "counter",
    "{run}",
    ("job", "outcome"),
    "Runs of a job of housekeeping by this replica: done or failed.",
)
JOB_ITEMS = Metric(
    "taskyard.taskdb.job.items", "counter", "{item}", ("job",), "What jobs have moved, deleted or made."
)
JOB_DURATION = Metric("taskyard.taskdb.job.duration", "histogram", "s", ("job",), "How long a job ran.")
JOB_AGE = Metric(
    "taskyard.taskdb.job.age",
    "gauge",
    "s",
    ("job",),
    "Time since a job last ended well, as the leader knows it; alarm on a few periods of it.",
)
WEBHOOK_CALLS = Metric(
    "taskyard.taskdb.webhook.calls",
    "counter",
    "{call}",
    ("outcome",),
    "Calls of webhooks: delivered, failed (and repeated later) or given_up.",
)
WEBHOOK_PENDING = Metric(
    "taskyard.taskdb.webhook.pending", "gauge", "{call}", (), "Webhooks that were not delivered yet."
)
WEBHOOK_OLDEST = Metric(
    "taskyard.taskdb.webhook.oldest", "gauge", "s", (), "Age of the oldest webhook that was not delivered."
)
DOCTOR_FINDINGS = Metric(
    "taskyard.taskdb.doctor.findings",
    "gauge",
    "{finding}",
    ("check",),
    "What each check of the last RunDoctor of this replica found and did not repair; 0 is healthy.",
)
DOCTOR_REPAIRED = Metric(
    "taskyard.taskdb.doctor.repaired", "counter", "{finding}", ("check",), "What RunDoctor has repaired."
)
