"""The kit itself: tables are well formed, comparisons find every difference, and a driver that lies fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance.driver import Driver, DriverError
from tests.conformance.table import TableError, behaviours, difference, fill_in, load


def test_every_behaviour_has_a_readme_and_a_table() -> None:
    found = behaviours()
    assert len(found) >= 20
    assert all(behaviour.steps for behaviour in found)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('[[step]]\ndo = "get"\nstart = "get"', "exactly one of"),
        ('[[step]]\ndo = "get"\nexpects = {}', "unknown member expects"),
        ('[[step]]\ndo = "get"\nexpect = {}\nerror = {}', "an answer and an error"),
        ("steps = []", "unknown member steps"),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, table: str, problem: str) -> None:
    (tmp_path / "README.md").write_text("# It works\n")
    (tmp_path / "steps.toml").write_text(table)
    with pytest.raises(TableError, match=problem):
        load(tmp_path)


@pytest.mark.parametrize(
    ("expected", "found", "gap"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ({"a": 1}, {"b": 2}, ".a is None"),
        ({"a": 1}, {"a": True}, ".a is True"),
        ({"a": 7}, {"a": 7.0}, ".a is 7.0"),
        ({"a": [1, 2]}, {"a": [1]}, ".a is [1]"),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, ".a[0].b is 'y'"),
        ({"a": "~x+"}, {"a": "xxx"}, ""),
        ({"a": "~x+"}, {"a": "xxy"}, ".a is 'xxy'"),
        ({"a": "null"}, {"a": None}, ""),
    ],
)
def test_a_difference_is_found_where_it_is(expected: object, found: object, gap: str) -> None:
    assert difference(expected, found).startswith(gap)
    assert bool(difference(expected, found)) == bool(gap)


def test_variables_are_filled_in_everywhere_and_a_missing_one_is_named() -> None:
    assert fill_in({"a": ["$x/y", {"b": "$x"}], "n": 1}, {"x": "v"}) == {"a": ["v/y", {"b": "v"}], "n": 1}
    with pytest.raises(TableError, match=r"\$y has no value"):
        fill_in("$y", {"x": "v"})


async def driver_of(program: str, folder: Path) -> Driver:
    return await Driver.start([sys.executable, "-c", program], folder, {}, folder / "log")


async def test_answers_are_matched_by_id_in_any_order(tmp_path: Path) -> None:
    program = """
import sys
lines = [sys.stdin.readline() for _ in range(2)]
print('{"id": 2, "ok": "second"}', flush=True)
print('{"id": 1, "ok": "first"}', flush=True)
sys.stdin.read()
"""
    driver = await driver_of(program, tmp_path)
    first, second = driver.send("a", {}), driver.send("b", {})
    assert ((await first)["ok"], (await second)["ok"]) == ("first", "second")
    await driver.stop()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('not json', flush=True); input()", "not an answer"),
        ("""print('{"id": 99, "ok": 1}', flush=True); input()""", "not an answer"),
        ("import sys; sys.exit('broken')", "has ended: broken"),
    ],
)
async def test_a_driver_that_breaks_its_protocol_fails_the_step(
    tmp_path: Path, program: str, problem: str
) -> None:
    driver = await driver_of(program, tmp_path)
    with pytest.raises(DriverError, match=problem):
        await driver.send("hello", {})
    await driver.stop()
