"""Statements with PostgreSQL's own placeholders, converted once.

psycopg converts a long statement, or one with many parameters, anew each time: 0.2 ms for the longest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLACEHOLDER = re.compile(r"%(?:\((\w+)\))?s|%%")


def numbered(
    sql: str, params: Mapping[str, Any] | Sequence[Any] | None
) -> tuple[bytes, Sequence[Any] | None]:
    """The statement with $1, $2 … and its parameters in that order; raises KeyError if one is missing."""
    if params is None:
        return sql.encode(), None
    text, names = convert(sql)
    return text, [params[name] for name in names] if isinstance(params, Mapping) else params


@functools.lru_cache(maxsize=1000)
def convert(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement with $1, $2 …, and the names of its parameters in that order."""
    # The same object each time: its hash, by which psycopg finds what is prepared, is computed once.
    places: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        name = match[1] or f"#{len(places)}"
        return f"${places.setdefault(name, len(places) + 1)}"

    return _PLACEHOLDER.sub(number, sql).encode(), tuple(places)
