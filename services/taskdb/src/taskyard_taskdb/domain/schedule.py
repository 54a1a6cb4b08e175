"""When a job of housekeeping is due, from how its last run went."""

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

# A run without a heartbeat for this time was interrupted: its process ended, or it lost the leadership. Each
# page is a heartbeat and takes a fraction of a second.
SILENCE = timedelta(seconds=30)
# A failed run is repeated after this time, and after twice as long each time up to the longest.
FIRST_RETRY = timedelta(minutes=1)
LONGEST_RETRY = timedelta(hours=1)
# A night's work that never was done is not begun while everything starts.
FIRST_NIGHT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class JobRun:
    """How the last run of a job went; without an end it is under way or was interrupted."""

    job: str
    run: int
    start_time: datetime
    seen_time: datetime
    end_time: datetime | None
    success_time: datetime | None
    item_count: int
    # Runs that failed since the last success.
    failure_count: int
    error: str | None

    def is_under_way(self, now: datetime) -> bool:
        """Whether a replica is running it, according to its record."""
        return self.end_time is None and now < self.seen_time + SILENCE


def due_time(schedule: Schedule, last: JobRun | None, noticed: datetime) -> datetime:
    """When a job is to run next; `noticed` is when it was first seen."""
    if last is None:
        return next_run(schedule, None, noticed)
    if last.end_time is None:
        return last.seen_time + SILENCE
    if last.error is not None:
        return last.end_time + _retry_delay(last.failure_count)
    return next_run(schedule, last.start_time, noticed)


def _retry_delay(failures: int) -> timedelta:
    if failures < 1:
        return timedelta(0)
    return min(FIRST_RETRY * (1 << min(failures - 1, 30)), LONGEST_RETRY)


def next_run(schedule: Schedule, last: datetime | None, noticed: datetime) -> datetime:
    """When a job that last began at `last` is due; `noticed` is when it was first seen."""
    if last is None:
        return noticed + FIRST_NIGHT if isinstance(schedule, Nightly) else noticed
    if isinstance(schedule, Every):
        return last + schedule.period
    moment = datetime.combine(last.astimezone(UTC).date(), time(schedule.hour, tzinfo=UTC))
    return moment if moment > last else moment + timedelta(days=1)
