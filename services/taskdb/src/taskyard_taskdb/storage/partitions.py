"""Makes the monthly partitions of the change log and the logs ahead of time."""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import UTC, datetime

from taskyard_taskdb.storage.pool import Tx

_TABLES = ("changes", "logs")
_EXISTING = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname ~ '^(changes|logs)_'"


async def ensure_partitions(tx: Tx, now: datetime, months: int = 3) -> int:
    """Makes the missing partitions of this month and the `months` after it; returns how many those were."""
    existing = {str(name) for (name,) in await tx.fetch(_EXISTING)}
    made = list(missing_partitions(existing, now, months))
    for statements in made:
        for statement in statements:
            await tx.execute(statement, prepare=False)
    return len(made)


def missing_partitions(existing: Set[str], now: datetime, months: int = 3) -> Iterator[tuple[str, str]]:
    """The statements for each partition that `existing`, the names of all tables, lacks."""
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    for ahead in range(months + 1):
        start, end = _add_months(first, ahead), _add_months(first, ahead + 1)
        for table in _TABLES:
            name = f"{table}_{start:%Y_%m}"
            if name not in existing:
                yield _create(table, name, start, end)


def _create(table: str, name: str, start: datetime, end: datetime) -> tuple[str, str]:
    # Attaching a finished table locks out no writer of the parent, as creating a partition in place would.
    # The default partition is scanned for rows of the month: it is empty unless partitions were missing
    # before.
    return (
        f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)",
        f"ALTER TABLE {table} ATTACH PARTITION {name} "
        f"FOR VALUES FROM ('{start.isoformat()}') TO ('{end.isoformat()}')",
    )


def _add_months(month: datetime, count: int) -> datetime:
    years, index = divmod(month.month - 1 + count, 12)
    return month.replace(year=month.year + years, month=index + 1)
