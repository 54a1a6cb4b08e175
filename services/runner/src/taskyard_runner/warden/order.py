"""The agent's order: one process with its limits, deadlines and lease, parsed from the message `start`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskyard_runner.warden.cgroup import Limits
from taskyard_runner.warden.protocol import Message


@dataclass(frozen=True)
class Order:
    """The order to start a run. Times are boot times, durations seconds; None = none."""

    run: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    token: str
    limits: Limits
    lease_until: float
    # The lease's end stops the work at once (FORBID), or after `orphan_seconds` (ALLOW).
    forbid_overlap: bool
    orphan_seconds: float
    attempt_seconds: float | None
    total_until: float | None
    silence_seconds: float | None
    grace_seconds: float
    # Command to run if the process was killed: it removes the container that a host left.
    cleanup: Sequence[str]
    # Given back to the next agent; the warden does not read it.
    meta: Mapping[str, Any]
    # The run's own user and group; None = the warden's.
    user: tuple[int, int] | None = None
    # The process is an intermediary between warden and workload: SIGTERM goes to its children.
    shielded: bool = False
    # A function host: its end is no loss by itself.
    host: bool = False

    @classmethod
    def parse(cls, message: Message) -> Order:
        """Raises KeyError, TypeError or ValueError if something is missing."""
        limits = message.get("limits", {})
        return cls(
            run=message["run"],
            argv=message["argv"],
            env=message["env"],
            cwd=message["cwd"],
            token=message["token"],
            user=tuple(message["user"]) if message.get("user") else None,
            shielded=bool(message.get("shielded")),
            limits=Limits(**{name: int(limits.get(name, 0)) for name in Limits.__dataclass_fields__}),
            lease_until=float(message["lease_until"]),
            forbid_overlap=bool(message["forbid_overlap"]),
            orphan_seconds=float(message.get("orphan_seconds", 0)),
            attempt_seconds=message.get("attempt_seconds"),
            total_until=message.get("total_until"),
            silence_seconds=message.get("silence_seconds"),
            grace_seconds=float(message["grace_seconds"]),
            cleanup=message.get("cleanup", ()),
            meta=message["meta"],
            host=bool(message.get("host")),
        )
