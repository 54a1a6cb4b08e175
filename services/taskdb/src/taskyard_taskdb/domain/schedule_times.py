"""When a schedule fires: the instants of its cron lines and its interval, and the jitter of each."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from taskyard_taskdb.domain import cron
from taskyard_taskdb.domain.cron import Instant, Note

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Planned:
    """An instant and when its task is created."""

    time: datetime
    fire_time: datetime
    note: Note = Note.NONE


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a schedule. `lines` are parsed cron lines; `uid` decides the jitter of each instant."""

    uid: str
    lines: tuple[str, ...] = ()
    every: timedelta | None = None
    offset: timedelta = timedelta(0)
    zone: ZoneInfo = UTC_ZONE
    start_time: datetime | None = None
    end_time: datetime | None = None
    jitter: timedelta = timedelta(0)

    def after(self, time: datetime) -> Iterator[Planned]:
        """The instants after a time, in order, each with its jitter."""
        found = self._instants(time)
        instant = next(found, None)
        while instant is not None:
            following = next(found, None)
            yield Planned(instant.time, instant.time + self._delay(instant, following), instant.note)
            instant = following

    def first_after(self, time: datetime) -> Planned | None:
        """The first instant after a time; None where the schedule ends."""
        return next(self.after(time), None)

    def at_or_after(self, time: datetime) -> Iterator[Planned]:
        """The instants from a time on."""
        return self.after(time - _MICROSECOND)

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """The instants from `start` to before `end`; no more than `most`."""
        found = takewhile(lambda planned: planned.time < end, self.at_or_after(start))
        return [planned.time for planned in islice(found, most)]

    def _instants(self, time: datetime) -> Iterator[Instant]:
        if self.start_time is not None:
            time = max(time, self.start_time - _MICROSECOND)
        sources = [cron.instants(line, self.zone, time) for line in self.lines]
        if self.every is not None:
            sources.append(_multiples(self.every, self.offset, time))
        last = time
        for instant in heapq.merge(*sources):
            if self.end_time is not None and instant.time >= self.end_time:
                return
            if instant.time > last:
                last = instant.time
                yield instant

    def _delay(self, instant: Instant, following: Instant | None) -> timedelta:
        """The jitter: below the limit and below the time to the next instant, so that the order is kept."""
        limit = self.jitter
        if following is not None:
            limit = min(limit, following.time - instant.time)
        steps = limit // _MILLISECOND
        if not steps:
            return timedelta(0)
        text = f"{self.uid}/{instant.time.isoformat()}"
        drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        return drawn % steps * _MILLISECOND


def _multiples(every: timedelta, offset: timedelta, after: datetime) -> Iterator[Instant]:
    count = (after - EPOCH - offset) // every
    while True:
        count += 1
        try:
            yield Instant(EPOCH + offset + count * every)
        except OverflowError:
            return


def basic_format(time: datetime) -> str:
    """The instant in UTC as it ends the id of a task: 20261118T030000Z."""
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S}Z"


def extended_format(time: datetime) -> str:
    """The instant in UTC as workloads and events show it: 2026-11-18T03:00:00Z."""
    shown = time.astimezone(UTC).replace(tzinfo=None)
    return shown.isoformat(timespec="seconds" if shown.microsecond == 0 else "microseconds") + "Z"
