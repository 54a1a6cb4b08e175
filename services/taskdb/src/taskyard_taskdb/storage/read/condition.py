"""Filters as SQL over tasks and their leases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    any_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.filter_fields import FieldType
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.words import LIVE, TERMINAL, Phase
from taskyard_taskdb.storage.schema import dependencies, leases, tasks

Sql = ColumnElement[Any]

AFTER = "spec.after"

# Where a lease exists, it carries the state.
_COLUMNS: Mapping[str, Sql] = {
    "id": tasks.c.task_id,
    "spec.task_type": tasks.c.task_type,
    "spec.slot": func.coalesce(tasks.c.slot, tasks.c.labels[search_fields.SLOT].astext),
    "spec.entity.type": tasks.c.entity_type,
    "spec.entity.id": tasks.c.entity_id,
    "spec.priority": tasks.c.priority,
    "spec.execution.kind": tasks.c.kind,
    "status.runner": leases.c.runner_id,
    "status.attempt": func.coalesce(leases.c.attempt, tasks.c.attempt),
    "status.retry_count": tasks.c.retry_count,
    "status.error.code": tasks.c.error_code,
    "status.start_time": func.coalesce(leases.c.start_time, tasks.c.start_time),
    "status.end_time": tasks.c.end_time,
    "metadata.create_time": tasks.c.create_time,
    "metadata.update_time": case(
        (leases.c.task_id.is_(None), tasks.c.update_time),
        else_=func.greatest(tasks.c.update_time, leases.c.schedule_time, leases.c.start_time),
    ),
    "metadata.creator.id": tasks.c.creator_id,
    "metadata.group": tasks.c.group_id,
}

LIVE_TASKS = tasks.c.end_time.is_(None)
ENDED_TASKS = tasks.c.end_time.is_not(None)
_ALL_PHASES = frozenset(Phase)


def condition(node: filters.Node) -> Sql:
    """What a row of the joined tables has to satisfy. Null counts as false, in NOT as well."""
    match node:
        case filters.And(terms):
            return and_(*(condition(term) for term in terms))
        case filters.Or(terms):
            return or_(*(condition(term) for term in terms))
        case filters.Not(term):
            return _negation(condition(term))
        case filters.Has():
            return _has(node)
        case filters.Comparison():
            return _compare(node)


def _has(node: filters.Has) -> Sql:
    if node.label:
        return _label(node.label).is_not(None)
    if node.field.type is FieldType.PHASE:
        return literal(True)
    if node.field.path == AFTER:
        # Null without spec.after.
        return tasks.c.blocked.is_not(None)
    if node.field.type is FieldType.TASK:
        return tasks.c.parent_task_id.is_not(None)
    column = _COLUMNS[node.field.path]
    if node.field.type in (FieldType.NUMBER, FieldType.TIME):
        return column.is_not(None)
    return func.coalesce(column, "") != ""


def _compare(node: filters.Comparison) -> Sql:
    equal = node.operator == "="
    if node.field.type is FieldType.PHASE:
        return in_phases(_phases(node))
    if node.field.type is FieldType.TASK:
        tenant_id, task_id = parse_task_name(str(node.value))
        if node.field.path == AFTER:
            dependents = _dependents(tenant_id, task_id)
            same = and_(tasks.c.tenant_id == tenant_id, tasks.c.task_id == any_(dependents))
        else:
            same = and_(tasks.c.tenant_id == tenant_id, tasks.c.parent_task_id == task_id)
        return same if equal else _negation(same)
    if node.label:
        return _compare_label(node, equal)
    if _names_slot(node):
        same = or_(*_in_slot(str(node.value)))
        return same if equal else _negation(same)
    column = _COLUMNS[node.field.path]
    if node.field.type in (FieldType.NUMBER, FieldType.TIME):
        return _ordered(column, node)
    return _compare_text(column, node, equal)


def _dependents(tenant_id: str, task_id: str) -> Sql:
    """The tasks that name this one in spec.after: an array, read once by the primary key of dependencies."""
    edge = dependencies.c
    found = select(edge.task_id).where(edge.tenant_id == tenant_id, edge.prerequisite_id == task_id)
    return func.array(found.scalar_subquery(), type_=ARRAY(Text))


def possible_phases(node: filters.Node | None) -> frozenset[Phase]:
    """The phases in which a task may match."""
    match node:
        case filters.And(terms):
            return _ALL_PHASES.intersection(*map(possible_phases, terms))
        case filters.Or(terms):
            return frozenset().union(*map(possible_phases, terms))
        case filters.Comparison(field=field) if field.type is FieldType.PHASE:
            return frozenset(_phases(node))
    return _ALL_PHASES


def sides(phases: frozenset[Phase]) -> tuple[Sql, ...]:
    """Parts of the tasks that can be in one of these phases, each with an index by creation to itself."""
    if not phases & TERMINAL:
        return (LIVE_TASKS,)
    if phases & LIVE:
        return (true(),)
    if Phase.SUCCEEDED in phases:
        return (ENDED_TASKS,)
    return tuple(tasks.c.failed_phase == int(phase) for phase in sorted(phases))


def slot_sides(node: filters.Node | None) -> tuple[Sql, ...]:
    """If the filter demands a slot: the tasks that queue for it, and the external ones. No index has both."""
    match node:
        case filters.And(terms):
            return next((found for term in terms if len(found := slot_sides(term)) > 1), (true(),))
        case filters.Comparison(operator="=") if _names_slot(node):
            return _in_slot(str(node.value))
    return (true(),)


def _names_slot(node: filters.Comparison) -> bool:
    return node.field.path == "spec.slot" and bool(node.value) and not node.prefix


def _in_slot(slot: str) -> tuple[Sql, Sql]:
    return tasks.c.slot == slot, _has_label(search_fields.SLOT, slot)


_INDEXED = frozenset(
    {
        "id",
        "spec.task_type",
        "spec.slot",
        "spec.entity.id",
        "status.runner",
        "metadata.parent_task",
        "metadata.group",
        AFTER,
    }
)


def is_selective(node: filters.Node) -> bool:
    """Whether an index leads to the matching tasks: all alternatives name a value of an indexed field."""
    match node:
        case filters.And(terms):
            return any(is_selective(term) for term in terms)
        case filters.Or(terms):
            return all(is_selective(term) for term in terms)
        case filters.Comparison(field=field, operator="=", prefix=False) if node.value:
            return field.path in _INDEXED or bool(node.label)
    return False


def _phases(node: filters.Comparison) -> set[Phase]:
    assert isinstance(node.value, frozenset)
    named = {Phase(number) for number in node.value}
    return named if node.operator == "=" else set(Phase) - named


def in_phases(phases: set[Phase]) -> Sql:
    """The task is in one of these phases; each part has an index of its own."""
    ended, live = phases & TERMINAL, phases & LIVE
    parts: list[Sql] = []
    if ended:
        parts.append(and_(ENDED_TASKS, tasks.c.phase.in_([int(phase) for phase in sorted(ended)])))
    if live == LIVE:
        parts.append(LIVE_TASKS)
    elif live:
        parts.append(
            and_(
                LIVE_TASKS,
                func.coalesce(leases.c.phase, tasks.c.phase).in_([int(phase) for phase in sorted(live)]),
            )
        )
    return or_(*parts) if parts else false()


def _ordered(column: Sql, node: filters.Comparison) -> Sql:
    if node.operator == "!=":
        return column.is_distinct_from(node.value)
    return column.op(node.operator, is_comparison=True)(node.value)


def _compare_text(column: Sql, node: filters.Comparison, equal: bool) -> Sql:
    value = str(node.value)
    if node.prefix:
        same: Sql = column.startswith(value, autoescape=True)
    elif value:
        # Written plainly, so that the column's index serves it.
        return column == value if equal else column.is_distinct_from(value)
    else:
        same = func.coalesce(column, "") == ""
    return same if equal else _negation(same)


def _compare_label(node: filters.Comparison, equal: bool) -> Sql:
    value = str(node.value)
    if node.prefix:
        same: Sql = _label(node.label).startswith(value, autoescape=True)
    else:
        same = _has_label(node.label, value)
    return same if equal else _negation(same)


def _has_label(key: str, value: str) -> Sql:
    return tasks.c.labels.contains(cast(json.dumps({key: value}), JSONB))


def _label(key: str) -> Sql:
    found: Sql = tasks.c.labels[key].astext
    return found


def _negation(expression: Sql) -> Sql:
    return not_(func.coalesce(expression, false()))
