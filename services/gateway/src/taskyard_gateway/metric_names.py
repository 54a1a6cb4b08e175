"""The gateway's own metrics; kit's metric_names says what a Metric is."""

from __future__ import annotations

from taskyard_kit.metric_names import CALL_BUCKETS, Metric

REQUEST_DURATION = Metric(
    "taskyard.gateway.request_duration",
    "histogram",
    "s",
    ("rpc", "status"),
    "Time from the headers of a request to the end of its answer, streams included.",
    CALL_BUCKETS,
)
OPEN_STREAMS = Metric(
    "taskyard.gateway.open_streams", "updown", "{stream}", ("rpc",), "Event streams that are open now."
)
CONNECTIONS = Metric(
    "taskyard.gateway.connections", "gauge", "{connection}", (), "Connections of clients that are open now."
)
REFUSED = Metric(
    "taskyard.gateway.refused",
    "counter",
    "{request}",
    ("reason",),
    "Requests refused before they were read: too large, too slow, too many.",
)
