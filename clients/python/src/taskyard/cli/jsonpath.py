"""A subset of JSONPath as kubectl takes it: text with expressions such as {.status.phase} and {.a[*].b}."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_PART = re.compile(r"\{([^}]*)\}|([^{}]+)")
_STEP = re.compile(r"""\.?\[(?:(\*)|(-?\d+)|'([^']*)'|"([^"]*)")\]|\.(\*)|\.?([^.\[\]{}'"\s]+)""")
_TEXT = re.compile(r"""(["'])(.*)\1""", re.DOTALL)
_ESCAPES = {"\\n": "\n", "\\t": "\t"}

Step = str | int | None
"""The name of a field, the index of an element, or None for all of them."""


class JsonPathError(ValueError):
    """An expression that cannot be read."""


class JsonPath:
    """A template; raises JsonPathError if it cannot be read."""

    def __init__(self, template: str) -> None:
        text = template if "{" in template else f"{{{template}}}"
        if "".join(match[0] for match in _PART.finditer(text)) != text:
            raise JsonPathError(f"{template!r}: braces do not match")
        self._parts = [_part(match[1], match[2]) for match in _PART.finditer(text)]

    def render(self, document: Any) -> str:
        """The template filled in from a document; several values are separated by spaces."""
        return "".join(
            part if isinstance(part, str) else " ".join(map(_shown, _find([document], part)))
            for part in self._parts
        )


def _part(expression: str | None, text: str | None) -> str | list[Step]:
    if expression is None:
        return _unescaped(text or "")
    if quoted := _TEXT.fullmatch(expression.strip()):
        return _unescaped(quoted[2])
    return list(_steps(expression.strip().removeprefix("$").removeprefix("@")))


def _unescaped(text: str) -> str:
    for escape, sign in _ESCAPES.items():
        text = text.replace(escape, sign)
    return text


def _steps(expression: str) -> Iterator[Step]:
    at = 0
    expression = "" if expression == "." else expression
    while at < len(expression):
        match = _STEP.match(expression, at)
        if match is None:
            raise JsonPathError(
                f"{expression!r}: {expression[at:]!r} is not understood; use .name, ['name'], [0] or [*]"
            )
        every, index, single, double, star, name = match.groups()
        if every or star:
            yield None
        elif index is not None:
            yield int(index)
        else:
            yield next(one for one in (single, double, name) if one is not None)
        at = match.end()


def _find(values: Iterable[Any], steps: list[Step]) -> list[Any]:
    found = list(values)
    for step in steps:
        found = [inner for value in found for inner in _below(value, step)]
    return found


def _below(value: Any, step: Step) -> list[Any]:
    if step is None:
        inner = value.values() if isinstance(value, dict) else value
        return list(inner) if isinstance(value, dict | list) else []
    if isinstance(step, int):
        return value[step : step + 1 or None] if isinstance(value, list) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
