"""Statistics of tasks that a filter chooses, read from the tasks as far as they are not too many."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.stats import Stats
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.condition import condition, possible_phases, sides
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.schema import leases, tasks
from taskyard_taskdb.storage.task_stats import MOST_GROUPS, StatsQuery

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
        SELECT *, CASE phase WHEN 10 THEN extract(epoch FROM end_time - start_time)::float8 END AS ran,
            CASE WHEN phase >= 10 AND attempt = 1
                THEN extract(epoch FROM start_time - create_time)::float8 END AS waited
        FROM ({found}) f) timed
) t
GROUP BY tenant_id, task_type, runner_id, phase, run_step, queue_step
"""


async def scan(
    tx: Tx, query: StatsQuery, chosen: filters.Filter | None, *, by_runner: bool
) -> list[Stats] | None:
    """The groups, largest first; None if there are more tasks than can be read for this."""
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
        stats.run.add(run_step, count, ran, longest)
    if queue_step is not None:
        stats.queue.add(queue_step, count, waited, longest_wait)
    if age is not None:
        stats.oldest_pending = max(stats.oldest_pending or 0.0, age)


def _found(query: StatsQuery, chosen: filters.Filter | None) -> Select[Any]:
    """The tasks, one more than may be; failed ones have an index by phase."""
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
