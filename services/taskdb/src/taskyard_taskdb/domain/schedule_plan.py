"""What a schedule does with its due instants: one may fire, the others are missed for a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from itertools import islice, takewhile

from taskyard_taskdb.domain.schedule_times import Planned, Times
from taskyard_taskdb.domain.words import Admission

# An instant is punctual up to this delay: a change of the leader takes seconds.
PUNCTUAL = timedelta(minutes=1)
# Instants of one schedule that one transaction handles.
PAGE = 500
CATCH_UP_WINDOW = timedelta(hours=24)


class Missed(IntEnum):
    """What happens to instants that were not handled in time (MissedPolicy)."""

    LATEST = 1
    ALL = 2
    NONE = 3


class Overlap(IntEnum):
    """What an instant does while an earlier task is live (ScheduleOverlap)."""

    SKIP = 1
    QUEUE = 2
    QUEUE_LATEST = 3
    REPLACE = 4
    ALLOW = 5


ADMISSIONS = {
    Overlap.SKIP: Admission.DROP_IF_RUNNING,
    Overlap.QUEUE: Admission.QUEUE,
    Overlap.QUEUE_LATEST: Admission.QUEUE_LATEST,
    Overlap.REPLACE: Admission.REPLACE,
}


class Reason(StrEnum):
    """Why an instant was missed; a refused task has the reason of its error instead."""

    # A later instant was due as well, and the policy is LATEST.
    SUPERSEDED = "SUPERSEDED"
    # Older than the catch-up window, or the policy is NONE.
    TOO_LATE = "TOO_LATE"
    PAUSED = "PAUSED"
    # The times of the schedule were changed, or it was deleted, before the instant was handled.
    CHANGED = "CHANGED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: the instants to miss, the one to fire after them, and where the schedule goes on."""

    missed: tuple[tuple[datetime, str], ...]
    fire: datetime | None
    next: Planned | None


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for late instants."""

    missed: Missed = Missed.LATEST
    window: timedelta = CATCH_UP_WINDOW


def plan(
    times: Times,
    policy: Policy,
    cursor: datetime,
    now: datetime,
    *,
    paused: bool = False,
    skip_until: datetime | None = None,
    page: int = PAGE,
) -> Plan:
    """The plan for the due instants from the cursor on, at most a page of them."""
    due: list[Planned] = []
    following: Planned | None = None
    for instant in times.at_or_after(cursor):
        if instant.fire_time > now or len(due) == page:
            following = instant
            break
        due.append(instant)
    if paused:
        # A paused schedule has no next instant once what was due before has its events.
        more = following is not None and following.fire_time <= now
        return Plan(tuple((d.time, Reason.PAUSED) for d in due), None, following if more else None)
    missed: list[tuple[datetime, str]] = []
    for position, instant in enumerate(due):
        reason = _reason(policy, instant, due, following, now, skip_until)
        if reason is None:
            rest = due[position + 1 :]
            return Plan(tuple(missed), instant.time, rest[0] if rest else following)
        missed.append((instant.time, reason))
    return Plan(tuple(missed), None, following)


def _reason(
    policy: Policy,
    instant: Planned,
    due: list[Planned],
    following: Planned | None,
    now: datetime,
    skip_until: datetime | None,
) -> Reason | None:
    """Why a due instant is missed; None if it fires."""
    if skip_until is not None and instant.time <= skip_until:
        return Reason.PAUSED
    window = PUNCTUAL if policy.missed is Missed.NONE else policy.window
    # Whoever handles an instant within the minute is not late, whatever the window.
    if now - instant.fire_time > max(window, PUNCTUAL):
        return Reason.TOO_LATE
    later_is_due = instant is not due[-1] or (following is not None and following.fire_time <= now)
    if policy.missed is not Missed.ALL and later_is_due:
        return Reason.SUPERSEDED if policy.missed is Missed.LATEST else Reason.TOO_LATE
    return None


def overdue(times: Times, cursor: datetime, now: datetime, most: int) -> list[datetime]:
    """The due instants from the cursor on that nobody has handled; no more than `most`."""
    found = takewhile(lambda instant: instant.fire_time <= now, times.at_or_after(cursor))
    return [instant.time for instant in islice(found, most)]
