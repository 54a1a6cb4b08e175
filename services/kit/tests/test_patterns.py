"""Users' patterns compile within a budget and match in linear time."""

from __future__ import annotations

import time

import pytest

from taskyard_kit import patterns


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^worker-\d{3}-kind$", "worker-001-kind", True),
        (r"^worker-\d{3}-kind$", "worker-1-kind", False),
        (r"^worker-\d{3}-kind$", "worker-001-kind\n", False),
        ("gpu", "my-gpu-7", True),
        ("", "anything", True),
        ("ä+", "ää", True),
        ("(?i)GPU", "gpu", True),
    ],
)
def test_a_pattern_matches_anywhere_unless_it_is_anchored(pattern: str, text: str, found: bool) -> None:
    assert patterns.compile(pattern).matches(text) is found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "is not an RE2 pattern: missing ): ("),
        ("[a", "missing ]"),
        ("(?=a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("a{1001}", "invalid repetition size"),
        ("((a{30}){30}){30}", "invalid repetition size"),
        (r"(\pL{100}){10}", "too large; use smaller repetition counts"),
        ("a" * 257, "has 257 characters; at most 256 are allowed"),
        ("\udc80", "is not valid Unicode"),
    ],
)
def test_invalid_pattern_states_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(patterns.PatternInvalid) as raised:
        patterns.compile(pattern)
    assert reason in raised.value.reason
    assert raised.value.pattern == pattern


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|a)*b$", r"^(.*a){20}$", r"(\w+\s?)+!$"])
def test_pattern_with_exponential_backtracking_is_matched_in_linear_time(pattern: str) -> None:
    compiled = patterns.compile(pattern)
    begin = time.process_time()
    compiled.matches("a" * 200 + "!" + "b" * 50)
    assert time.process_time() - begin < 0.5


def test_the_same_text_is_the_same_pattern() -> None:
    assert patterns.compile("^a") == patterns.compile("^a")
    assert hash(patterns.compile("^a")) == hash(patterns.compile("^a"))
    assert patterns.compile("^a") != patterns.compile("^b")
