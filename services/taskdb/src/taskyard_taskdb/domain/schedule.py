"""When a job of housekeeping is due, from when it last began."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again, this long after it last began."""

    period: timedelta


@dataclass(frozen=True, slots=True)
class Nightly:
    """Once a day, at a full hour of UTC."""

    hour: int = 3

    @property
    def period(self) -> timedelta:
        """The time between two runs."""
        return timedelta(days=1)


Schedule = Every | Nightly


# A night's work that never was done is not begun while everything starts.
FIRST_NIGHT = timedelta(minutes=10)


def next_run(schedule: Schedule, last: datetime | None, noticed: datetime) -> datetime:
    """When a job that last began at `last` is due; `noticed` is when somebody first looked."""
    if last is None:
        return noticed + FIRST_NIGHT if isinstance(schedule, Nightly) else noticed
    if isinstance(schedule, Every):
        return last + schedule.period
    moment = datetime.combine(last.astimezone(UTC).date(), time(schedule.hour, tzinfo=UTC))
    return moment if moment > last else moment + timedelta(days=1)
