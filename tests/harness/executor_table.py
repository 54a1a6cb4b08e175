"""Prints which case each kind of execution passes, when the tests of tests/executors were run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_CASE = re.compile(r"tests/executors/test_(\w+)\.py::(?:\w+::)?test_(\w+)$")
CASES = (
    "success",
    "failure",
    "transient_error",
    "permanent_error",
    "timeout",
    "cancel",
    "pause_and_resume_elsewhere",
    "progress",
    "logs",
    "result",
    "limits",
    "agent_killed_and_adopted",
)
_SHOWN = {"passed": "yes", "failed": "FAILED", "error": "FAILED", "skipped": "skipped"}


def outcomes(stats: Mapping[str, Iterable[Any]]) -> dict[str, dict[str, str]]:
    """Kind to case to outcome; a failure in set-up or tear-down counts as failed."""
    found: dict[str, dict[str, str]] = {}
    for outcome in ("passed", "skipped", "failed", "error"):
        for report in stats.get(outcome, ()):
            matched = _CASE.fullmatch(report.nodeid)
            if matched and matched[2] in CASES:
                found.setdefault(matched[1], {})[matched[2]] = _SHOWN[outcome]
    return found


def table(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Cases down, kinds across; empty if no kind ran."""
    if not found:
        return []
    kinds = sorted(found)
    widths = [max(len(kind), 7) for kind in kinds]
    first = max(map(len, CASES))
    rows = [("", kinds), *((case, [found[kind].get(case, "-") for kind in kinds]) for case in CASES)]
    return [
        "  ".join(
            [name.ljust(first), *(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))]
        )
        for name, cells in rows
    ]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """pytest's hook; with several workers it runs in the process that gathers their reports."""
    lines = table(outcomes(terminalreporter.stats))
    if lines:
        terminalreporter.section("executors")
        for line in lines:
            terminalreporter.write_line(line.rstrip())
