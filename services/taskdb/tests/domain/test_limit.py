"""Rates of limits: no span of their duration has more starts than they allow, and nearly all are used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from taskyard_taskdb.domain import limit
from taskyard_taskdb.domain.limit import Closed, Entry, Gauge, Rate, Rules

START = datetime(2026, 11, 18, tzinfo=UTC)


class Starts:
    """The entries that a database would hold: starts that lie close together share one."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.entries: dict[datetime, Entry] = {}
        self.log: list[Entry] = []

    def gauge(self) -> Gauge:
        return Gauge(entries=sorted(self.entries.values()))

    def start(self, units: int, now: datetime) -> None:
        place = limit.entry_time(now, self.rate.per)
        before = self.entries.get(place, Entry(now, 0))
        self.entries[place] = Entry(now, before.units + units)
        self.log.append(Entry(now, units))

    def try_start(self, units: int, now: datetime) -> Closed | None:
        closed = limit.find_closed(Rules(starts=self.rate), self.gauge(), Gauge(), units, now)
        if closed is None:
            self.start(units, now)
        return closed

    def most_in_a_span(self) -> int:
        """The most units of any closed span; the worst one begins with a start."""
        times = [entry.time for entry in self.log]
        sums = [0, *accumulate(entry.units for entry in self.log)]
        worst, end = 0, 0
        for begin, time in enumerate(times):
            while end < len(times) and times[end] <= time + self.rate.per:
                end += 1
            worst = max(worst, sums[end] - sums[begin])
        return worst


@settings(deadline=None)
@given(
    st.integers(1, 20),
    st.integers(100, 100_000),
    st.lists(st.tuples(st.integers(0, 50_000), st.integers(1, 5)), max_size=200),
)
def test_no_span_of_the_duration_has_more_starts(
    count: int, per_ms: int, arrivals: list[tuple[int, int]]
) -> None:
    starts = Starts(Rate(count, timedelta(milliseconds=per_ms)))
    now = START
    for wait_ms, units in arrivals:
        now += timedelta(milliseconds=wait_ms)
        fitting = min(units, count)
        closed = starts.try_start(fitting, now)
        if closed is not None:
            assert closed.open_time is not None and closed.open_time > now
            # It opens at that time and no sooner.
            early = closed.open_time - timedelta(microseconds=1)
            assert limit.find_closed(Rules(starts=starts.rate), starts.gauge(), Gauge(), fitting, early)
            assert starts.try_start(fitting, closed.open_time) is None
            now = closed.open_time
    assert starts.most_in_a_span() <= count


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 50), st.sampled_from([1.0, 5.0, 60.0]), st.integers(0, 10**6))
def test_a_minute_of_waiting_work_uses_nearly_all_starts(count: int, per: float, offset: int) -> None:
    starts = Starts(Rate(count, timedelta(seconds=per)))
    begin = now = START + timedelta(microseconds=offset)
    while now < begin + timedelta(minutes=1):
        closed = starts.try_start(1, now)
        now = now + timedelta(milliseconds=1) if closed is None else closed.open_time or now
    assert starts.most_in_a_span() <= count
    used = sum(entry.units for entry in starts.log)
    assert used >= 0.99 * count * 60 / per


def test_a_window_has_a_bounded_number_of_entries() -> None:
    starts = Starts(Rate(10**6, timedelta(seconds=10)))
    for number in range(5000):
        starts.start(1, START + timedelta(milliseconds=2 * number))
    assert len(starts.entries) <= limit.ENTRIES_PER_WINDOW + 1


def test_the_first_closed_bound_is_named() -> None:
    rules = Rules(max_running=3, max_running_per_key=2)
    assert limit.find_closed(rules, Gauge(2), Gauge(1), 1, START) is None
    assert limit.find_closed(rules, Gauge(3), Gauge(2), 1, START) == Closed("max_running", 3, 3)
    of_key = limit.find_closed(rules, Gauge(2), Gauge(2), 1, START)
    assert of_key == Closed("max_running_per_key", 2, 2, of_key=True)


def test_the_most_units_are_those_of_the_narrowest_bound() -> None:
    assert Rules(max_running=9, starts_per_key=Rate(4, timedelta(1))).most_units() == 4
    assert Rules().most_units() is None
