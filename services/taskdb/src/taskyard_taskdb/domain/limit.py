"""Named limits: whether the units of a task fit, and from when on. Pure; the caller holds the locks."""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

MAX_LIMITS = 8
MAX_UNITS = 1_000_000
# Starts that lie this part of a duration apart may count as one entry, with the time of the later one. So a
# window has a bounded number of entries, and a limit that is always used reaches 1/(1 + 1/500) of its rate.
ENTRIES_PER_WINDOW = 500
_TICK = timedelta(microseconds=1)


class LimitUse(NamedTuple):
    """An entry of spec.limits; the limit is one of the same tenant."""

    limit_id: str
    key: str = ""
    units: int = 1


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` units start within each span of `per`."""

    count: int
    per: timedelta


class Rules(NamedTuple):
    """The definition of a limit; 0 and None bound nothing."""

    max_running: int = 0
    max_running_per_key: int = 0
    starts: Rate | None = None
    starts_per_key: Rate | None = None

    @property
    def bounds_nothing(self) -> bool:
        """Whether every task fits at any time."""
        return not any(self)

    def most_units(self) -> int | None:
        """The most units that a task may take; None for any number."""
        bounds = [self.max_running, self.max_running_per_key]
        bounds += [rate.count for rate in (self.starts, self.starts_per_key) if rate is not None]
        return min((bound for bound in bounds if bound), default=None)


UNBOUNDED = Rules()


class Closed(NamedTuple):
    """The bound that leaves no room, how much of it is in use, and when it opens if time alone opens it."""

    bound: str
    most: int
    used: int
    open_time: datetime | None = None
    # It holds back the tasks of one key only.
    of_key: bool = False


class Entry(NamedTuple):
    """Units that started, and when the last of them did."""

    time: datetime
    units: int


@dataclass(slots=True)
class Gauge:
    """What is held and what has started lately: of a limit as a whole, or of one of its keys."""

    held: int = 0
    # In the order of their times.
    entries: list[Entry] = field(default_factory=list)

    def started(self, since: datetime) -> int:
        """The units that started at this time or later."""
        first = bisect_left(self.entries, since, key=lambda entry: entry.time)
        return sum(entry.units for entry in self.entries[first:])

    def add_start(self, units: int, now: datetime) -> None:
        """Count a start."""
        self.entries.append(Entry(now, units))


def entry_time(now: datetime, per: timedelta) -> datetime:
    """The entry to which a start belongs: all starts of one entry lie less than a part of `per` apart."""
    width = max(per // ENTRIES_PER_WINDOW, _TICK)
    start = datetime.min.replace(tzinfo=now.tzinfo)
    return now - (now - start) % width


def find_closed(rules: Rules, total: Gauge, of_key: Gauge, units: int, now: datetime) -> Closed | None:
    """The first bound without room for these units; None if they fit.

    A task with more units than a bound has, since that was lowered, fits while nothing else is in use.
    """
    running = (
        ("max_running", rules.max_running, total, False),
        ("max_running_per_key", rules.max_running_per_key, of_key, True),
    )
    for bound, most, gauge, is_of_key in running:
        if most and gauge.held + min(units, most) > most:
            return Closed(bound, most, gauge.held, of_key=is_of_key)
    rates = (("starts", rules.starts, total, False), ("starts_per_key", rules.starts_per_key, of_key, True))
    for bound, rate, gauge, is_of_key in rates:
        if rate is not None and (later := _open_time(rate, gauge, units, now)) is not None:
            return Closed(bound, rate.count, gauge.started(now - rate.per), later, is_of_key)
    return None


def _open_time(rate: Rate, gauge: Gauge, units: int, now: datetime) -> datetime | None:
    """When the units fit; None if they do now.

    A start counts for `per` and the instant at its end, so that no closed span of that length has more.
    """
    excess = gauge.started(now - rate.per) + min(units, rate.count) - rate.count
    if excess <= 0:
        return None
    later = now
    for entry in gauge.entries:
        if entry.time < now - rate.per:
            continue
        excess -= entry.units
        later = entry.time + rate.per + _TICK
        if excess <= 0:
            break
    return later
