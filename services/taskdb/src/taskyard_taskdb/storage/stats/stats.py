"""Statistics of tasks: folded from the change log, or computed from the tasks that match a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.stats import Stats
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read.condition import condition, possible_phases, sides
from taskyard_taskdb.storage.schema import leases, tasks
from taskyard_taskdb.storage.statements import statement

# About 20 ms of one core for PostgreSQL.
PAGE = 2000
QUARTER = timedelta(minutes=15)
MOST_GROUPS = 1000
# task_durations.kind: of successful runs, of waits, of the runs that ended otherwise.
_KINDS = {1: "run", 2: "queue", 3: "failed"}


@dataclass(frozen=True, slots=True)
class StatsQuery:
    """Tasks created in [start, end), and how to group them; without a tenant those of all tenants."""

    tenant_id: str | None
    start: datetime
    end: datetime
    by_tenant: bool = False
    by_type: bool = False


OnFolded = Callable[[Mapping[ChangeEvent, int]], None]
"""Called after the commit with the number of changes by event; every change of a task is counted once."""


def ignore_folded(counts: Mapping[ChangeEvent, int]) -> None:
    """No-op callback."""


async def fold(pool: Pool, until: int, pages: int = 20, on_folded: OnFolded = ignore_folded) -> bool:
    """Fold the changes up to `until`, a decided id; False if more remain or another replica is folding."""

    async def fold_page() -> bool | None:
        done, counts = await pool.run(lambda tx: _fold_page(tx, until))
        on_folded(counts)
        return done

    for _ in range(pages):
        # A caller that is cancelled after the commit must not lose the counts.
        done = await asyncio.shield(asyncio.create_task(fold_page()))
        if done is not None:
            return done
    return False


async def _fold_page(tx: Tx, until: int) -> tuple[bool | None, Mapping[ChangeEvent, int]]:
    """Return whether all changes are folded, None after a full page, and what was folded."""
    row = await tx.fetch_row(statement("lock_stats_place"))
    if row is None:
        return False, {}
    after: int = row[0]
    last = await tx.fetch_row(statement("end_of_range"), {"after": after, "until": until, "limit": PAGE})
    end = (last[0] if last else None) or 0
    if end > after:
        rows = await tx.fetch(statement("fold_changes"), {"after": after, "until": end})
        counts = {ChangeEvent(event): count for event, count in rows}
        return None if end < until else True, counts
    return True, {}


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened to tasks within a minute."""

    time: datetime
    created: int
    started: int
    succeeded: int
    failed: int
    retried: int
    waited: int
    waited_seconds: float


async def read_minutes(tx: Tx, tenant_id: str | None, start: datetime) -> list[Minute]:
    """Return the minutes since then in which something happened, of one tenant or of all."""
    rows = await tx.fetch(statement("read_minutes"), {"tenant": tenant_id, "start": start})
    return [Minute(*row) for row in rows]


async def delete_before(tx: Tx, before: datetime) -> int:
    """Delete the statistics of tasks created before this time, and minutes of more than two days ago."""
    values = {"before": before}
    await tx.execute(statement("delete_old_minutes"))
    return await tx.execute(statement("delete_old_counts"), values) + await tx.execute(
        statement("delete_old_durations"), values
    )


async def read(tx: Tx, query: StatsQuery) -> list[Stats]:
    """Return the groups, largest first; without grouping there is exactly one."""
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
        getattr(found, _KINDS[kind]).add(*step)
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
    """Return the age of the oldest pending task; queried only if the group has one."""
    if not stats.phases.get(Phase.PENDING):
        return None
    tenant_id = stats.group.get("tenant", query.tenant_id)
    name = "oldest_pending" if tenant_id is not None else "oldest_pending_of_all"
    values = {"tenant": tenant_id, "type": stats.group.get("task_type")}
    row = await tx.fetch_row(statement(name), values)
    return row[0] if row else None


async def folded_at(tx: Tx) -> datetime:
    """Return when the statistics were last folded."""
    row = await tx.fetch_row(statement("stats_time"))
    assert row is not None, "the migrations insert this row"
    made: datetime = row[0]
    return made


# About half a second's work.
MOST_TASKS = 200_000
_DIALECT: Any = postgresql.dialect()  # type: ignore[no-untyped-call]

_GROUPED = """
SELECT tenant_id, task_type, runner_id, phase, run_step, queue_step, count(*), sum(retry_count)::bigint,
    coalesce(sum(ran), 0)::float8, coalesce(max(ran), 0)::float8, coalesce(sum(waited), 0)::float8,
    coalesce(max(waited), 0)::float8, max(pending_age)::float8
FROM (
    SELECT CASE WHEN {by_tenant} THEN tenant_id ELSE '' END AS tenant_id,
        CASE WHEN {by_task_type} THEN task_type ELSE '' END AS task_type,
        CASE WHEN {by_runner} THEN runner_id ELSE '' END AS runner_id, phase, retry_count, ran, waited,
        CASE WHEN ran >= 0 THEN floor(4 * ln(greatest(ran * 1000, 1)) / ln(2::float8))::int END AS run_step,
        CASE WHEN waited >= 0 THEN floor(4 * ln(greatest(waited * 1000, 1)) / ln(2::float8))::int END
            AS queue_step,
        CASE phase WHEN 1 THEN extract(epoch FROM clock_timestamp() - create_time) END AS pending_age
    FROM (
        SELECT *, CASE WHEN phase >= 10 THEN extract(epoch FROM end_time - start_time)::float8 END AS ran,
            CASE WHEN phase >= 10 AND attempt = 1
                THEN extract(epoch FROM start_time - create_time)::float8 END AS waited
        FROM ({found}) f) timed
) t
GROUP BY tenant_id, task_type, runner_id, phase, run_step, queue_step
"""


async def scan(
    tx: Tx, query: StatsQuery, chosen: filters.Filter | None, *, by_runner: bool
) -> list[Stats] | None:
    """Return the groups, largest first; None if more than MOST_TASKS tasks match."""
    compiled = _found(query, chosen).compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    asked = {"tenant": query.by_tenant, "task_type": query.by_type, "runner": by_runner}
    flags = {f"by_{name}": str(word).lower() for name, word in asked.items()}
    sql = _GROUPED.format(found=str(compiled), **flags)
    rows = await tx.fetch(sql, dict(compiled.params), prepare=False)
    if sum(row[6] for row in rows) > MOST_TASKS:
        return None
    groups: dict[tuple[str, ...], Stats] = {}
    if not any(asked.values()):
        groups["", "", ""] = Stats({})
    for row in rows:
        name = {key: value for key, value in zip(asked, row[:3], strict=True) if asked[key]}
        _add(groups.setdefault(tuple(row[:3]), Stats(name)), row[3:])
    return sorted(groups.values(), key=lambda stats: -stats.total)[:MOST_GROUPS]


def _add(stats: Stats, row: tuple[Any, ...]) -> None:
    phase, run_step, queue_step, count, retries, ran, longest, waited, longest_wait, age = row
    stats.phases[Phase(phase)] = stats.phases.get(Phase(phase), 0) + count
    stats.retry_count += retries
    if run_step is not None:
        ended = stats.run if phase == Phase.SUCCEEDED else stats.failed
        ended.add(run_step, count, ran, longest)
    if queue_step is not None:
        stats.queue.add(queue_step, count, waited, longest_wait)
    if age is not None:
        stats.oldest_pending = max(stats.oldest_pending or 0.0, age)


def _found(query: StatsQuery, chosen: filters.Filter | None) -> Select[Any]:
    """Return the query of the tasks, limited to MOST_TASKS + 1; failed tasks have an index by phase."""
    halves = sides(possible_phases(chosen.root if chosen else None))
    parts = [_part(query, chosen, half) for half in halves]
    if len(parts) == 1:
        return parts[0].limit(MOST_TASKS + 1)
    together = parts[0].union_all(*parts[1:]).subquery()
    return select(*together.c).limit(MOST_TASKS + 1)


def _part(query: StatsQuery, chosen: filters.Filter | None, half: ColumnElement[bool]) -> Select[Any]:
    joined = tasks.outerjoin(
        leases, and_(leases.c.tenant_id == tasks.c.tenant_id, leases.c.task_id == tasks.c.task_id)
    )
    found = (
        select(
            tasks.c.tenant_id,
            tasks.c.task_type,
            func.coalesce(leases.c.runner_id, tasks.c.last_runner_id, "").label("runner_id"),
            func.coalesce(leases.c.phase, tasks.c.phase).label("phase"),
            func.coalesce(leases.c.attempt, tasks.c.attempt).label("attempt"),
            tasks.c.retry_count,
            tasks.c.create_time,
            func.coalesce(leases.c.start_time, tasks.c.start_time).label("start_time"),
            tasks.c.end_time,
        )
        .select_from(joined)
        .where(half, tasks.c.create_time >= query.start, tasks.c.create_time < query.end)
    )
    if query.tenant_id is not None:
        found = found.where(tasks.c.tenant_id == query.tenant_id)
    if chosen is not None:
        found = found.where(condition(chosen.root))
    return found
