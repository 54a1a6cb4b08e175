"""The named statements of the .sql files in the packages of storage, read once.

A file holds the statements of the module beside it. Each begins with a line `-- name: claim_tasks`, followed
by a comment on its locking and the index it uses, then the SQL with psycopg's `%(name)s` placeholders.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable

_HEADER = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


class StatementError(Exception):
    """A .sql file that cannot be read, or a name that no file has."""


def statement(name: str) -> str:
    """The SQL of a named statement; raises StatementError for an unknown name."""
    try:
        return statements()[name]
    except KeyError:
        raise StatementError(f"no statement is named {name!r} below storage/") from None


@functools.cache
def statements() -> Mapping[str, str]:
    """All statements by name; raises StatementError if a name occurs twice or a statement has no comment."""
    found: dict[str, str] = {}
    for file in _sql_files():
        for name, sql in parse(file.read_text(), file.name).items():
            if name in found:
                raise StatementError(f"{file.name}: statement {name!r} exists already")
            found[name] = sql
    return found


def _sql_files() -> Iterator[Traversable]:
    for package in resources.files(__package__).iterdir():
        if package.is_dir():
            yield from (file for file in package.iterdir() if file.name.endswith(".sql"))


def parse(text: str, source: str) -> dict[str, str]:
    """The statements of one file's text."""
    parts = _HEADER.split(text)[1:]
    return {
        name: _strip_comments(name, body, source) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _strip_comments(name: str, body: str, source: str) -> str:
    lines = body.strip().splitlines()
    if not lines or not lines[0].startswith("--"):
        raise StatementError(
            f"{source}: statement {name!r} does not say how it locks and which index it uses"
        )
    # A percent sign in a comment would be taken for a placeholder.
    # Indentation goes as well: behind a pooler the text is sent with each execution.
    return "\n".join(line.strip() for line in lines if not line.lstrip().startswith("--")).strip().rstrip(";")
