"""Log events of all services: constant names, logged through kit, so that no field is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("services/*/src/**/*.py"))
LEVELS = {"debug", "info", "warning", "error", "exception", "failure"}
EVENT = re.compile(r"[a-z][a-z0-9]*([._][a-z0-9]+)*")
# The kit's own formatter, and a user's functions, whose loggers become lines of their task.
LOGGING_ALLOWED = ("taskyard_kit/logs.py", "taskyard_runner/functions/")


def log_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in ("log", "logger", "logging")
        ):
            yield node


def names_of(value: ast.expr) -> list[object]:
    """The names an event may have: a constant, or one of two."""
    if isinstance(value, ast.IfExp):
        return names_of(value.body) + names_of(value.orelse)
    return [value.value if isinstance(value, ast.Constant) else ast.unparse(value)]


def test_an_event_is_a_constant_name_with_fields() -> None:
    calls = [(path, call) for path in SOURCES for call in log_calls(ast.parse(path.read_text()))]
    assert len(calls) > 100, "the services log"
    for path, call in calls:
        for name in names_of(call.args[0]):
            assert isinstance(name, str) and EVENT.fullmatch(name), (
                f"{path}:{call.lineno}: {name!r} is no event; use a constant name_like_this and fields"
            )
        extra = [keyword.arg for keyword in call.keywords if keyword.arg in ("extra", "exc_info")]
        assert not extra, f"{path}:{call.lineno}: pass fields by name, not {extra[0]}="


def test_services_log_through_kit() -> None:
    for path in SOURCES:
        if any(allowed in path.as_posix() for allowed in LOGGING_ALLOWED):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign) and "logging.getLogger(" in ast.unparse(node.value):
                pytest.fail(f"{path}:{node.lineno}: use taskyard_kit.logs.get_log(__name__)")
