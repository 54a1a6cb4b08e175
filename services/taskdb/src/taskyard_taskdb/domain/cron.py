"""The instants of a cron line in a time zone. cronsim finds the wall times, this module their instants.

Lines with a fixed minute and hour ("30 2 * * *": as in Debian's cron, neither field begins with a star) run
once a day whatever the clocks do: a wall time inside a gap runs right after it, one that occurs twice runs
the first time. All other lines ("*/15 * * * *") run whenever the wall clock matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_ONE_VALUE = re.compile(r"\b(\w+)-\1/\d+\b")
_SECOND = timedelta(seconds=1)
# No zone changes its offset twice within this time.
_STEP = timedelta(days=7)
# Wall times within this distance of the calendar's end cannot be converted.
_LAST = datetime(9990, 1, 1)


class CronInvalid(ValueError):
    """A line that is not cron, or that has no instant."""


class Note(IntEnum):
    """The effect of a daylight-saving change (DaylightSavingNote)."""

    NONE = 0
    AFTER_GAP = 1
    FIRST_OF_TWO = 2
    SECOND_OF_TWO = 3


class Instant(NamedTuple):
    """A point in time, in UTC, and what a daylight-saving change did to it."""

    time: datetime
    note: Note = Note.NONE


def find_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises ValueError for an unknown one."""
    try:
        return ZoneInfo(name)
    # KeyError for a name that is missing; files that are no zones, or out of the folder, raise the others.
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"{name!r} is no time zone; use an IANA name such as Europe/Berlin") from error


def parse(line: str) -> str:
    """The five fields of a line. Raises CronInvalid."""
    # cronsim reads a range of one value with a step, "3-3/5", as "3/5", which goes on to the end.
    fields = _ONE_VALUE.sub(r"\1", ALIASES.get(line.strip().lower(), line))
    if len(fields.split()) != _FIELDS:
        known = ", ".join(ALIASES)
        raise CronInvalid(
            f"{line!r} has not five fields (minute, hour, day, month, weekday), nor is it {known}"
        )
    try:
        CronSim(fields, datetime(2000, 1, 1))
    except (CronSimError, AssertionError, ValueError) as error:
        raise CronInvalid(f"{line!r} is not a cron line: {error or 'malformed'}") from None
    return fields


def instants(fields: str, zone: tzinfo, after: datetime) -> Iterator[Instant]:
    """The instants of parsed fields after a time, in order; ends where there is none within 50 years."""
    minute, hour = fields.split()[:2]
    fixed = not minute.startswith("*") and not hour.startswith("*")
    return _fixed(fields, zone, after) if fixed else _matching(fields, zone, after)


def _walls(fields: str, wall: datetime) -> Iterator[datetime]:
    """The matching wall times after one, without a zone."""
    for found in CronSim(fields, wall):
        if found >= _LAST:
            return
        yield found


def _fixed(fields: str, zone: tzinfo, after: datetime) -> Iterator[Instant]:
    # From wall times to instants the order is kept, so everything up to the wall time of `after` is over.
    last = after
    for wall in _walls(fields, after.astimezone(zone).replace(tzinfo=None, fold=0)):
        found = _instant(wall, zone)
        if found.time > last:
            last = found.time
            yield found


def _instant(wall: datetime, zone: tzinfo) -> Instant:
    """The first instant with this wall time or, if there is none, the end of the gap it lies in."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first == second:
        return Instant(first)
    if first < second:
        return Instant(first, Note.FIRST_OF_TWO)
    # In a gap: `second` is before the change of the offset and `first` is not.
    return Instant(_first_change(second, first, zone), Note.AFTER_GAP)


def _matching(fields: str, zone: tzinfo, after: datetime) -> Iterator[Instant]:
    # Wall times are those of one offset until the offset changes.
    time = after
    while True:
        offset = _offset(time, zone)
        change: datetime | None = None
        for wall in _walls(fields, (time + offset).replace(tzinfo=None)):
            found = wall.replace(tzinfo=UTC) - offset
            change = _change(time, found, zone)
            if change is not None:
                break
            yield Instant(found, _note(found, zone))
            time = found
        if change is None:
            return
        # The instant of the change itself may match.
        wall = (change + _offset(change, zone)).replace(tzinfo=None)
        if next(_walls(fields, wall - _SECOND), None) == wall:
            yield Instant(change, _note(change, zone))
        time = change


def _note(time: datetime, zone: tzinfo) -> Note:
    local = time.astimezone(zone)
    if local.utcoffset() == local.replace(fold=1 - local.fold).utcoffset():
        return Note.NONE
    return Note.SECOND_OF_TWO if local.fold else Note.FIRST_OF_TWO


def _offset(time: datetime, zone: tzinfo) -> timedelta:
    return time.astimezone(zone).utcoffset() or timedelta(0)


def _change(begin: datetime, end: datetime, zone: tzinfo) -> datetime | None:
    """The first instant after `begin`, up to `end`, with another offset; None if there is none."""
    while begin < end:
        near = min(begin + _STEP, end)
        if _offset(begin, zone) != _offset(near, zone):
            return _first_change(begin, near, zone)
        begin = near
    return None


def _first_change(begin: datetime, end: datetime, zone: tzinfo) -> datetime:
    """The first instant after `begin` with another offset; `end` has one."""
    before = _offset(begin, zone)
    low, high = 0, int((end - begin) / _SECOND)
    base = end - high * _SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(base + middle * _SECOND, zone) == before:
            low = middle
        else:
            high = middle
    return base + high * _SECOND
