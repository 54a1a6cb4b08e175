"""Filters: what they accept, what they mean, and how they refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import FilterInvalid
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.filter import And, Comparison, Filter, Has, Not, Or, parse
from taskyard_taskdb.domain.filter_fields import AUDIT_FIELDS, TASK_FIELDS, TASK_LIST_FIELDS
from taskyard_taskdb.domain.words import LIVE, TERMINAL, Phase

TASK: dict[str, Any] = {
    "id": "task-17",
    "spec.task_type": "vdag_creation",
    "spec.priority": 10,
    "status.phase": Phase.RUNNING,
    "status.runner": "r1",
    "metadata.create_time": datetime(2025, 10, 1, 12, tzinfo=UTC),
    "metadata.labels": {"team": "search", "a.b/c-d": "x"},
    "metadata.parent_task": "tenants/acme/tasks/p1",
}


def shape(text: str) -> str:
    """The tree of a filter, written with every parenthesis."""

    def show(node: Any) -> str:
        match node:
            case And(terms):
                return f"({' & '.join(map(show, terms))})"
            case Or(terms):
                return f"({' | '.join(map(show, terms))})"
            case Not(term):
                return f"!{show(term)}"
            case Has():
                return f"{node.field.path}:{node.label or '*'}"
            case _:
                return str(node.value)

    return show(parse(text).root)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("id = a", "a"),
        ("id = a AND id = b OR id = c", "(a & (b | c))"),
        ("id = a OR id = b AND id = c", "((a | b) & c)"),
        ("(id = a AND id = b) OR id = c", "((a & b) | c)"),
        ("NOT id = a AND -id = b", "(!a & !b)"),
        ("-(id = a OR id = b)", "!(a | b)"),
        ("((id = a))", "a"),
        ('id=a AND id = \'b c\' AND id = "d \\" e"', '(a & b c & d " e)'),
        ("metadata.labels:team", "metadata.labels:team"),
        ("metadata.labels.team:*", "metadata.labels.team:team"),
        ("status.end_time:*", "status.end_time:*"),
        ("spec.priority >= -5", "-5"),
        ("metadata.create_time < 2025-10-01T00:00:00Z", "2025-10-01 00:00:00+00:00"),
    ],
)
def test_or_binds_tighter_than_and(text: str, tree: str) -> None:
    assert shape(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        'status.phase = RUNNING AND spec.task_type = "vdag_creation"',
        "status.phase = TASK_PHASE_RUNNING",
        "status.phase = LIVE AND status.phase != TERMINAL",
        '(status.phase = FAILED OR status.phase = RUNNING) AND metadata.create_time > "2025-10-01T00:00:00Z"',
        'metadata.create_time <= "2025-10-01T14:00:00+02:00"',
        'id = "task-*" AND id != "job-*"',
        "spec.priority > 9 AND spec.priority < 11 AND spec.priority != 9",
        "metadata.labels.team = search AND metadata.labels:team",
        'metadata.labels.a.b/c-d = "x"',
        'NOT metadata.labels:owner AND metadata.labels.owner != "me"',
        "status.runner = runners/r1 AND status.runner = r1",
        'metadata.parent_task = "tenants/acme/tasks/p1"',
        'spec.slot = "" AND NOT spec.slot:*',
        "-status.end_time:*",
    ],
)
def test_a_filter_that_the_task_matches(text: str) -> None:
    assert parse(text).matches(TASK)
    assert not parse(f"NOT ({text})").matches(TASK)


@pytest.mark.parametrize(
    "text",
    [
        "status.phase = PENDING",
        'id = "task*" AND id = "job*"',
        "id = task-*",
        "status.end_time > 2020-01-01T00:00:00Z",
        "status.attempt > 0",
        "metadata.labels.team != search",
        "spec.slot = x",
    ],
)
def test_a_filter_that_the_task_does_not_match(text: str) -> None:
    assert not parse(text).matches(TASK)


@pytest.mark.parametrize(
    ("text", "position", "remedy"),
    [
        ("", 1, "a field is expected"),
        ("spec.typ = x", 1, "did you mean spec.task_type?"),
        ("status.fase = RUNNING", 1, "did you mean status.phase?"),
        ("id = a AND colour = b", 12, "known are id"),
        ("spec.priority = high", 17, "integer"),
        ("spec.priority = 99999999999", 17, "32 bits"),
        ("status.phase = RUNING", 16, "PENDING"),
        ("status.phase > RUNNING", 14, "= !="),
        ("id < a", 4, "= !="),
        ("metadata.create_time > yesterday", 24, "2025-10-01T00:00:00Z"),
        ("metadata.create_time > 2025-10-01T00:00:00", 24, '"Z"'),
        ("metadata.parent_task = p1", 24, "full name"),
        ("metadata.labels = x", 17, "needs a key"),
        ("status.phase:RUNNING", 14, "status.phase:*"),
        ("id", 3, "operator"),
        ("id =", 5, "needs a value"),
        ("id = (a)", 6, "needs a value"),
        ("(id = a", 8, '"("'),
        ("id = a)", 7, "not expected"),
        ("id = a id = b", 8, "AND or OR"),
        ("id = a and id = b", 8, "write AND"),
        ("id = a AND", 11, "a field is expected"),
        ("AND id = a", 1, "a field is expected"),
        ('id = "a', 6, "closing quote"),
        ("id = a & id = b", 8, "not expected"),
        ("id = a\0", 7, "NUL"),
        ("(" * 17 + "id = a" + ")" * 17, 17, "nested"),
    ],
)
def test_a_refusal_names_position_and_remedy(text: str, position: int, remedy: str) -> None:
    with pytest.raises(FilterInvalid) as caught:
        parse(text)
    assert caught.value.violations[0].field == "filter"
    assert f"position {position}:" in caught.value.message
    assert remedy in caught.value.message


def test_the_limits() -> None:
    assert isinstance(parse(" OR ".join(["id = a"] * 32)).root, Or)
    with pytest.raises(FilterInvalid, match="32 terms"):
        parse(" OR ".join(["id = a"] * 33))
    longest = f'id = "{"a" * (4096 - 7)}"'
    assert isinstance(parse(longest).root, Comparison)
    with pytest.raises(FilterInvalid, match="4097 bytes"):
        parse(longest + " ")


PIECES = ["id", "status.phase", "metadata.labels", "=", ":", "!=", "(", ")", "AND", "OR", "NOT", "-", '"a*"']
PIECES += ["x", "'", "\\"]


@given(st.text(max_size=80) | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_any_text_is_either_parsed_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except FilterInvalid as refused:
        assert refused.violations
    else:
        assert isinstance(found, Filter)
        assert isinstance(found.matches(TASK), bool)


def test_live_and_terminal_cover_every_phase_once() -> None:
    for phase in Phase:
        task = {"status.phase": phase}
        assert parse("status.phase = LIVE").matches(task) == (phase in LIVE)
        assert parse("status.phase = TERMINAL").matches(task) == (phase in TERMINAL)


def test_the_fields_are_those_of_the_contract() -> None:
    documented = """id spec.task_type spec.slot spec.entity.type spec.entity.id spec.priority status.phase
        status.runner status.attempt status.retry_count status.error.code metadata.create_time
        metadata.update_time status.start_time status.end_time metadata.creator.id metadata.parent_task
        metadata.group
        metadata.labels payload"""
    assert set(TASK_FIELDS.paths) == set(documented.split())
    assert set(TASK_LIST_FIELDS.paths) == {*TASK_FIELDS.paths, "spec.after"}


def test_audit_events_have_fields_of_their_own() -> None:
    text = 'event_type = "task.*" AND actor.type = USER AND time > 2025-01-01T00:00:00Z'
    event = {"event_type": "task.created", "actor.type": 4, "time": datetime(2026, 1, 1, tzinfo=UTC)}
    assert parse(text, AUDIT_FIELDS).matches(event)
    with pytest.raises(FilterInvalid):
        parse("status.phase = RUNNING", AUDIT_FIELDS)
    with pytest.raises(FilterInvalid):
        parse("metadata.labels.team = a", AUDIT_FIELDS)


def test_an_unknown_escape_is_refused() -> None:
    with pytest.raises(FilterInvalid, match=r"position 14: .*\\q"):
        filters.tokenize(r"labels.a = 'x\q'")
    assert filters.tokenize(r"labels.a = 'x\'\\\"'")[2].text == "x'\\\""
