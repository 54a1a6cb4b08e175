"""Every metric of the kit: name, kind, unit, labels and description. Code refers to these constants only.

Names follow OpenTelemetry (dots); the Prometheus endpoint shows `taskyard.rpc.duration` as
`taskyard_rpc_duration_seconds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric; `labels` lists the allowed labels, so that their number stays bounded."""

    name: str
    kind: Literal["counter", "updown", "histogram", "gauge"]
    unit: str
    labels: tuple[str, ...]
    about: str


RPC_DURATION = Metric(
    "taskyard.rpc.duration",
    "histogram",
    "s",
    ("method", "code"),
    "Time from the arrival of a call to its end, streams included.",
)
RPC_OPEN_STREAMS = Metric(
    "taskyard.rpc.open_streams", "updown", "{stream}", ("method",), "Open streaming calls."
)


def catalogue() -> tuple[Metric, ...]:
    """All metrics declared in this module, by name."""
    return tuple(sorted((m for m in globals().values() if isinstance(m, Metric)), key=lambda m: m.name))
