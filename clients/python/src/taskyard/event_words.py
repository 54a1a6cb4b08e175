"""Event types of the audit trail in the words of a system that Taskyard replaces, and back."""

from __future__ import annotations

from collections.abc import Mapping

# Niyanta's word for each event type; `timed_out` and `exhausted` are failures there.
NIYANTA: Mapping[str, str] = {
    "task.created": "workload.created",
    "task.scheduled": "workload.scheduled",
    "task.started": "workload.started",
    "task.checkpoint_created": "workload.checkpoint_created",
    "task.progress_updated": "workload.progress_updated",
    "task.paused": "workload.paused",
    "task.resumed": "workload.resumed",
    "task.failed": "workload.failed",
    "task.timed_out": "workload.failed",
    "task.exhausted": "workload.failed",
    "task.succeeded": "workload.completed",
    "task.cancelled": "workload.cancelled",
    "task.redistributed": "workload.redistributed",
    "runner.registered": "worker.registered",
    "runner.heartbeat_missed": "worker.heartbeat_missed",
    "runner.marked_dead": "worker.marked_dead",
}


def to_niyanta(event_type: str) -> str:
    """Niyanta's word for an event type; the event type itself where Niyanta has none."""
    return NIYANTA.get(event_type, event_type)


def niyanta_filter(word: str) -> str:
    """The filter of ListAuditEvents for one of Niyanta's words; raises ValueError for an unknown one."""
    found = [ours for ours, theirs in NIYANTA.items() if theirs == word]
    if not found:
        raise ValueError(f"{word!r} is none of {', '.join(sorted(set(NIYANTA.values())))}")
    return "(" + " OR ".join(f'event_type = "{event_type}"' for event_type in found) + ")"
