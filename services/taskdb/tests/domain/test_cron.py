"""Instants of cron lines against an independent calculation, over all zones and both changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskyard_taskdb.domain import cron
from taskyard_taskdb.domain.cron import CronInvalid, Note

_MINUTE = timedelta(minutes=1)
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
ZONES = sorted(available_timezones())


def _field(text: str, low: int, high: int) -> set[int]:
    """The values of a field: lists of *, n, a-b, with steps; written anew for this test."""
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first, last = int(span), high if step else int(span)
        values |= set(range(first, last + 1, int(step or 1)))
    return values


class _Line:
    """A line that is tried on every minute of the calendar."""

    def __init__(self, text: str) -> None:
        texts = text.split()
        parts = [_field(field, *limits) for field, limits in zip(texts, _LIMITS, strict=True)]
        self.minutes, self.hours, self.days, self.months, self.weekdays = parts
        self.weekdays = {day % 7 for day in self.weekdays}
        self.both = texts[2].startswith("*") or texts[4].startswith("*")
        self.fixed = not texts[0].startswith("*") and not texts[1].startswith("*")

    def matches(self, wall: datetime) -> bool:
        day, weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        on_day = (day and weekday) if self.both else (day or weekday)
        return (
            wall.minute in self.minutes and wall.hour in self.hours and wall.month in self.months and on_day
        )


def expected(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Minute by minute in UTC: what the wall clock shows, which wall times it leaps over and repeats."""
    line, found = _Line(text), []
    shown: set[datetime] = set()
    # Some hours of wall times before the start show which of them are repeated.
    moment = start - timedelta(hours=4)
    before = moment.astimezone(zone).replace(tzinfo=None, fold=0) - _MINUTE
    while moment < end:
        wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        matches = line.matches(wall)
        if line.fixed:
            matches = matches and wall not in shown
            # Wall times that the clock leapt over run now, once.
            leapt = before + _MINUTE
            while leapt < wall:
                matches = matches or line.matches(leapt)
                leapt += _MINUTE
        if matches and moment > start:
            found.append(moment)
        shown.add(wall)
        before = wall
        moment += _MINUTE
    return found


@cache
def changes(name: str) -> list[datetime]:
    """The minutes at which a zone changes its offset, in 2025 to 2027."""
    zone, found = ZoneInfo(name), []
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    while begin.year < 2028:
        offset = begin.astimezone(zone).utcoffset()
        later = begin + timedelta(days=1)
        if later.astimezone(zone).utcoffset() != offset:
            minutes = (begin + count * _MINUTE for count in range(1, 1441))
            found.append(next(m for m in minutes if m.astimezone(zone).utcoffset() != offset))
        begin = later
    return found


def _texts(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    one = number.map(str)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.one_of(st.just("*"), span, one), st.integers(1, high)).map(
        lambda p: f"{p[0]}/{p[1]}"
    )
    lists = st.lists(st.one_of(one, span), min_size=2, max_size=4).map(",".join)
    return st.one_of(st.just("*"), one, span, steps, lists)


# Days are often free, so that a range of three days has instants.
_DAY = st.one_of(st.just("*"), st.just("*"), _texts(1, 28))
LINES = st.tuples(
    _texts(0, 59),
    _texts(0, 23),
    _DAY,
    st.one_of(st.just("*"), _texts(1, 12)),
    st.one_of(st.just("*"), _texts(0, 7)),
).map(" ".join)


@settings(deadline=None, max_examples=150)
@given(line=LINES, zone=st.sampled_from(ZONES), data=st.data())
def test_instants_equal_an_independent_calculation(line: str, zone: str, data: st.DataObject) -> None:
    found = changes(zone)
    centre = (
        data.draw(st.sampled_from(found))
        if found
        else data.draw(st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31))).replace(tzinfo=UTC)
    )
    begin = centre.replace(second=0, microsecond=0) - timedelta(minutes=data.draw(st.integers(0, 1500)))
    end = centre.replace(second=0, microsecond=0) + timedelta(hours=30)
    fields = cron.parse(line)
    made = takewhile(lambda i: i.time < end, cron.instants(fields, ZoneInfo(zone), begin))
    assert [instant.time for instant in made] == expected(line, ZoneInfo(zone), begin, end)


def test_every_zone_is_right_at_each_of_its_changes() -> None:
    lines = ("30 2 * * *", "*/20 * * * *", "0 0 * * *", "15,45 0-3 * * *", "*/15 0,2 * * *")
    # Zones with the same changes are links of each other.
    distinct = {tuple(changes(zone)): zone for zone in ZONES if changes(zone)}
    for zone in distinct.values():
        for change in (changes(zone)[0], changes(zone)[-1]):
            begin, end = change - timedelta(hours=4), change + timedelta(hours=25)
            for line in lines:
                made = takewhile(lambda i: i.time < end, cron.instants(line, ZoneInfo(zone), begin))  # noqa: B023
                assert [i.time for i in made] == expected(line, ZoneInfo(zone), begin, end), (
                    zone,
                    line,
                    change,
                )


def _local(line: str, zone: str, start: datetime, count: int) -> list[tuple[str, Note]]:
    made = cron.instants(cron.parse(line), ZoneInfo(zone), start)
    return [
        (f"{i.time.astimezone(ZoneInfo(zone)):%d %H:%M%z}", i.note)
        for i, _ in zip(made, range(count), strict=False)
    ]


def test_a_fixed_time_in_a_gap_runs_once_after_it() -> None:
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert _local("30 2 * * *", "Europe/Berlin", start, 2) == [
        ("29 03:00+0200", Note.AFTER_GAP),
        ("30 02:30+0200", Note.NONE),
    ]


def test_a_fixed_time_in_a_repeated_hour_runs_once() -> None:
    start = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert _local("30 2 * * *", "Europe/Berlin", start, 2) == [
        ("25 02:30+0200", Note.FIRST_OF_TWO),
        ("26 02:30+0100", Note.NONE),
    ]


def test_a_line_with_a_star_runs_in_both_of_two_hours() -> None:
    start = datetime(2026, 10, 24, 23, 59, tzinfo=UTC)
    assert _local("*/30 * * * *", "Europe/Berlin", start, 4) == [
        ("25 02:00+0200", Note.FIRST_OF_TWO),
        ("25 02:30+0200", Note.FIRST_OF_TWO),
        ("25 02:00+0100", Note.SECOND_OF_TWO),
        ("25 02:30+0100", Note.SECOND_OF_TWO),
    ]


@pytest.mark.parametrize(
    "line",
    ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 31 2 *", "0 0 30 2 *", "@sometimes", "a b c d e",
     "0 0 * * MOON",
     "*/0 * * * *", "5-1 * * * *", "0 0 L-W * *", "0 0 * * #", "0 0 * * 1#9"],
)  # fmt: skip
def test_a_line_that_is_not_cron_is_refused(line: str) -> None:
    with pytest.raises(CronInvalid, match=r"cron line|five fields"):
        cron.parse(line)


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "../etc/passwd", "/etc/passwd", "Europe", "x" * 300, "a\0b", "posix/"]
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no time zone"):
        cron.find_zone(name)


def test_aliases_are_lines() -> None:
    assert _local("@daily", "UTC", datetime(2026, 1, 1, 12, tzinfo=UTC), 1) == [("02 00:00+0000", Note.NONE)]
