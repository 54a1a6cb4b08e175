"""Output for people and programs: tables that fit, JSONPath, and texts that are not UTF-8."""

import pytest

from taskyard.cli import screen
from taskyard.cli.jsonpath import JsonPath, JsonPathError

DOCUMENT = {
    "metadata": {"id": "t1", "labels": {"team": "video", "a.b": "c"}},
    "status": {"phase": "RUNNING", "attempt": 2},
    "runs": [{"state": "FAILED"}, {"state": "RUNNING"}],
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.metadata.id}", "t1"),
        (".metadata.id", "t1"),
        ("{$.status.attempt}", "2"),
        ("{.metadata.labels['a.b']}", "c"),
        ("{.runs[*].state}", "FAILED RUNNING"),
        ("{.runs[-1].state}", "RUNNING"),
        ("{.runs[5].state}", ""),
        ("{.no.such.field}", ""),
        ("{.metadata.labels}", '{"team": "video", "a.b": "c"}'),
        ("{.metadata.labels.*}", "video c"),
        ('{.metadata.id}{"\\t"}{.status.phase}', "t1\tRUNNING"),
        ("task {.metadata.id} is {.status.phase}", "task t1 is RUNNING"),
    ],
)
def test_a_jsonpath_is_filled_in(template: str, expected: str) -> None:
    assert JsonPath(template).render(DOCUMENT) == expected


@pytest.mark.parametrize("template", ["{.a", "a}", "{.a[}", "{.a[?(@.b)]}"])
def test_a_jsonpath_that_cannot_be_read_is_refused(template: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(template)


def test_columns_are_cut_where_they_are_widest_and_titles_never() -> None:
    titles = ("TASK", "PHASE", "WHAT")
    rows = [("a" * 36, "RUNNING", "x" * 100)]
    widths = screen.fit(titles, rows, 80)
    assert widths == [36, 7, 33] and sum(widths) + 4 == 80
    assert screen.fit(titles, rows, 30)[0] < 36
    assert all(width >= len(title) for width, title in zip(screen.fit(titles, rows, 30), titles, strict=True))
    assert screen.fit(titles, rows, 10) == []
    assert screen.fit(titles, rows, 0) == [36, 7, 100]
    assert all(len(line) <= 40 for line in screen.table_lines(titles, rows, 40))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert screen.coloured() is expected
