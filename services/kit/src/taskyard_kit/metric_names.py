"""Every metric of the kit: name, kind, unit, labels and description. Code refers to these constants only.

Names follow OpenTelemetry (dots); the Prometheus endpoint shows `taskyard.rpc.duration` as
`taskyard_rpc_duration_seconds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric; `labels` lists the allowed labels, so that their number stays bounded.

    A histogram has `buckets`, the upper bounds that fit what it measures.
    """

    name: str
    kind: Literal["counter", "updown", "histogram", "gauge"]
    unit: str
    labels: tuple[str, ...]
    about: str
    buckets: tuple[float, ...] = ()


# Upper bounds in seconds: calls from a look-up in memory to the longest deadline, jobs from a page to hours.
CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
JOB_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)
RPC_DURATION = Metric(
    "taskyard.rpc.duration",
    "histogram",
    "s",
    ("method", "code"),
    "Time from the arrival of a call to its end, streams included.",
    CALL_BUCKETS,
)
RPC_OPEN_STREAMS = Metric(
    "taskyard.rpc.open_streams", "updown", "{stream}", ("method",), "Open streaming calls."
)


def catalogue() -> tuple[Metric, ...]:
    """All metrics declared in this module, by name."""
    return tuple(sorted((m for m in globals().values() if isinstance(m, Metric)), key=lambda m: m.name))
