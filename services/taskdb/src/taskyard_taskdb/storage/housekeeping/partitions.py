"""Monthly partitions: made ahead of time, or for rows in a default partition; dropped when they are old."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime

from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.pool import Tx

# The partitioned tables and their partition column. MADE_AHEAD are written at the current time.
COLUMNS = {"changes": "time", "logs": "time", "tasks_archive": "end_time", "runs_archive": "end_time"}
MADE_AHEAD = ("changes", "logs")
_EXISTING = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname ~ '_[0-9]{4}_[0-9]{2}$'"
_MONTH = re.compile(r"_([0-9]{4})_([0-9]{2})$")


async def ensure_partitions(tx: Tx, now: datetime, months: int = 3) -> int:
    """Make the missing partitions of this month and the `months` after it; returns how many were made."""
    first = month_of(now)
    ahead = [_add_months(first, count) for count in range(months + 1)]
    return sum([await ensure_months(tx, table, ahead) for table in MADE_AHEAD])


async def ensure_months(tx: Tx, table: str, months: Iterable[datetime]) -> int:
    """Make the missing partitions of these months and move rows there from the default partition."""
    existing = {str(name) for (name,) in await tx.fetch(_EXISTING)}
    made = 0
    for month in sorted(set(months)):
        if _name(table, month) not in existing:
            await _make(tx, table, month)
            made += 1
    return made


async def stray_months(tx: Tx, table: str) -> list[datetime]:
    """Return the months that have rows in the default partition."""
    column = COLUMNS[table]
    sql = f"SELECT DISTINCT date_trunc('month', {column}, 'UTC') FROM {table}_default"
    return sorted(month for (month,) in await tx.fetch(sql, prepare=False))


async def old_partitions(tx: Tx, table: str, before: datetime) -> list[str]:
    """Return the partitions of a table whose month ends before `before`."""
    found = (str(name) for (name,) in await tx.fetch(_EXISTING))
    return sorted(name for name in found if name[:-8] == table and _add_months(_month(name), 1) <= before)


async def drop_partition(tx: Tx, name: str) -> None:
    """Drop a partition with its rows; writers of the table wait briefly."""
    if not _MONTH.search(name):
        raise ValueError(f"{name} is not the partition of a month")
    await tx.execute(f"DROP TABLE {name}", prepare=False)
    if name.startswith("changes_"):
        await seals.record_dropped(tx, _add_months(_month(name), 1))


def missing_partitions(existing: Set[str], now: datetime, months: int = 3) -> Iterator[tuple[str, str]]:
    """Yield the statements for each partition made ahead that is missing in `existing`, the table names."""
    first = month_of(now)
    for ahead in range(months + 1):
        start = _add_months(first, ahead)
        for table in MADE_AHEAD:
            if _name(table, start) not in existing:
                yield _create_sql(table, start), _attach_sql(table, start)


def month_of(time: datetime) -> datetime:
    """Return the first moment of the month, in UTC."""
    moment = time.astimezone(UTC)
    return datetime(moment.year, moment.month, 1, tzinfo=UTC)


async def _make(tx: Tx, table: str, start: datetime) -> None:
    name, end = _name(table, start), _add_months(start, 1)
    await tx.execute(_create_sql(table, start), prepare=False)
    strays = f"SELECT FROM {table}_default WHERE {_within(table, start, end)} LIMIT 1"
    if await tx.fetch(strays, prepare=False):
        # No writer may add to the default partition until the month is attached; readers see each row once.
        await tx.execute(f"LOCK TABLE {table}_default IN ACCESS EXCLUSIVE MODE", prepare=False)
        await tx.execute(_move_sql(table, name, start, end), prepare=False)
    await tx.execute(_attach_sql(table, start), prepare=False)


def _create_sql(table: str, start: datetime) -> str:
    like = f"LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES"
    return f"CREATE TABLE {_name(table, start)} ({like})"


def _attach_sql(table: str, start: datetime) -> str:
    # Attaching a table does not block writers of the parent; creating a partition in place would.
    # PostgreSQL scans the default partition, which must have no rows of the month.
    end = _add_months(start, 1)
    return (
        f"ALTER TABLE {table} ATTACH PARTITION {_name(table, start)} "
        f"FOR VALUES FROM ('{start.isoformat()}') TO ('{end.isoformat()}')"
    )


def _move_sql(table: str, name: str, start: datetime, end: datetime) -> str:
    return (
        f"WITH moved AS (DELETE FROM {table}_default WHERE {_within(table, start, end)} RETURNING *) "
        f"INSERT INTO {name} SELECT * FROM moved"
    )


def _within(table: str, start: datetime, end: datetime) -> str:
    column = COLUMNS[table]
    return f"{column} >= '{start.isoformat()}' AND {column} < '{end.isoformat()}'"


def _name(table: str, start: datetime) -> str:
    return f"{table}_{start:%Y_%m}"


def _month(name: str) -> datetime:
    match = _MONTH.search(name)
    assert match is not None, name
    return datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC)


def _add_months(month: datetime, count: int) -> datetime:
    years, index = divmod(month.month - 1 + count, 12)
    return month.replace(year=month.year + years, month=index + 1)
