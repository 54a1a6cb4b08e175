"""Lists the change log as audit events: newest first, filtered by resource, tenant, event, actor and time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, false, func, literal, not_, or_, select, text
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from taskyard_taskdb.domain import audit
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.change_log.read import LoggedChange
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.schema import changes
from taskyard_taskdb.storage.statements import statement

# The newest changes are scanned one by one; older ones are found by the index changes_audit.
NEAR = 20_000
FAR = 1_000_000
# After this time a page is returned even if it is not full; its token continues the list.
PAGE_SECONDS = 0.5

Sql = ColumnElement[Any]
_DIALECT: Any = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which changes to list; without a tenant those of all tenants."""

    tenant_id: str | None
    condition: filters.Filter | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Changes, newest first, and the id below which the list continues; None at the end."""

    changes: list[LoggedChange]
    next: int | None


async def list_page(tx: Tx, query: AuditQuery, before: int | None, size: int) -> AuditPage:
    """Return up to `size` changes below the id `before`. Raises FilterInvalid."""
    wanted = _condition(query)
    top = (await change_reader.last_id(tx) + 1) if before is None else before
    if _names_one(query):
        found = await _read(tx, wanted, 0, top, size + 1, near=False)
        return _page(found, size, 0)
    oldest = await change_reader.oldest(tx)
    bottom = oldest[0] if oldest else top
    found, step = [], NEAR
    deadline = time.monotonic() + PAGE_SECONDS
    while top > bottom and len(found) <= size and (step == NEAR or time.monotonic() < deadline):
        start = max(bottom, top - step)
        found += await _read(tx, wanted, start, top, size + 1 - len(found), near=step == NEAR)
        top, step = start, FAR
    return _page(found, size, top if top > bottom else 0)


def _page(found: list[LoggedChange], size: int, reached: int) -> AuditPage:
    if len(found) > size:
        return AuditPage(found[:size], found[size - 1].id)
    return AuditPage(found, reached or None)


def _names_one(query: AuditQuery) -> bool:
    """Whether the filter names one resource, whose changes are few."""
    root = query.condition.root if query.condition else None
    terms = root.terms if isinstance(root, filters.And) else (root,)
    return any(
        isinstance(term, filters.Comparison)
        and term.field.path == "resource"
        and term.operator == "="
        and not term.prefix
        for term in terms
    )


class _Wanted(NamedTuple):
    """Conditions of rows, each for the change of its own event, and of rows that also stand for a start."""

    rows: list[Sql]
    starts: list[Sql]


async def _read(
    tx: Tx, wanted: _Wanted, start: int, top: int, limit: int, *, near: bool
) -> list[LoggedChange]:
    """Return the newest changes from `start` to below `top`."""
    found = await _find(tx, wanted.rows, start, top, limit, near=near)
    # A start that came with its success has the id before that of their row.
    paired = await _find(tx, wanted.starts, start + 1, top + 1, limit, near=near)
    if not found and not paired:
        return []
    values = {"ids": [*found, *paired], "since": min([*found.values(), *paired.values()])}
    rows = [LoggedChange(*row) for row in await tx.fetch(statement("read_changes_by_ids"), values)]
    ids = found.keys() | {id - 1 for id in paired}
    newest_first = reversed(change_reader.expanded(reversed(rows)))
    return [change for change in newest_first if change.id in ids][:limit]


async def _find(
    tx: Tx, wanted: list[Sql], start: int, top: int, limit: int, *, near: bool
) -> dict[int, datetime]:
    """Return ids and times of the newest rows from `start` to below `top`."""
    keys: Select[Any] = select(changes.c.id, changes.c.time).where(
        changes.c.id >= start, changes.c.id < top, *wanted
    )
    # The sum prevents a backward scan of changes_by_id, which is right for the newest changes only.
    order = changes.c.id if near else changes.c.id + text("0")
    compiled = (
        keys.order_by(order.desc())
        .limit(limit)
        .compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    )
    return dict(await tx.fetch(str(compiled), dict(compiled.params), prepare=False))


def _condition(query: AuditQuery) -> _Wanted:
    paired = [
        changes.c.event == ChangeEvent.TASK_SUCCEEDED.value,
        changes.c.previous_phase == Phase.SCHEDULED.value,
    ]
    start = literal(ChangeEvent.TASK_STARTED.value)
    return _Wanted(_terms(query, changes.c.event), [*paired, *_terms(query, start)])


def _terms(query: AuditQuery, event: Sql) -> list[Sql]:
    wanted: list[Sql] = []
    if query.tenant_id is not None:
        wanted.append(changes.c.tenant_id == query.tenant_id)
    if query.condition is not None:
        wanted.append(_node(query.condition.root, event))
    return wanted


def _node(node: filters.Node, event: Sql) -> Sql:
    match node:
        case filters.And(terms):
            return and_(*(_node(term, event) for term in terms))
        case filters.Or(terms):
            return or_(*(_node(term, event) for term in terms))
        case filters.Not(term):
            return _negation(_node(term, event))
        case filters.Has():
            return _has(node.field.path)
        case filters.Comparison():
            return _compare(node, event)


def _has(path: str) -> Sql:
    if path == "request_id":
        return func.coalesce(changes.c.request_id, "") != ""
    return changes.c.actor_id != "" if path == "actor.id" else changes.c.id.is_not(None)


def _compare(node: filters.Comparison, event: Sql) -> Sql:
    equal = node.operator == "="
    match node.field.path:
        case "time":
            return changes.c.time.op(node.operator, is_comparison=True)(node.value)
        case "resource":
            same = _resource(node)
        case "event_type":
            same = event.in_(audit.read_events(node))
        case "actor.type":
            assert isinstance(node.value, frozenset)
            same = changes.c.actor_type.in_(sorted(node.value))
        case "actor.id":
            same = _text(changes.c.actor_id, node)
        case _:
            same = _text(changes.c.request_id, node)
    return same if equal else _negation(same)


def _resource(node: filters.Comparison) -> Sql:
    named = audit.read_resource(node)
    kind = changes.c.resource_kind == int(named.kind)
    owner = [] if named.tenant_id is None else [changes.c.tenant_id == named.tenant_id]
    if node.prefix:
        return and_(kind, *owner, changes.c.resource_id.startswith(named.resource_id, autoescape=True))
    return and_(kind, *owner, changes.c.resource_id == named.resource_id)


def _text(column: Sql, node: filters.Comparison) -> Sql:
    value = str(node.value)
    return column.startswith(value, autoescape=True) if node.prefix else column == value


def _negation(expression: Sql) -> Sql:
    return not_(func.coalesce(expression, false()))
