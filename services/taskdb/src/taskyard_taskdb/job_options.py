"""What operators decide about the jobs of housekeeping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

AUDIT_AGE = timedelta(days=365)
RUNNER_AGE = timedelta(days=7)


@dataclass(frozen=True)
class JobOptions:
    """Ages and the hour of the night, in UTC."""

    archive_untyped: bool = True
    audit_age: timedelta = AUDIT_AGE
    runner_age: timedelta = RUNNER_AGE
    hour: int = 3
