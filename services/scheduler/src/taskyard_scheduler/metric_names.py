"""The scheduler's metrics; kit's metric_names defines Metric."""

from __future__ import annotations

from taskyard_kit.metric_names import CALL_BUCKETS, Metric

SESSIONS = Metric("taskyard.scheduler.sessions", "gauge", "{session}", (), "Runners connected here.")
CAPACITY = Metric(
    "taskyard.scheduler.capacity",
    "gauge",
    "{task}",
    ("state",),
    "Capacity of the runners connected here: used and free.",
)
LANES = Metric("taskyard.scheduler.lanes", "gauge", "{lane}", (), "Lanes with claimable work.")
ASSIGNED = Metric(
    "taskyard.scheduler.assigned", "counter", "{task}", ("way",), "Tasks handed out, over link or pull."
)
GIVEN_BACK = Metric(
    "taskyard.scheduler.given_back",
    "counter",
    "{task}",
    (),
    "Claimed tasks that were released because their runner was gone before dispatch.",
)
CLAIM_DURATION = Metric(
    "taskyard.scheduler.claim_duration",
    "histogram",
    "s",
    (),
    "Time that one claim for all runners took in taskdb.",
    CALL_BUCKETS,
)
REPORTS_REJECTED = Metric(
    "taskyard.scheduler.reports_rejected",
    "counter",
    "{report}",
    ("code",),
    "Reports that taskdb rejected permanently, such as those of a lost lease.",
)
SESSIONS_ENDED = Metric(
    "taskyard.scheduler.sessions_ended", "counter", "{session}", ("reason",), "Streams that ended, and why."
)
