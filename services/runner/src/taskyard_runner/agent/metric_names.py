"""The runner's own metrics; kit's metric_names defines Metric."""

from __future__ import annotations

from taskyard_kit.metric_names import Metric

RUNS_ENDED = Metric(
    "taskyard.runner.runs_ended",
    "counter",
    "{run}",
    ("outcome",),
    "Runs that ended on this runner, by the kind of report (aborted = none).",
)
REPORTS_REJECTED = Metric(
    "taskyard.runner.reports_rejected",
    "counter",
    "{report}",
    ("reason",),
    "Reports that were not applied and never will be, such as those of a lost lease.",
)
LINKS_LOST = Metric(
    "taskyard.runner.links_lost", "counter", "{link}", ("reason",), "Streams to the scheduler that broke."
)
SPOOL_DEPTH = Metric(
    "taskyard.runner.spool_depth", "gauge", "{report}", (), "Reports that are not acknowledged yet."
)
RUNS_ACTIVE = Metric("taskyard.runner.runs_active", "gauge", "{run}", (), "Runs that take up capacity now.")
