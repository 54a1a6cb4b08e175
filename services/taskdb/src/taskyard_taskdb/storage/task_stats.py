"""Statistics of tasks, folded from the change log: what is asked for is added up from a few rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard_taskdb.domain.stats import Stats
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.statements import statement

# About 20 ms of one core for PostgreSQL.
PAGE = 2000
QUARTER = timedelta(minutes=15)
MOST_GROUPS = 1000
_RUN = 1


@dataclass(frozen=True, slots=True)
class StatsQuery:
    """Of which tasks, by creation in [start, end), in which groups; no tenant means all of them."""

    tenant_id: str | None
    start: datetime
    end: datetime
    by_tenant: bool = False
    by_type: bool = False


async def fold(pool: Pool, until: int, pages: int = 20) -> bool:
    """Count the changes up to `until`, a decided id; False if there is more, or another is at it."""
    for _ in range(pages):
        done = await pool.run(lambda tx: _fold_page(tx, until))
        if done is not None:
            return done
    return False


async def _fold_page(tx: Tx, until: int) -> bool | None:
    """Whether all is counted; None after a full page."""
    row = await tx.fetch_row(statement("lock_stats_place"))
    if row is None:
        return False
    after: int = row[0]
    last = await tx.fetch_row(statement("end_of_range"), {"after": after, "until": until, "limit": PAGE})
    end = (last[0] if last else None) or 0
    if end > after:
        await tx.execute(statement("fold_changes"), {"after": after, "until": end})
        return None if end < until else True
    return True


async def forget(tx: Tx, before: datetime) -> int:
    """Forget counts of tasks created before this time."""
    values = {"before": before}
    return await tx.execute(statement("forget_stats"), values) + await tx.execute(
        statement("forget_durations"), values
    )


async def read(tx: Tx, query: StatsQuery) -> list[Stats]:
    """The groups, largest first; with neither dimension there is exactly one."""
    values = {
        "tenant": query.tenant_id,
        "start": query.start,
        "end": query.end,
        "by_tenant": query.by_tenant,
        "by_type": query.by_type,
    }
    groups: dict[tuple[str, str], Stats] = {}
    if not (query.by_tenant or query.by_type):
        groups["", ""] = Stats({})
    for tenant_id, task_type, phase, count, retries in await tx.fetch(statement("read_counts"), values):
        found = _group(groups, query, tenant_id, task_type)
        if count > 0:
            found.phases[Phase(phase)] = count
        found.retry_count += retries
    for tenant_id, task_type, kind, *step in await tx.fetch(statement("read_durations"), values):
        found = _group(groups, query, tenant_id, task_type)
        (found.run if kind == _RUN else found.queue).add(*step)
    ordered = sorted(groups.values(), key=lambda stats: -stats.total)[:MOST_GROUPS]
    for stats in ordered:
        stats.oldest_pending = await _oldest(tx, query, stats)
    return ordered


def _group(groups: dict[tuple[str, str], Stats], query: StatsQuery, tenant_id: str, task_type: str) -> Stats:
    name = {"tenant": tenant_id} if query.by_tenant else {}
    if query.by_type:
        name["task_type"] = task_type
    return groups.setdefault((tenant_id, task_type), Stats(name))


async def _oldest(tx: Tx, query: StatsQuery, stats: Stats) -> float | None:
    """Asked for only where a task waits: the search ends at the first one."""
    if not stats.phases.get(Phase.PENDING):
        return None
    tenant_id = stats.group.get("tenant", query.tenant_id)
    name = "oldest_pending" if tenant_id is not None else "oldest_pending_of_all"
    values = {"tenant": tenant_id, "type": stats.group.get("task_type")}
    row = await tx.fetch_row(statement(name), values)
    return row[0] if row else None


async def folded_at(tx: Tx) -> datetime:
    """How fresh the numbers are."""
    row = await tx.fetch_row(statement("stats_time"))
    assert row is not None, "the schema comes with a place"
    made: datetime = row[0]
    return made
