"""Lists of tasks: filtered, in keyset pages, over one tenant or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    and_,
    any_,
    column,
    false,
    func,
    literal,
    literal_column,
    select,
    table,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.words import TERMINAL, Action, Phase
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.read.condition import (
    ENDED_TASKS,
    LIVE_TASKS,
    condition,
    in_phases,
    is_selective,
    possible_phases,
    slot_sides,
)
from taskyard_taskdb.storage.read.condition import sides as sides_of
from taskyard_taskdb.storage.read.tasks import COLUMNS, SIZE, Key, TaskRecord, record
from taskyard_taskdb.storage.schema import leases, tasks
from taskyard_taskdb.storage.statements import statement

MAX_COUNT = 100_000
# About a quarter of a second's work.
SCAN_LIMIT = 100_000
# Sorts behind every tenant id.
_AFTER_ALL_IDS = "~"

_DIALECT: Any = postgresql.dialect()  # type: ignore[no-untyped-call]
_SESSIONS = "LEFT JOIN sessions s ON s.runner_id = l.runner_id AND s.epoch = l.session_epoch"


@dataclass(frozen=True, slots=True)
class Order:
    """By creation or, for ended tasks only, by their end; ties by tenant and id."""

    by_end: bool = False
    descending: bool = True


@dataclass(frozen=True, slots=True)
class Position:
    """The last task of a page."""

    time: datetime
    tenant_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Query:
    """Which tasks, in which order; no tenant means all of them."""

    tenant_id: str | None
    condition: filters.Filter | None
    order: Order = Order()


@dataclass(frozen=True, slots=True)
class Page:
    """A page, which may be short, and the place from which the next one goes on; None at the end of the
    list."""

    records: list[TaskRecord]
    next: Position | None


async def list_page(tx: Tx, query: Query, after: Position | None, size: int, max_bytes: int) -> Page:
    """Up to `size` tasks behind `after`, as many as have `max_bytes` in their documents, or one.

    Where no index narrows the filter down, a page ends after SCAN_LIMIT tasks, however few of them match.
    """
    sides, found_by_key = await _sides(tx, query)
    if query.order.by_end:
        edge = await _end_edge(tx, query, after, size + 1)
    elif found_by_key or _is_narrow(query):
        edge = None
    else:
        edge = await _edge(tx, query, sides, after)
    found, complete = await _read(tx, query, _keys(query, sides, after, edge, size + 1), max_bytes)
    if complete and len(found) <= size:
        return Page(found, edge)
    found = found[:size]
    return Page(found, position_of(query, found[-1]))


def position_of(query: Query, last: TaskRecord) -> Position:
    """The place of a task in the list."""
    time = last.end_time if query.order.by_end else last.create_time
    assert time is not None, "an ended task has an end time"
    return Position(time, last.tenant_id, last.task_id)


async def _read(tx: Tx, query: Query, keys: Select[Any], max_bytes: int) -> tuple[list[TaskRecord], bool]:
    """The tasks of these keys up to `max_bytes` of documents, and whether they are all of them."""
    sql, params = _render(keys)
    direction = "DESC" if query.order.descending else "ASC"
    order = ", ".join(f"t.{c.key} {direction}" for c in _order(query))
    joined = "JOIN tasks t ON t.tenant_id = k.tenant_id AND t.task_id = k.task_id"
    leased = "LEFT JOIN leases l ON l.tenant_id = t.tenant_id AND l.task_id = t.task_id"
    rows = await _fetch(
        tx,
        f"SELECT k.listed, {COLUMNS} FROM (SELECT t.tenant_id, t.task_id, count(*) OVER () AS listed, "
        f"sum({SIZE}) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - {SIZE} AS preceding "
        f"FROM ({sql}) k {joined} {leased}) k {joined} {leased} {_SESSIONS} "
        f"WHERE k.preceding < %(max_bytes)s ORDER BY {order}",
        {**params, "max_bytes": max_bytes},
    )
    return [record(row[1:]) for row in rows], not rows or rows[0][0] == len(rows)


def _is_narrow(query: Query) -> bool:
    """Whether an index leads to the matching tasks, or the caller accepts a slow query."""
    if query.condition is None or query.tenant_id is None:
        return True
    return is_selective(query.condition.root)


async def _end_edge(tx: Tx, query: Query, after: Position | None, size: int) -> Position | None:
    """Where a span of time from `after` on ends that has enough ended tasks; None at the last one."""
    near = None if after is None else after.time
    far = await far_edge(tx, query.tenant_id, near, query.order.descending, size)
    return None if far is None else _edge_at(far, query.order.descending)


async def _edge(
    tx: Tx, query: Query, sides: Sequence[ColumnElement[bool]], after: Position | None
) -> Position | None:
    """Where SCAN_LIMIT tasks from `after` on end; None if there are not as many."""
    times = []
    for side in sides:
        found = select(tasks.c.create_time).where(tasks.c.tenant_id == query.tenant_id, side)
        if after is not None:
            found = found.where(_behind(_order(query), after, query.order.descending))
        last = _sorted(found, [tasks.c.create_time], query.order.descending, 1).offset(SCAN_LIMIT - 1)
        times += [row[0] for row in await _fetch(tx, *_render(last))]
    if not times:
        return None
    return _edge_at(max(times) if query.order.descending else min(times), query.order.descending)


def _edge_at(time: datetime, descending: bool) -> Position:
    # Tasks of the same instant are on the near side of the edge, whatever their ids.
    return Position(time, "", "") if descending else Position(time, _AFTER_ALL_IDS, "")


async def count(tx: Tx, query: Query) -> int:
    """How many tasks match, up to MAX_COUNT."""
    matching: Select[Any] = _matching(query).with_only_columns(literal_column("1"))
    if query.order.by_end:
        matching = matching.where(ENDED_TASKS)
    sql, params = _render(select(func.count()).select_from(matching.limit(MAX_COUNT).subquery()))
    rows = await _fetch(tx, sql, params)
    total: int = rows[0][0]
    return total


async def find_cancellable(tx: Tx, query: Query, limit: int) -> list[Key]:
    """Matching live tasks without a requested cancel."""
    cancelling = func.coalesce(leases.c.requested_action, 0) == 1
    live, _ = await live_tasks(tx, query.tenant_id)
    return await _find(tx, _matching(query).where(and_(live, ~cancelling)), limit)


async def find_resettable(tx: Tx, query: Query, limit: int) -> list[Key]:
    """Matching RUNNING tasks without a requested reset."""
    live, _ = await live_tasks(tx, query.tenant_id)
    running = and_(leases.c.phase == int(Phase.RUNNING), leases.c.requested_action != int(Action.RESET))
    return await _find(tx, _matching(query).where(and_(live, running)), limit)


async def find_retryable(tx: Tx, query: Query, limit: int) -> list[Key]:
    """Ended tasks that match and did not succeed."""
    return await _find(tx, _matching(query).where(in_phases(set(TERMINAL) - {Phase.SUCCEEDED})), limit)


async def _find(tx: Tx, matching: Select[Any], limit: int) -> list[Key]:
    chosen = matching.with_only_columns(tasks.c.tenant_id, tasks.c.task_id)
    sql, params = _render(chosen.order_by(tasks.c.create_time, tasks.c.task_id).limit(limit))
    return [(row[0], row[1]) for row in await _fetch(tx, sql, params)]


def _matching(query: Query) -> Select[Any]:
    joined = tasks.outerjoin(
        leases, and_(leases.c.tenant_id == tasks.c.tenant_id, leases.c.task_id == tasks.c.task_id)
    )
    found = select(tasks.c.tenant_id, tasks.c.task_id).select_from(joined)
    if query.tenant_id is not None:
        found = found.where(tasks.c.tenant_id == query.tenant_id)
    if query.condition is not None:
        found = found.where(condition(query.condition.root))
    return found


def _keys(
    query: Query,
    sides: Sequence[ColumnElement[bool]],
    after: Position | None,
    edge: Position | None,
    limit: int,
) -> Select[Any]:
    """The keys of a page.

    No index spans several phases of failed tasks, the external tasks of a slot and the others, or tenants:
    each part has a page of its own, of which the first rows are taken together.
    """
    parts = [_part(query, side, after, edge, limit) for side in sides]
    if len(parts) == 1:
        return parts[0]
    together = sqlalchemy.union_all(*(part.subquery().select() for part in parts)).subquery()
    return _sorted(select(*together.c), together.c, query.order.descending, limit)


async def _sides(tx: Tx, query: Query) -> tuple[Sequence[ColumnElement[bool]], bool]:
    """The parts of the list, and whether their tasks are few and looked up by their keys."""
    if query.order.by_end:
        return (ENDED_TASKS,), False
    node = query.condition.root if query.condition is not None else None
    phases = possible_phases(node)
    if phases & TERMINAL:
        return [and_(side, part) for side in sides_of(phases) for part in slot_sides(node)], False
    live, found_by_key = await live_tasks(tx, query.tenant_id)
    return (live,), found_by_key


def _part(
    query: Query, side: ColumnElement[bool], after: Position | None, edge: Position | None, limit: int
) -> Select[Any]:
    order = _order(query)
    found = _matching(query).with_only_columns(*order).where(side)
    if after is not None:
        found = found.where(_behind(order, after, query.order.descending))
    if edge is not None:
        found = found.where(_behind(order, edge, not query.order.descending))
    if query.tenant_id is not None or query.order.by_end:
        return _sorted(found, order, query.order.descending, limit)
    tenants = table("tenants", column("tenant_id"))
    own = found.where(tasks.c.tenant_id == tenants.c.tenant_id)
    page = _sorted(own, order, query.order.descending, limit).lateral("page")
    merged = select(*page.c).select_from(tenants.join(page, true()))
    return _sorted(merged, page.c, query.order.descending, limit)


def _order(query: Query) -> tuple[ColumnElement[Any], ...]:
    time = tasks.c.end_time if query.order.by_end else tasks.c.create_time
    return time, tasks.c.tenant_id, tasks.c.task_id


def _sorted(
    found: Select[Any], order: Iterable[ColumnElement[Any]], descending: bool, limit: int
) -> Select[Any]:
    return found.order_by(*(c.desc() if descending else c.asc() for c in order)).limit(limit)


def _behind(order: Sequence[ColumnElement[Any]], after: Position, descending: bool) -> ColumnElement[bool]:
    place, last = tuple_(*order), tuple_(*map(literal, (after.time, after.tenant_id, after.task_id)))
    return place < last if descending else place > last


def _render(statement: Select[Any]) -> tuple[str, dict[str, Any]]:
    compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    return str(compiled), dict(compiled.params)


async def _fetch(tx: Tx, sql: str, params: dict[str, Any]) -> list[Row]:
    # Filters have too many forms to keep a prepared statement for each.
    return await tx.fetch(sql, params, prepare=False)


# As many are looked up by their ids; where there are more, a scan in the order of creation meets them soon.
FEW = 2000


async def live_tasks(tx: Tx, tenant_id: str | None) -> tuple[ColumnElement[bool], bool]:
    """What a live task of the tenant satisfies, and whether an index leads to just those."""
    if tenant_id is None:
        return LIVE_TASKS, False
    params = {"tenant": tenant_id, "limit": FEW + 1}
    ids = {row[0] for row in await tx.fetch(statement("live_tasks"), params)}
    if len(ids) <= FEW:
        among = tasks.c.task_id == any_(literal(sorted(ids), ARRAY(Text)))
        return and_(LIVE_TASKS, among if ids else false()), True
    row = await tx.fetch_row(statement("oldest_live"), {"tenant": tenant_id})
    oldest = row[0] if row is not None else None
    return and_(LIVE_TASKS, true() if oldest is None else tasks.c.create_time >= oldest), False


_FIRST_WIDTH = timedelta(minutes=1)
# What a page may have to sort.
_MANY = 20_000
_BISECTIONS = 12


async def far_edge(
    tx: Tx, tenant_id: str | None, after: datetime | None, descending: bool, size: int
) -> datetime | None:
    """Where a span from `after` on ends that holds at least `size` ended tasks; None if the rest does not."""
    row = await tx.fetch_row(statement("oldest_task"), {"tenant": tenant_id})
    assert row is not None, "an aggregate has a row"
    oldest, now = row
    if oldest is None:
        return None
    near, far = (now, oldest) if descending else (oldest, now)
    near = near if after is None else after
    reach = near - far if descending else far - near
    width, narrow = _FIRST_WIDTH, timedelta(0)
    while width < reach:
        found = await _count(tx, tenant_id, near, -width if descending else width)
        if found >= size:
            chosen = await _narrowed(tx, tenant_id, near, descending, size, narrow, width)
            return near - chosen if descending else near + chosen
        narrow, width = width, width * 2
    return None


async def _narrowed(
    tx: Tx,
    tenant_id: str | None,
    near: datetime,
    descending: bool,
    size: int,
    narrow: timedelta,
    wide: timedelta,
) -> timedelta:
    """A width between one that holds too few tasks and one that holds enough, perhaps far too many."""
    for _ in range(_BISECTIONS):
        if await _count(tx, tenant_id, near, -wide if descending else wide) < _MANY:
            break
        middle = (narrow + wide) / 2
        if await _count(tx, tenant_id, near, -middle if descending else middle) >= size:
            wide = middle
        else:
            narrow = middle
    return wide


async def _count(tx: Tx, tenant_id: str | None, near: datetime, span: timedelta) -> int:
    first, last = sorted((near, near + span))
    params = {"tenant": tenant_id, "first": first, "last": last, "limit": _MANY}
    row = await tx.fetch_row(statement("count_ended"), params)
    assert row is not None, "an aggregate has a row"
    count: int = row[0]
    return count
