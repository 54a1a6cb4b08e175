"""Every requirement of the systems that Taskyard replaces has a test, marked `@pytest.mark.seed("S2.12", …)`.

The numbers are those of the list of requirements: S, the system, the line. The marks are read from the
sources, so that a test which is skipped on one machine counts on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

# First and last line of each part, and what it is about.
REQUIRED = {
    "tasks": ("S0.4", "S0.25"),
    "workers": ("S0.28", "S0.48"),
    "validation": ("S0.74", "S0.86"),
    "queries, retention and performance": ("S0.87", "S0.99"),
    "indexes, constraints and registry of functions": ("S1.14", "S1.34"),
    "concurrency, retry, monitoring, batches": ("S1.43", "S1.64"),
    "customers and configurations": ("S2.3", "S2.28"),
    "workers of workloads": ("S2.57", "S2.67"),
    "leader": ("S2.103", "S2.105"),
    "global tasks": ("S3.1", "S3.25"),
    "validation of workloads and their queries": ("S2.126", "S2.137"),
    "retention, transactions, migrations": ("S2.138", "S2.154"),
}
_MARK = re.compile(r"^@pytest\.mark\.seed\(([^)]*)\)", re.MULTILINE)
_LINE = re.compile(r"(S\d)\.(\d+)(?:-(\d+))?")


def lines(first: str, last: str) -> Iterator[str]:
    """All lines from the first to the last of one system."""
    system, number = first.split(".")
    for line in range(int(number), int(last.split(".")[1]) + 1):
        yield f"{system}.{line}"


def required() -> set[str]:
    """Every line that must have a test."""
    return {line for first, last in REQUIRED.values() for line in lines(first, last)}


def spelled_out(text: str) -> set[str]:
    """The lines that a text names; S2.12-15 means four of them."""
    return {
        line
        for system, first, last in _LINE.findall(text)
        for line in lines(f"{system}.{first}", f"{system}.{last or first}")
    }


def marked() -> set[str]:
    """Every line that a test is marked with."""
    found: set[str] = set()
    for folder in ("services", "tests", "clients"):
        for file in (ROOT / folder).rglob("test_*.py"):
            for marks in _MARK.findall(file.read_text()):
                found |= spelled_out(marks)
    return found


def in_order(found: set[str]) -> list[str]:
    return sorted(found, key=lambda line: (line[:2], int(line[3:])))


def test_marks_are_parsed() -> None:
    assert spelled_out('"S2.12-14", "S0.4"') == {"S2.12", "S2.13", "S2.14", "S0.4"}


def test_every_requirement_has_a_test() -> None:
    without = required() - marked()
    assert not without, f"no test is marked with {in_order(without)}"
