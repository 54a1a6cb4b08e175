"""Page sizes and tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import FieldInvalid, PageTokenInvalid, ResumeTokenInvalid
from taskyard_taskdb.domain import page

NOW = datetime(2030, 1, 1, tzinfo=UTC)
times = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))
values = st.lists(st.none() | st.text() | st.integers(-(2**63), 2**63 - 1) | times, max_size=4)


@pytest.mark.parametrize(("asked", "size"), [(0, 100), (1, 1), (1000, 1000), (1001, 1000), (2**31 - 1, 1000)])
def test_the_size_of_a_page(asked: int, size: int) -> None:
    assert page.page_size(asked) == size


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(FieldInvalid, match="page_size"):
        page.page_size(-1)


@given(values, st.text())
def test_a_token_continues_the_query_it_came_from(keyset: list[page.Value], query: str) -> None:
    token = page.encode_page(keyset, query, NOW)
    assert page.decode_page(token, query, NOW) == tuple(keyset)
    with pytest.raises(PageTokenInvalid):
        page.decode_page(token, query + "x", NOW)


def test_a_token_holds_for_a_day() -> None:
    token = page.encode_page(["a"], "q", NOW)
    assert page.decode_page(token, "q", NOW + timedelta(hours=24)) == ("a",)
    with pytest.raises(PageTokenInvalid, match="24 h"):
        page.decode_page(token, "q", NOW + timedelta(hours=24, seconds=1))


@given(st.text())
def test_a_string_that_is_not_a_token_is_refused(text: str) -> None:
    with pytest.raises(PageTokenInvalid):
        page.decode_page(text, "q", NOW)


@given(st.data())
def test_a_damaged_token_is_refused(data: st.DataObject) -> None:
    token = page.encode_page([NOW, "task-1"], "q", NOW)
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("ABCDEFabcdef0123_-").filter(lambda c: c != token[at]))
    damaged = token[:at] + other + token[at + 1 :]
    try:
        assert page.decode_page(damaged, "q", NOW) == (NOW, "task-1"), "only unused bits may differ"
        assert at == len(token) - 1
    except PageTokenInvalid:
        pass


def test_a_cursor_round_trips_and_names_its_field_when_damaged() -> None:
    token = page.encode_cursor((3, 14), "logs")
    assert page.decode_cursor(token, "logs") == (3, 14)
    with pytest.raises(PageTokenInvalid):
        page.decode_cursor(token, "other logs")
    with pytest.raises(ResumeTokenInvalid, match="resume_token"):
        page.decode_cursor("x", "logs", field="resume_token")
    with pytest.raises(PageTokenInvalid):
        page.decode_cursor(page.encode_page(["a"], "logs", NOW), "logs")
