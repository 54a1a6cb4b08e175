"""Fails a test that is skipped for a reason which tests/allowed_skips.txt does not name."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).parents[1] / "allowed_skips.txt"


def allowed_reasons(text: str) -> list[re.Pattern[str]]:
    """The patterns of the list."""
    return [re.compile(line) for line in text.splitlines() if line and not line.startswith("#")]


def is_allowed(reason: str, allowed: Sequence[re.Pattern[str]]) -> bool:
    """Whether the list names the reason."""
    return any(pattern.fullmatch(reason) for pattern in allowed)


def _judge(report: Any) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    # Of a skip, pytest keeps file, line and "Skipped: reason".
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    if not is_allowed(reason, allowed_reasons(LIST.read_text())):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped for a reason that {LIST.name} does not name: {reason}\n"
            "Make the test run here, or add the reason to the list if it is about the host."
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report = yield
    _judge(report)
    return report
